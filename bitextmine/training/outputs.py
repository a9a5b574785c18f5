"""Outputs of training: nothing is overwritten unasked, and nothing is left half written."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from bitextmine.encoder.folder import CONFIG, NGRAMS, SCORER, TOKENIZER, WEIGHTS
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import staging, staging_folder, sync_file, sync_folder
from bitextmine.files.ours import Made, check_ours
from bitextmine.files.streams import check_writable

__all__ = [
    "CARD",
    "CHECKPOINT",
    "LOG",
    "PLOT",
    "RECIPE",
    "check_file_output",
    "check_model_output",
    "check_training_output",
    "model_output",
    "staged_files",
    "staged_folder",
]

# What a training writes besides the model itself.
CARD, RECIPE, LOG, PLOT = "README.md", "recipe.json", "log.jsonl", "training.png"
CHECKPOINT = "checkpoint.pt"  # in the folder work


# --- checks --------------------------------------------------------------------------------------------------


def check_model_output(out: Path, force: bool) -> None:
    """Raise BitextmineError if a model folder cannot be made; only with ``force`` may the folder hold files."""
    try:
        if out.exists() and not out.is_dir():
            raise BitextmineError(f"{out}: a file is there; name a folder for the encoder")
        if not force and out.is_dir() and any(out.iterdir()):
            raise _taken(out)
    except OSError as e:
        raise _unwritable(out, e) from None
    _check_folder(out.parent)


def check_training_output(out: Path, force: bool) -> None:
    """Raise BitextmineError if a model cannot be trained into a folder.

    Without ``force`` that includes a finished model whose checkpoint is gone, and files of other programs under the
    names of a model's files.
    """
    if out.exists() and not out.is_dir():
        raise BitextmineError(f"{out}: a file is there; name a folder for the encoder")
    _check_folder(out)
    if force:
        return
    instead = "train into another --out"
    for name, kind in {CONFIG: Made.MODEL, CARD: Made.CARD, RECIPE: Made.RECIPE, LOG: Made.LOG}.items():
        check_ours(out / name, kind, instead)
    begun = (out / RECIPE).exists()
    for name in (WEIGHTS, TOKENIZER, NGRAMS, PLOT):
        if (out / name).exists() and not begun and not (out / CONFIG).exists():
            raise BitextmineError(
                f"{out / name}: the file exists, and without a {RECIPE} beside it it is not known to come from a "
                f"training; move it away, {instead}, or pass --force"
            )
    if (out / CONFIG).exists() and not (out / "work" / CHECKPOINT).exists():
        raise BitextmineError(
            f"{out}: holds a finished model without the checkpoint to continue from; {instead}, or pass --force to "
            "overwrite it"
        )


def check_file_output(out: Path, force: bool) -> None:
    """Raise BitextmineError for a folder, and without ``force`` for a file that exists."""
    if out.is_dir():
        raise BitextmineError(f"{out}: a folder is there; name a file")
    if not force and out.is_file():
        raise BitextmineError(f"{out}: the file exists; name another one, or pass --force to overwrite it")
    check_writable(out)


def _check_folder(folder: Path) -> None:
    there = folder.resolve()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise _unwritable(folder, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


# --- writing -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def model_output(out: Path, force: bool) -> Iterator[Path]:
    """Yield a folder to fill with a model; it becomes ``out`` when the block ends.

    With ``force`` the files replace those in an existing folder, config.json last, so that an interrupted write is not
    taken for a model. N-grams and scorer of the earlier model are removed; other files stay.

    Raises:
        BitextmineError: as `check_model_output`, or the disk is full.
    """
    check_model_output(out, force)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(out) as part:
            yield part
            try:
                _settle(part, out)
            except OSError as e:
                if e.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                if not force:  # made since the check
                    raise _taken(out) from None
                for name in (CONFIG, NGRAMS, SCORER):
                    (out / name).unlink(missing_ok=True)
                for path in sorted(part.iterdir(), key=lambda path: path.name == CONFIG):
                    path.replace(out / path.name)
    except OSError as e:
        raise _unwritable(out, e) from None


@contextlib.contextmanager
def staged_files(names: Sequence[Path]) -> Iterator[list[BinaryIO]]:
    """Yield files of one folder to write; they get their names when all are safe on disk. OSError passes through."""
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
    """Yield a folder to fill; it gets its name when complete, unless another run was faster. OSError passes through."""
    with staging_folder(place) as part:
        yield part
        try:
            _settle(part, place)
        except OSError:
            if not place.exists():
                raise


def _settle(part: Path, place: Path) -> None:
    """Rename a folder once its files are safe on disk; OSError if ``place`` is a folder with files."""
    for path in part.iterdir():
        with path.open("rb") as file:
            sync_file(file)
    part.replace(place)
    sync_folder(place.parent)


def _taken(out: Path) -> BitextmineError:
    return BitextmineError(
        f"{out}: the folder is not empty; name another one, or pass --force to overwrite the model in it"
    )


def _unwritable(out: Path, e: OSError) -> BitextmineError:
    return BitextmineError(f"{out}: cannot write: {e.strerror or e}; free some space, or name another place")
