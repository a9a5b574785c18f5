"""What the tests of several kinds of files use."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import zstandard

from bitextmine.files.formats.table import open_table

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def pairs_in(path, columns=None):
    """The pairs of a file, or the reason why a row is none."""
    table = open_table(path, columns)
    found: list[tuple[str, str] | str] = []
    for block in table.blocks(3):
        bad, at = block.bad(), range(len(block))
        sides = (block.texts(side, at) for side in (table.layout.src, table.layout.tgt))
        found += [bad.get(row) or pair for row, pair in enumerate(zip(*sides, strict=True))]
    return found
