"""Recognise files that this program made, so they may be made anew: by their content, not by their name.

A file that a person names as an output (``-o FILE``) is overwritten, as by any other program. Files with derived
names, beside a corpus or in a model folder, are overwritten only if they are ours, or empty.
"""

import os
import re
from enum import Enum

from bitextmine.errors import BitextmineError, explained
from bitextmine.files.json_toml import read_json
from bitextmine.files.storage import AnyPath, Remote, reading

_HEAD = 256
_FLOAT16 = rb"\x93NUMPY\x01\x00..\{'descr': '<f2', 'fortran_order': False, 'shape': \(\d+, \d+\), \}"


class Made(Enum):
    """The kinds of files that this program makes, each with a description and a mark.

    The mark is the kind in a manifest, a set of keys, or a pattern of the first bytes.
    """

    PAIRS = "a manifest of mined pairs", "bitext"
    EMBEDDING = "an embedding manifest", "embedding"
    STATE = "a journal of an unfinished embedding", rb'\{"journal": 1, "job": "embed"'
    VECTORS = "vectors of an embedding (float16, a row per line)", _FLOAT16
    INDEX = "an index manifest", "index"
    FAISS = "an index", b"I"  # FAISS marks indexes with four letters: IxFI, IwFl, IHNf
    SEARCH = "a search journal", rb'\{"journal": 1, "job": "search"'
    MODEL = "an encoder configuration", "bitextmine-encoder"
    CARD = "an encoder card", b"# A bitextmine encoder"
    RECIPE = "a training recipe", frozenset({"data", "model", "train", "vocabulary"})
    LOG = "a training log", rb'\{"step": '

    def __init__(self, words: str, mark: str | bytes | frozenset[str]) -> None:
        self.words, self.mark = words, mark


def is_ours(path: AnyPath, made: Made) -> bool:
    """Return True for a file of that kind, or an empty one.

    Nothing but zero bytes at the head, as a power cut leaves them, counts as empty.
    """
    with explained(f"{path}: cannot read"):
        if not path.is_file():
            return False
        with reading(path) as file:
            head = file.read(_HEAD)
    if not head.strip(b"\0"):
        return True
    if isinstance(made.mark, bytes):
        return re.match(made.mark, head, re.S) is not None
    try:
        content = read_json(path)
    except BitextmineError:
        return False
    return content.get("kind") == made.mark if isinstance(made.mark, str) else made.mark <= content.keys()


def check_ours(path: AnyPath, made: Made, instead: str) -> None:
    """Raise BitextmineError if a file has that name already and is not of that kind.

    instead: an alternative to moving it away and to --force, for the message.
    """
    there = path.exists() if isinstance(path, Remote) else os.path.lexists(path)
    if there and not is_ours(path, made):
        raise foreign(path, f"is not {made.words}", instead)


def foreign(path: AnyPath, holds: str, instead: str) -> BitextmineError:
    """Return the error for a file of another program; the arguments complete its sentence."""
    return BitextmineError(
        f"{path}: already exists and {holds}, so it was not overwritten; move it away, {instead}, "
        "or pass --force"
    )
