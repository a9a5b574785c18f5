"""Pairs of two languages, joined from two corpora by the sentences that both have in a third language."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Sequence

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.cache import PairCache
from bitextmine.training.pairfile import PairFile, TokenPairs
from bitextmine.training.recipe import Corpus
from bitextmine.training.sampling import Source

log = logging.getLogger(__name__)

# Fewer pairs than this would be the same batch again and again.
FEWEST_PAIRS = 500
BLOCK = 1 << 19


@dataclasses.dataclass(frozen=True)
class _Column:
    """The sentences of one language that have a translation in the pivot language.

    keys: (n,) uint64 of the pivot's sentences, sorted and distinct; file and row: (n,) int64, the place of each pair;
    side: for each file, 0 or 1, the language's column.
    """

    keys: np.ndarray
    file: np.ndarray
    row: np.ndarray
    side: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class JoinedPairs:
    """n pairs in the order of their key; ``places`` (2, 2, n) int64: for each language the file and the row."""

    files: Sequence[PairFile]
    places: np.ndarray
    sides: tuple[tuple[int, ...], tuple[int, ...]]

    def __len__(self) -> int:
        return self.places.shape[2]

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        """Return the pairs of ``rows`` (m,) int, in that order, each sentence cut to ``max_pieces``."""
        (src, src_keys), (tgt, tgt_keys) = (
            self._side(self.places[i][:, rows], self.sides[i], max_pieces) for i in (0, 1)
        )
        return TokenPairs(src, tgt, np.stack([src_keys, tgt_keys]))

    def _side(
        self, places: np.ndarray, sides: tuple[int, ...], max_pieces: int | None
    ) -> tuple[Pieces, np.ndarray]:
        parts, keys, order = [], [], []
        for number in np.unique(places[0]):
            at = np.flatnonzero(places[0] == number)
            pairs = self.files[number].take(places[1][at], max_pieces)
            parts.append((pairs.src, pairs.tgt)[sides[number]])
            keys.append(pairs.keys[sides[number]])
            order.append(at)
        back = np.argsort(np.concatenate(order), kind="stable")
        return Pieces.join(parts).take(back), np.concatenate(keys)[back]


def join_languages(caches: Sequence[PairCache], pivot: str, share: float) -> list[Source]:
    """Join the training pairs of every two languages by their sentences in the language ``pivot``.

    Nothing is written: joined pairs are read from the files of both corpora. Their weights are such that they make up
    ``share`` of all pairs drawn, and that two languages are drawn by the square root of their joined pairs.
    """
    files = [cache.train for cache in caches]
    languages = sorted({lang for cache in caches for lang in cache.corpus.langs} - {pivot})
    columns = {lang: _column(caches, pivot, lang) for lang in languages}
    found: dict[tuple[str, str], JoinedPairs] = {}
    for langs in itertools.combinations(languages, 2):
        a, b = (columns[lang] for lang in langs)
        _, i, j = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
        if len(i) >= FEWEST_PAIRS:
            places = np.array([[a.file[i], a.row[i]], [b.file[j], b.row[j]]])
            found[langs[0], langs[1]] = JoinedPairs(files, places, (a.side, b.side))
    if not found:
        return []
    direct = sum(len(cache.train) * cache.corpus.weight for cache in caches)
    roots = sum(len(pairs) ** 0.5 for pairs in found.values())
    scale = share / (1 - share) * direct / roots
    pairs = sum(map(len, found.values()))
    log.info(
        "%d pairs of languages joined by their sentences in %s: %s pairs", len(found), pivot, f"{pairs:,}"
    )
    return [
        Source(Corpus(langs, f"{'-'.join(langs)} by {pivot}", weight=scale * len(joined) ** -0.5), joined)
        for langs, joined in found.items()
    ]


def _column(caches: Sequence[PairCache], pivot: str, lang: str) -> _Column:
    none = np.zeros(0, np.int64)
    keys, file, row, sides = [none.astype(np.uint64)], [none], [none], []
    for number, cache in enumerate(caches):
        langs = cache.corpus.langs
        sides.append(langs.index(lang) if lang in langs else 0)
        if {pivot, lang} != set(langs):
            continue
        for start in range(0, len(cache.train), BLOCK):
            records = cache.train.records(start, start + BLOCK)
            keys.append(records["keys"][:, langs.index(pivot)])
            file.append(np.full(len(records), number))
            row.append(np.arange(start, start + len(records)))
    distinct, first = np.unique(np.concatenate(keys), return_index=True)
    return _Column(distinct, np.concatenate(file)[first], np.concatenate(row)[first], tuple(sides))
