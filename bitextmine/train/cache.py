"""Tokenised pairs on disk: made once per text and vocabulary, read by memory map."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.manifest import read_json, write_json
from bitextmine.train.pairs import read_pairs
from bitextmine.train.recipe import Corpus, Recipe

__all__ = ["PairCache", "open_cache"]

CHUNK_PAIRS = 50_000
SIDES = ("src", "tgt")


@dataclasses.dataclass(frozen=True)
class PairCache:
    """n tokenised pairs of one corpus.

    src, tgt: Pieces over memory maps (n sentences each); keys: (2, n) uint64, equal for sentences of equal
    pieces (what in-batch negatives must not be); valid: rows held out, train: the others, (.,) int64;
    counts: pairs read, kept, and dropped by reason.
    """

    corpus: Corpus
    src: Pieces
    tgt: Pieces
    keys: np.ndarray
    train: np.ndarray
    valid: np.ndarray
    counts: dict[str, int]

    def side(self, number: int) -> Pieces:
        return self.tgt if number else self.src


def open_cache(
    folder: Path,
    recipe: Recipe,
    corpus: Corpus,
    tokenizer: Tokenizer,
    on_pairs: Callable[[int], object] = lambda n: None,
) -> PairCache:
    """Opens the corpus' cache in ``folder``, tokenising the corpus if the folder lacks it.

    A cache is known by a hash of the text, the vocabulary and the filter, so that none is ever stale.
    ``on_pairs`` is told how many pairs have been read since the last call.
    Raises BitextmineError when no pair is left after filtering.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / _key(recipe, corpus, tokenizer)
    manifest = Path(f"{stem}.json")
    if not manifest.exists():
        _build(stem, recipe, corpus, tokenizer, on_pairs)
    counts = {key: int(value) for key, value in read_json(manifest)["counts"].items()}
    if not counts["kept"]:
        reasons = ", ".join(f"{value} {key}" for key, value in counts.items() if key not in ("read", "kept"))
        raise BitextmineError(
            f"{corpus.name}: none of its {counts['read']} pairs is left after filtering ({reasons})"
        )
    pieces = [
        Pieces(
            np.load(f"{stem}.{side}.ids.npy", mmap_mode="r"),
            np.load(f"{stem}.{side}.offsets.npy", mmap_mode="r"),
        )
        for side in SIDES
    ]
    keys = np.load(f"{stem}.keys.npy", mmap_mode="r")
    train, valid = _split(keys[0], recipe.data.valid_pairs)
    return PairCache(corpus, pieces[0], pieces[1], keys, train, valid, counts)


def _split(keys: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train on and to hold out, told apart by the source's key: repeats of a sentence fall on
    one side, and a held-out sentence stays held out when the corpus grows."""
    share = min(wanted / max(1, len(keys)), 0.05)
    held_out = np.asarray(keys) % np.uint64(1 << 20) < np.uint64(int(share * (1 << 20)))
    valid = np.flatnonzero(held_out)
    # One row per sentence: a repeated query would have several right answers.
    _, first = np.unique(np.asarray(keys)[valid], return_index=True)
    return np.flatnonzero(~held_out), valid[np.sort(first)]


def _key(recipe: Recipe, corpus: Corpus, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256()
    for path in [corpus.pairs] if corpus.pairs else [corpus.src, corpus.tgt]:
        full = recipe.path(path)
        try:
            with full.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as e:
            raise BitextmineError(f"{full}: cannot be read: {e.strerror}") from None
    digest.update(hashlib.sha256(tokenizer.path.read_bytes()).digest())
    d = recipe.data
    rules = [d.errors, d.min_pieces, d.max_ratio, d.max_ratio_slack, recipe.model.max_pieces]
    digest.update(json.dumps(rules).encode())
    return digest.hexdigest()[:20]


def _build(
    stem: Path, recipe: Recipe, corpus: Corpus, tokenizer: Tokenizer, on_pairs: Callable[[int], object]
) -> None:
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32)
    counts = {"read": 0, "kept": 0, "too short": 0, "lengths too different": 0, "copied": 0}
    names = [f"{stem}.{side}.{what}.npy" for side in SIDES for what in ("ids", "offsets")] + [
        f"{stem}.keys.npy"
    ]
    temporary = [Path(f"{name}.part") for name in names]
    try:
        with contextlib.ExitStack() as stack:
            raw = [stack.enter_context(Path(f"{stem}.{side}.raw.part").open("w+b")) for side in SIDES]
            lengths: list[list[np.ndarray]] = [[], []]
            keys: list[list[np.ndarray]] = [[], []]
            for part in _chunks(read_pairs(recipe, corpus)):
                sides = [
                    tokenizer.encode([p[i] for p in part], recipe.model.max_pieces, threads=_threads())[0]
                    for i in (0, 1)
                ]
                keep = _filter(sides[0].lengths, sides[1].lengths, part, recipe, counts)
                for i in (0, 1):
                    kept = sides[i].take(keep)
                    raw[i].write(kept.ids.astype(dtype).tobytes())
                    lengths[i].append(kept.lengths)
                    keys[i].append(_sentence_keys(kept))
                on_pairs(len(part))
            for i in (0, 1):
                offsets = np.zeros(counts["kept"] + 1, dtype=np.int64)
                if counts["kept"]:
                    np.cumsum(np.concatenate(lengths[i]), out=offsets[1:])
                raw[i].flush()
                ids = (
                    np.memmap(raw[i], dtype=dtype, mode="r", shape=(int(offsets[-1]),))
                    if offsets[-1]
                    else np.zeros(0, dtype)
                )
                for array, path in ((ids, temporary[2 * i]), (offsets, temporary[2 * i + 1])):
                    with path.open("wb") as file:
                        np.save(file, array)
            with temporary[-1].open("wb") as file:
                np.save(file, np.stack([np.concatenate(k) if k else np.zeros(0, np.uint64) for k in keys]))
        for path, name in zip(temporary, names, strict=True):
            path.replace(name)
        write_json(
            Path(f"{stem}.json"), {"kind": "bitextmine-pair-cache", "corpus": corpus.name, "counts": counts}
        )
    except OSError as e:
        raise BitextmineError(f"{stem.parent}: cannot write the token cache: {e.strerror}") from e
    finally:
        for path in [*temporary, *(Path(f"{stem}.{side}.raw.part") for side in SIDES)]:
            path.unlink(missing_ok=True)


def _threads() -> int:
    return os.cpu_count() or 1


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    while part := list(itertools.islice(pairs, CHUNK_PAIRS)):
        yield part


def _filter(
    src: np.ndarray, tgt: np.ndarray, part: list[tuple[str, str]], recipe: Recipe, counts: dict[str, int]
) -> np.ndarray:
    """Row numbers of the pairs to keep; counts what goes, and why."""
    d = recipe.data
    short = np.minimum(src, tgt) < d.min_pieces
    slack = d.max_ratio_slack
    uneven = ~short & (np.maximum(src, tgt) + slack > d.max_ratio * (np.minimum(src, tgt) + slack))
    copied = np.fromiter((a == b for a, b in part), dtype=bool, count=len(part)) & ~short & ~uneven
    keep = np.flatnonzero(~(short | uneven | copied))
    counts["read"] += len(part)
    counts["kept"] += len(keep)
    counts["too short"] += int(short.sum())
    counts["lengths too different"] += int(uneven.sum())
    counts["copied"] += int(copied.sum())
    return keep


def _sentence_keys(pieces: Pieces) -> np.ndarray:
    """(n,) uint64, a 64-bit hash of each sentence's pieces, their order included (polynomial in an odd base,
    finished by splitmix64's mixer); computed by column, so that it is fast without a compiler."""
    keys = np.full(len(pieces), 0x9E3779B97F4A7C15, dtype=np.uint64)
    lengths = pieces.lengths
    order = np.argsort(-lengths, kind="stable")
    starts, sorted_lengths = pieces.offsets[:-1][order], lengths[order]
    state = keys[order]
    for column in range(int(sorted_lengths[0]) if len(order) else 0):
        live = int(np.searchsorted(-sorted_lengths, -column, side="left"))
        ids = pieces.ids[starts[:live] + column].astype(np.uint64)
        state[:live] = state[:live] * np.uint64(0xD1342543DE82EF95) + ids + np.uint64(1)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    keys[order] = state
    return keys
