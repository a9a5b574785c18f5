"""Recognise URLs. The command line reads this module, so it imports nothing heavy."""

from __future__ import annotations

import os
import re

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_remote(path: object) -> bool:
    """Return True for a URL, such as s3://bucket/corpus.fr."""
    return isinstance(path, (str, os.PathLike)) and _URL.match(os.fsdecode(path)) is not None
