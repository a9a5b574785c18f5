"""What commands make of encoders that there are: nothing is written over unasked, and nothing is left half written."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from bitextmine.encoder.folder import CONFIG, NGRAMS
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import staging_folder
from bitextmine.train.staging import settle

__all__ = ["check_file_output", "check_model_output", "model_output"]

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


def check_file_output(out: Path, force: bool) -> None:
    """Raises BitextmineError for a file that is there, unless ``force`` says that it may go; and for a folder."""
    if out.is_dir():
        raise BitextmineError(f"{out}: a folder is there; name a file")
    if not force and out.is_file():
        raise BitextmineError(
            f"{out}: it is there already; name another file, or pass --force to write over it"
        )


@contextlib.contextmanager
def model_output(out: Path, force: bool) -> Iterator[Path]:
    """A folder to fill with a model, which becomes ``out`` when it is complete.

    With ``force`` its files take the place of those of the same names in a folder that is there, config.json last, so
    that a folder cut short is not taken for a whole one; an n-gram file of the model before goes, other files stay.
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
    (out / NGRAMS).unlink(missing_ok=True)
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
