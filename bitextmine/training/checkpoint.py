"""Checkpoints: everything a killed run needs to go on, in one file that is replaced atomically."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import FULL_DISK, replacing

__all__ = ["load_checkpoint", "save_checkpoint"]


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Writes tensors and plain values; the same content gives the same bytes.

    Raises BitextmineError when the disk is full; the checkpoint before it then stays.
    """
    try:
        with replacing(path) as file:
            torch.save(_plain(content), file)
    except (OSError, RuntimeError) as e:
        # torch reports a failed write as a RuntimeError of its archive writer.
        if isinstance(e, OSError) and e.errno not in FULL_DISK:
            raise BitextmineError(f"{path}: cannot be written: {e.strerror}") from e
        raise BitextmineError(
            f"{path}: cannot be written: the disk is full; make room and run the same command again to go on"
        ) from e


def load_checkpoint(path: Path, digest: str) -> dict[str, Any] | None:
    """The checkpoint at ``path``, None if there is none. Only tensors and plain values are ever unpickled.

    Raises BitextmineError for a damaged file and for one of another recipe than ``digest``.
    """
    if not path.exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        found = content["recipe"]
    except Exception as e:  # whatever a damaged archive raises
        raise BitextmineError(
            f"{path}: not a readable checkpoint ({e}); remove it to train from the start"
        ) from e
    if found != digest:
        raise BitextmineError(
            f"{path}: a checkpoint of another recipe ({found}, this one is {digest}); "
            "train into another --out, or give --force to train from the start"
        )
    return dict(content)


def _plain(value: Any) -> Any:
    """The same value, in containers of its own, its strings shared.

    Pickle writes what it has met before as a reference: without this the bytes would tell which equal strings were one
    object, and they are not when they come from a checkpoint.
    """
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value
