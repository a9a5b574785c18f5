"""Folders that keep what is finished of a piece of work, beside the file that all of it will go into."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import plain, read_json, write_json

__all__ = ["Work", "WorkFolder", "remove_work"]

_PLAN = "plan.json"


class Work(StrEnum):
    """What a folder holds; its plan.json says so."""

    SHARDS = "bitextmine shards"  # of an embedding
    TILES = "bitextmine tiles"  # of a search


class WorkFolder:
    """A folder for what workers have finished, of one piece of work; `plan.json` in it says of which. What lies there
    of the same work is kept, of another it is removed. kind: what plan.json calls such work.

    Raises BitextmineError for a folder that this program did not make, and where none can be made.
    """

    def __init__(self, path: Path, kind: Work, identity: Mapping[str, Any]) -> None:
        self.path = path
        plan = {"kind": str(kind), **plain(identity)}
        found = None
        if os.path.lexists(path):
            with contextlib.suppress(BitextmineError):
                found = read_json(path / _PLAN)
            if not path.is_dir() or ((found or {}).get("kind") != kind and _has_files(path)):
                raise BitextmineError(
                    f"{path}: it is there already and is not a folder of unfinished work; move it away"
                )
            if found != plan:
                shutil.rmtree(path)
        if found != plan:
            try:
                path.mkdir(exist_ok=True)
            except OSError as e:
                raise BitextmineError(f"{path}: cannot make this folder: {e.strerror or e}") from None
            write_json(path / _PLAN, plan)

    def remove(self) -> None:
        """Removes the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def _has_files(folder: Path) -> bool:
    """Whether there is more in it than what a killed run left of its plan."""
    return any(not file.name.startswith(f".{_PLAN}") for file in folder.iterdir())


def remove_work(path: Path, kind: Work) -> None:
    """Removes a folder of that kind, which another run has left behind; one of any other stays."""
    if path.is_dir():
        with contextlib.suppress(BitextmineError):
            if read_json(path / _PLAN).get("kind") == kind:
                shutil.rmtree(path, ignore_errors=True)
