"""Files and folders that get their names together, when all are complete, over `files.atomic`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from bitextmine.files.atomic import staging, staging_folder, sync_file, sync_folder

__all__ = ["settle", "staged_files", "staged_folder"]


@contextlib.contextmanager
def staged_files(names: Sequence[Path]) -> Iterator[list[BinaryIO]]:
    """Files of one folder to write, which get their names when all are complete and safe on disk. OSError passes
    through."""
    with contextlib.ExitStack() as stack:
        staged = [stack.enter_context(staging(name)) for name in names]
        yield [file for _, file in staged]
        for _, file in staged:
            sync_file(file)
        for (temporary, _), name in zip(staged, names, strict=True):
            temporary.replace(name)
        sync_folder(names[0].parent)


@contextlib.contextmanager
def staged_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is complete.

    Where there is a folder of that name by then that is not empty, that one stays: another run was as fast. OSError
    passes through.
    """
    with staging_folder(place) as part:
        yield part
        try:
            settle(part, place)
        except OSError:
            if not place.exists():
                raise


def settle(part: Path, place: Path) -> None:
    """Gives a folder its name once its files are safe on disk; OSError where that is a folder that is not empty."""
    for path in part.iterdir():
        with path.open("rb") as file:
            sync_file(file)
    part.replace(place)
    sync_folder(place.parent)
