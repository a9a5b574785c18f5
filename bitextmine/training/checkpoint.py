"""Checkpoints of a training: tensors and plain values."""

import sys
from pathlib import Path
from typing import Any

import torch

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import FULL_DISK, replacing


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Save tensors and plain values atomically, the same content as the same bytes."""
    try:
        with replacing(path) as file:
            torch.save(_plain(content), file)
    except (OSError, RuntimeError) as e:
        # torch reports a failed write as a RuntimeError of its archive writer.
        why = "the disk is full; make room and run the same command again to go on"
        if isinstance(e, OSError) and e.errno not in FULL_DISK:
            why = e.strerror or str(e)
        raise BitextmineError(f"{path}: cannot write: {why}") from e


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint; only tensors and plain values are unpickled. BitextmineError for a damaged file."""
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as e:  # a damaged archive may raise anything
        raise BitextmineError(
            f"{path}: not a readable checkpoint ({e}); remove it to train from the start"
        ) from e


def _plain(value: Any) -> Any:
    """Copy containers and intern strings.

    Pickle writes an object that it has met as a reference: without this the bytes would depend on which equal strings
    are one object, which differs after a resume.
    """
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value
