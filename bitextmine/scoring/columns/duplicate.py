"""Keys shared by duplicate pairs."""

from __future__ import annotations

import hashlib

from bitextmine.mining.dedup import line_key


def pair_hash(src: str, tgt: str, level: str) -> int:
    """Return 64 bits that equal pairs share, the same in every run; `level` is that of `dedup.line_key`."""
    text = f"{line_key(src, level)}\t{line_key(tgt, level)}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def pair_key(src: str, tgt: str) -> str:
    """Return 16 hexadecimal digits shared by pairs that differ in case, digits, punctuation and blanks alone."""
    return f"{pair_hash(src, tgt, 'near'):016x}"
