"""A vocabulary with further pieces, behind those that it has: their numbers stay what they were."""

from __future__ import annotations

import struct

import numpy as np

from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError

__all__ = ["grown_vocabulary"]


def grown_vocabulary(old: Tokenizer, new: Tokenizer, count: int) -> tuple[bytes, int]:
    """The SentencePiece model of ``old`` with the up to ``count`` likeliest pieces of ``new`` that it lacks, and how
    many there were.

    Both are unigram models (Kudo 2018, "Subword regularization"), whose scores are log-probabilities. What the new ones
    say is moved by the median difference of the pieces that both have, which makes up for the difference in size and
    text. Raises BitextmineError for an old one that is of another type.
    """
    known = dict(zip(old.pieces(), old.scores(), strict=True))
    if len(known) < 2 or _is_ranked(list(known.values())):
        raise BitextmineError(
            f"{old.path}: not a unigram vocabulary, to which vocabulary.grow could add pieces; leave it at 0"
        )
    found = [pair for pair in zip(new.pieces(), new.scores(), strict=True) if pair[0]]
    both = [known[piece] - score for piece, score in found if piece in known]
    shift = float(np.median(both)) if both else 0.0
    lowest = min(known.values())
    fresh = sorted(((-score, piece) for piece, score in found if piece not in known))[:count]
    added = b"".join(_piece(piece, max(lowest, shift - minus)) for minus, piece in fresh)
    return old.path.read_bytes() + added, len(fresh)


def _is_ranked(scores: list[float]) -> bool:
    """Whether scores are the ranks of a BPE model, 0, -1, -2 and so on, after the unknown piece."""
    return scores[1:] == [-float(i) for i in range(len(scores) - 1)]


def _piece(piece: str, score: float) -> bytes:
    """A piece in the protocol buffers of SentencePiece: field 1 of the model, which may follow any other field. In it
    field 1 is the text, field 2 the score, float32."""
    text = piece.encode()
    content = b"\x0a" + _number(len(text)) + text + b"\x15" + struct.pack("<f", score)
    return b"\x0a" + _number(len(content)) + content


def _number(value: int) -> bytes:
    """A base-128 number of protocol buffers."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
