"""Outputs of training: nothing is overwritten unasked, and nothing is left half written."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitextmine.encoder.folder import CONFIG
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import cannot_write, replacing, staging_folder, sync_file, sync_folder

# What a training writes besides the model itself.
CARD, RECIPE, LOG = "README.md", "recipe.json", "log.jsonl"
CHECKPOINT = "checkpoint.pt"  # in the folder work


# --- checks --------------------------------------------------------------------------------------------------


def check_model_output(out: Path, force: bool) -> None:
    """Raise BitextmineError if a model folder cannot be made.

    Only with ``force`` may the folder hold files, unless they are of an interrupted training.
    """
    try:
        if out.exists() and not out.is_dir():
            raise BitextmineError(f"{out}: a file is there; name a folder for the encoder")
        work = out / "work"  # a finished model without its checkpoint would be overwritten
        begun = work.is_dir() and ((work / CHECKPOINT).exists() or not (out / CONFIG).exists())
        if not force and not begun and out.is_dir() and any(out.iterdir()):
            raise BitextmineError(
                f"{out}: the folder is not empty; name another one, or pass --force to overwrite the model in it"
            )
    except OSError as e:
        raise cannot_write(e, out) from None
    there = next(path for path in (out, *out.resolve().parents) if path.exists())
    code = errno.EACCES if there.is_dir() else errno.ENOTDIR
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise cannot_write(OSError(code, os.strerror(code)), out)


# --- writing -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to fill; it gets its name when complete, unless another run was faster. OSError passes through."""
    with staging_folder(target) as part:
        yield part
        for path in part.iterdir():
            with path.open("rb") as file:
                sync_file(file)
        try:
            part.replace(target)
        except OSError:
            if not target.exists():
                raise
        sync_folder(target.parent)


# --- the log -------------------------------------------------------------------------------------------------


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log.jsonl up to the first that is not complete."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError):
            break
        entries.append(entry)
    return entries


def cut_log(path: Path, step: int) -> None:
    """Drop entries that a killed run logged after its checkpoint of ``step``. OSError passes through."""
    if path.exists():
        kept = [entry for entry in read_log(path) if entry["step"] <= step]
        with replacing(path) as file:
            file.write("".join(f"{json.dumps(entry)}\n" for entry in kept).encode())
