"""Files and folders that get their names when they are complete; what killed runs left half made is swept away."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

__all__ = ["part_folder", "settle", "staged_files", "staged_folder", "sweep"]


@contextlib.contextmanager
def staged_files(names: Sequence[Path]) -> Iterator[list[BinaryIO]]:
    """Files to write, which get their names when all are complete and safe on disk. OSError passes through."""
    parts = [_part(name) for name in names]
    try:
        with contextlib.ExitStack() as stack:
            files: list[BinaryIO] = [stack.enter_context(part.open("wb")) for part in parts]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for part, name in zip(parts, names, strict=True):
            part.replace(name)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def staged_folder(place: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is complete.

    Where there is a folder of that name by then that is not empty, that one stays: another run was as fast. OSError
    passes through.
    """
    with part_folder(place) as part:
        yield part
        try:
            settle(part, place)
        except OSError:
            if not place.exists():
                raise


@contextlib.contextmanager
def part_folder(place: Path) -> Iterator[Path]:
    """A folder to fill beside ``place``, which is removed at the end, unless it has been renamed by then."""
    part = _part(place)
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def settle(part: Path, place: Path) -> None:
    """Gives a folder its name once its files are safe on disk; OSError where that is a folder that is not empty."""
    for path in part.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    part.replace(place)


def sweep(folder: Path, name: str = "*") -> None:
    """Removes what killed runs of this machine left half made in a folder (``name``: only of that file or folder); one
    of them may have had this process' number."""
    for path in folder.glob(f"{name}.{platform.node()}.*.part"):
        number = path.name.split(".")[-2]
        if number.isdigit() and (int(number) == os.getpid() or not _alive(int(number))):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _part(name: Path) -> Path:
    """What a file is called while it is written: the name tells the process, so that others may use the folder."""
    return name.with_name(f"{name.name}.{platform.node()}.{os.getpid()}.part")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
