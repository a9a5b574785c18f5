"""What commands make of encoders that there are: nothing is written over unasked, and nothing is left half written."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from bitextmine.encoder.folder import CONFIG, NGRAMS, SCORER, TOKENIZER, WEIGHTS
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import staging_folder
from bitextmine.files.ours import Made, check_ours
from bitextmine.files.streams import check_writable
from bitextmine.training.staging import settle

__all__ = [
    "CARD",
    "RECIPE",
    "check_file_output",
    "check_model_output",
    "check_training_output",
    "model_output",
]

# What a training makes beside the model itself.
CARD, RECIPE, LOG, PLOT = "README.md", "recipe.json", "log.jsonl", "training.png"
CHECKPOINT = "work/checkpoint.pt"

TAKEN = {errno.ENOTEMPTY, errno.EEXIST}


def check_model_output(out: Path, force: bool) -> None:
    """Raises BitextmineError where a model folder cannot be made: at a file, and at a folder that is not empty, unless
    ``force`` says that the model in it may go."""
    try:
        if out.exists() and not out.is_dir():
            raise BitextmineError(f"{out}: a file is there; name a folder for the encoder")
        if not force and out.is_dir() and any(out.iterdir()):
            raise _taken(out)
    except OSError as e:
        raise _unwritable(out, e) from None
    _check_folder(out.parent)


def check_training_output(out: Path, force: bool) -> None:
    """Raises BitextmineError where a model cannot be trained into a folder: at a file, where nothing may be written,
    and, unless ``force`` says that it may go, where a finished model is without the checkpoint that this run would
    begin from, or a file that no training made has a name that the model will need."""
    if out.exists() and not out.is_dir():
        raise BitextmineError(f"{out}: a file is there; name a folder for the encoder")
    _check_folder(out)
    if force:
        return
    instead = "train into another --out"
    made = {CONFIG: Made.MODEL, CARD: Made.CARD, RECIPE: Made.RECIPE, LOG: Made.LOG}
    for name, kind in made.items():
        check_ours(out / name, kind, instead)
    begun = (out / RECIPE).exists()
    for name in (WEIGHTS, TOKENIZER, NGRAMS, PLOT):
        if (out / name).exists() and not begun and not (out / CONFIG).exists():
            raise BitextmineError(
                f"{out / name}: it is there already and no {RECIPE} beside it says that a training made it; move it "
                f"away, {instead}, or pass --force"
            )
    if (out / CONFIG).exists() and not (out / CHECKPOINT).exists():
        raise BitextmineError(
            f"{out}: a finished model is there, without the checkpoint to go on from; {instead}, or pass --force to "
            "train anew over it"
        )


def _check_folder(folder: Path) -> None:
    """Raises BitextmineError for a folder that is not there and cannot be made, or cannot be written to."""
    there = folder.resolve()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise _unwritable(folder, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def check_file_output(out: Path, force: bool) -> None:
    """Raises BitextmineError for a file that is there, unless ``force`` says that it may go; and for a folder."""
    if out.is_dir():
        raise BitextmineError(f"{out}: a folder is there; name a file")
    if not force and out.is_file():
        raise BitextmineError(
            f"{out}: it is there already; name another file, or pass --force to write over it"
        )
    check_writable(out)


@contextlib.contextmanager
def model_output(out: Path, force: bool) -> Iterator[Path]:
    """A folder to fill with a model, which becomes ``out`` when it is complete.

    With ``force`` its files take the place of those of the same names in a folder that is there, config.json last, so
    that a folder cut short is not taken for a whole one; what the model before had beside these (n-grams, a scorer)
    goes, other files stay.
    Raises BitextmineError as `check_model_output` does, and for a disk that is full or not to be written to.
    """
    check_model_output(out, force)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(out) as part:
            yield part
            try:
                settle(part, out)
            except OSError as e:
                if e.errno not in TAKEN:
                    raise
                if not force:  # made since the check
                    raise _taken(out) from None
                _move_into(part, out)
    except OSError as e:
        raise _unwritable(out, e) from None


def _move_into(part: Path, out: Path) -> None:
    (out / CONFIG).unlink(missing_ok=True)
    for name in (NGRAMS, SCORER):
        (out / name).unlink(missing_ok=True)
    for path in sorted(part.iterdir(), key=lambda path: path.name == CONFIG):
        path.replace(out / path.name)


def _taken(out: Path) -> BitextmineError:
    return BitextmineError(
        f"{out}: the folder is not empty; name another one, or pass --force to write over the model in it"
    )


def _unwritable(out: Path, e: OSError) -> BitextmineError:
    return BitextmineError(
        f"{out}: cannot be written: {e.strerror or e}; free some space, or name another place"
    )
