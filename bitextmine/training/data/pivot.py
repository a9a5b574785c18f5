"""Pairs of two languages, joined by their sentences in a third (data.pivot)."""

import dataclasses
import itertools
import logging
from collections.abc import Sequence

import numpy as np

from bitextmine.encoder.pieces import Pieces
from bitextmine.training.data.cache import PairCache
from bitextmine.training.data.pairfile import TokenPairs, blocks
from bitextmine.training.data.sampling import PairSource
from bitextmine.training.recipe import PairCorpus

log = logging.getLogger(__name__)

# Pairs of two languages that are joined: fewer would be the same batch again and again.
FEWEST_PAIRS = 500


@dataclasses.dataclass(frozen=True)
class JoinedPairs:
    """n pairs of two languages, in the order of their key.

    places (2, 2, n) int64: for each language the number of the corpus and the row of the sentence.
    """

    caches: Sequence[PairCache]
    langs: tuple[str, str]
    places: np.ndarray

    def __len__(self) -> int:
        return self.places.shape[2]

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> TokenPairs:
        """Return the pairs of ``rows`` (m,) int, in that order, each sentence cut to ``max_pieces``."""
        (src, src_keys), (tgt, tgt_keys) = (self._side(i, rows, max_pieces) for i in (0, 1))
        return TokenPairs(src, tgt, np.stack([src_keys, tgt_keys]))

    def _side(self, i: int, rows: np.ndarray, max_pieces: int | None) -> tuple[Pieces, np.ndarray]:
        corpora, places = self.places[i][:, rows]
        parts, keys = [], []
        for number in np.unique(corpora):
            pairs = self.caches[number].train.take(places[corpora == number], max_pieces)
            side = self.caches[number].corpus.langs.index(self.langs[i])
            parts.append((pairs.src, pairs.tgt)[side])
            keys.append(pairs.keys[side])
        back = np.argsort(np.argsort(corpora, kind="stable"))
        return Pieces.join(parts).take(back), np.concatenate(keys)[back]


def join_languages(caches: Sequence[PairCache], pivot: str, share: float) -> list[PairSource]:
    """Join the training pairs of every two languages by their sentences in the language ``pivot``.

    Nothing is written: joined pairs are read from the files of both corpora. Their weights are such that they make up
    ``share`` of all pairs drawn, and that two languages are drawn by the square root of their joined pairs.
    """
    languages = sorted({lang for cache in caches for lang in cache.corpus.langs} - {pivot})
    sentences = {lang: _sentences(caches, pivot, lang) for lang in languages}
    by_langs: dict[tuple[str, str], JoinedPairs] = {}
    for langs in itertools.combinations(languages, 2):
        (a, a_places), (b, b_places) = (sentences[lang] for lang in langs)
        _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
        if len(i) >= FEWEST_PAIRS:
            by_langs[langs] = JoinedPairs(caches, langs, np.stack([a_places[:, i], b_places[:, j]]))
    if not by_langs:
        return []
    direct = sum(len(cache.train) * cache.corpus.weight for cache in caches)
    roots = sum(len(pairs) ** 0.5 for pairs in by_langs.values())
    scale = share / (1 - share) * direct / roots
    pairs = sum(map(len, by_langs.values()))
    log.info(
        "%d pairs of languages joined by their sentences in %s: %s pairs", len(by_langs), pivot, f"{pairs:,}"
    )
    sources = []
    for langs, joined in by_langs.items():
        name, weight = f"{'-'.join(langs)} by {pivot}", scale * len(joined) ** -0.5
        sources.append(PairSource(PairCorpus(langs, name, weight=weight), joined))
    return sources


def _sentences(caches: Sequence[PairCache], pivot: str, lang: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys (m,) of the pivot's sentences with a translation, and their places (2, m), sorted."""
    keys, places = [np.zeros(0, np.uint64)], [np.zeros((2, 0), np.int64)]
    for number, cache in enumerate(caches):
        if {pivot, lang} == set(cache.corpus.langs):
            for row, records in blocks(cache.train):
                keys.append(records["keys"][:, cache.corpus.langs.index(pivot)])
                places.append(np.stack([np.full(len(records), number), row + np.arange(len(records))]))
    distinct, first = np.unique(np.concatenate(keys), return_index=True)
    return distinct, np.concatenate(places, axis=1)[:, first]
