"""Whether a name is a URL. For the command line, too: nothing heavy is imported."""

from __future__ import annotations

import os
import re

__all__ = ["is_remote"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_remote(path: object) -> bool:
    """Whether a name is a URL, as s3://bucket/corpus.fr is."""
    return isinstance(path, (str, os.PathLike)) and _URL.match(os.fsdecode(path)) is not None
