"""What is in a SentencePiece model that the tokenizers library needs to know.

The file is a protocol buffer, sentencepiece_model.proto of SentencePiece; the few fields wanted are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError

__all__ = ["SentencePieceModel", "read_sentencepiece"]

UNIGRAM = 1
NORMAL, UNKNOWN = 1, 2


@dataclass(frozen=True)
class SentencePieceModel:
    """A unigram vocabulary: pieces with their log-probabilities, which of them is the unknown one, and the rules that
    normalise text, compiled ("" for none)."""

    pieces: list[tuple[str, float]]
    unknown: int
    rules: bytes


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Raises BitextmineError for a vocabulary that is not a plain unigram one, with spaces handled as usual."""
    pieces: list[tuple[str, float]] = []
    unknown: list[int] = []
    kind, rules = UNIGRAM, b""
    plain = True
    try:
        for number, value in _fields(path.read_bytes()):
            if number == 1:
                fields = dict(_fields(value))
                score = struct.unpack("<f", fields[2])[0] if 2 in fields else 0.0
                of = fields.get(3, NORMAL)
                plain &= of in (NORMAL, UNKNOWN)
                if of == UNKNOWN:
                    unknown.append(len(pieces))
                pieces.append((fields[1].decode("utf-8"), score))
            elif number == 2:
                kind = dict(_fields(value)).get(3, UNIGRAM)
            elif number == 3:
                fields = dict(_fields(value))
                rules = fields.get(2, b"")
                plain &= all(fields.get(flag, 1) for flag in (3, 4, 5))  # spaces: put before, joined, escaped
    except (OSError, IndexError, KeyError, ValueError, struct.error) as e:
        raise BitextmineError(f"{path}: not a SentencePiece model that can be read ({e!r})") from None
    if kind != UNIGRAM or not plain or len(unknown) != 1:
        raise BitextmineError(
            f"{path}: not a plain unigram vocabulary, as vocabulary.type 'unigram' makes them: the tokenizers library "
            "would cut text in other ways"
        )
    return SentencePieceModel(pieces, unknown[0], rules)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field: whole numbers, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("cut short")
            value, at = data[at : at + size], at + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {wire}")
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return found, at
