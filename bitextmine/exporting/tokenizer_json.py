"""A SentencePiece vocabulary as a tokenizer.json of the tokenizers library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError

PAD = "<pad>"
SPACE = "\u2581"
UNIGRAM, NORMAL, UNKNOWN = 1, 1, 2


def write_tokenizer(model: Path, path: Path, *, max_pieces: int, pad: bool) -> None:
    """Write a tokenizer.json that cuts text into the same pieces, `max_pieces` at most.

    The library applies the rules of normalisation cluster by cluster, SentencePiece letter by letter: text with rare
    combining signs may be cut in another way.

    Args:
        model: the SentencePiece model.
        path: the file to write.
        max_pieces: the longest sentence.
        pad: piece 0 is padding, and each piece's number is one more than in the model.

    Raises:
        BitextmineError: the library is missing, or cannot express the vocabulary.
    """
    try:
        import tokenizers
    except ImportError:
        raise BitextmineError(
            "export needs the tokenizers library: pip install 'bitextmine[transformers]'"
        ) from None
    unknown, rules = read_rules(model)
    known = Tokenizer(model)
    pieces = list(zip(known.names(), known.scores(), strict=True))
    if pad:
        pieces.insert(0, (PAD, 0.0))
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=unknown + pad, byte_fallback=False))
    normalizers = tokenizers.normalizers
    steps = [normalizers.Precompiled(rules)] if rules else []
    spaces = [normalizers.Replace(tokenizers.Regex(" {2,}"), " "), normalizers.Strip()]
    made.normalizer = normalizers.Sequence([*steps, *spaces])
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
    made.decoder = tokenizers.decoders.Metaspace(SPACE, prepend_scheme="always")
    made.enable_truncation(max_pieces)
    made.save(str(path))


def read_rules(path: Path) -> tuple[int, bytes]:
    """Return the id of the unknown piece and the compiled rules of normalisation (b"" for none).

    The file is a protocol buffer, sentencepiece_model.proto of SentencePiece; the few fields needed are read here.

    Raises:
        BitextmineError: the vocabulary is not a plain unigram one, with the usual treatment of spaces.
    """
    kinds: list[int] = []
    model, rules, plain = UNIGRAM, b"", True
    try:
        for number, value in _fields(path.read_bytes()):
            if number == 1:
                kinds.append(dict(_fields(value)).get(3, NORMAL))
            elif number == 2:
                model = dict(_fields(value)).get(3, UNIGRAM)
            elif number == 3:
                fields = dict(_fields(value))
                rules = fields.get(2, b"")
                plain = all(fields.get(flag, 1) for flag in (3, 4, 5))  # spaces: put before, joined, escaped
    except (OSError, IndexError, ValueError, TypeError) as e:
        raise BitextmineError(f"{path}: not a readable SentencePiece model ({e!r})") from None
    if model != UNIGRAM or not plain or set(kinds) != {NORMAL, UNKNOWN} or kinds.count(UNKNOWN) != 1:
        raise BitextmineError(
            f"{path}: not a plain unigram vocabulary, as vocabulary.type 'unigram' makes them: the tokenizers library "
            "would cut text in other ways"
        )
    return kinds.index(UNKNOWN), rules


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field: a whole number, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, at = _varint(data, at)
        elif not size:
            raise ValueError(f"wire type {wire}")
        if at + size > len(data):
            raise ValueError("cut short")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return found, at
