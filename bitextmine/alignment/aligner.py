"""Align two documents, given as lines or as vectors of windows.

The score of a link is the log odds that its sides are translations of each other, the scale of `mine`: a logistic
regression on the likeness of the link (1 - distance, see `costs`), that of the whole document, and the evidence of
pieces that the link misses. It was fitted to links found in documents aligned by hand, in made ones, and between
documents that have nothing to do with each other (mine/alignment.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.costs import Tick
from bitextmine.alignment.evidence import Evidence
from bitextmine.alignment.search import Found, Settings, find_path
from bitextmine.alignment.windows import Form, Windows, make_windows
from bitextmine.encoder.encoder import Encoder

LOWEST, HIGHEST = -10.0, 10.0
# Of the likeness, that of the document, the evidence missed per sentence, and the constant.
_WEIGHTS = (6.1, 8.0, -0.5, -5.1)
# The mean probability of unrelated documents' links is far below.
_UNRELATED = 0.3


class Link(NamedTuple):
    """Lines that belong together, counted from 0; one side of a line left out is empty. score: see `Alignment`."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Alignment:
    """An alignment of two documents: every line that is not blank is in one link, in order on both sides.

    Only a line without words that interrupts a link comes after it, on its own.

    Attributes:
        src_ends, tgt_ends: (links + 1,) int64; link i holds the sentences from ends[i] to ends[i + 1] - 1.
        score: (links,) float64 log odds; `LOWEST` for a sentence left out.
        src_lines, tgt_lines: int64, the line (from 0) of each sentence.
    """

    src_ends: NDArray[np.int64]
    tgt_ends: NDArray[np.int64]
    score: NDArray[np.float64]
    src_lines: NDArray[np.int64]
    tgt_lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.score)

    def __iter__(self) -> Iterator[Link]:
        src, tgt = self.src_lines.tolist(), self.tgt_lines.tolist()
        x, y = self.src_ends.tolist(), self.tgt_ends.tolist()
        for i, score in enumerate(self.score.tolist()):
            yield Link(tuple(src[x[i] : x[i + 1]]), tuple(tgt[y[i] : y[i + 1]]), score)

    @property
    def _likely(self) -> float:
        """Return the sum of the probabilities of the sentences."""
        sizes = np.diff(self.src_ends) + np.diff(self.tgt_ends)
        scores = self.score.tolist()
        return float(sum(n * probability(s) for n, s in zip(sizes.tolist(), scores, strict=True)))

    @property
    def mean_score(self) -> float:
        """Return the mean probability of the sentences; one that is left out counts 0."""
        return self._likely / max(1, len(self.src_lines) + len(self.tgt_lines))

    @property
    def doubtful(self) -> bool:
        """Return True if the documents hardly look like translations of each other."""
        # Sentences without a partner because the other document is shorter do not count against the rest.
        fewer = min(len(self.src_lines), len(self.tgt_lines))
        return fewer > 0 and self._likely / (2 * fewer) < _UNRELATED


class Aligner:
    """Aligns documents by the vectors and the pieces of an encoder.

    Args:
        encoder: the encoder.
        settings: the parameters.
        batch_tokens: see `Encoder.encode`.
    """

    def __init__(
        self, encoder: Encoder, settings: Settings | None = None, batch_tokens: int | None = None
    ) -> None:
        self.encoder, self.settings, self._batch_tokens = encoder, settings or Settings(), batch_tokens
        self.evidence = Evidence.of(encoder)

    def windows(self, documents: Sequence[Sequence[str]]) -> list[Windows]:
        """Return the windows of documents, each a list of sentences; they are encoded together."""
        return make_windows(self.encoder, documents, self.settings.window_sizes, self._batch_tokens)

    def align(self, src: Windows, tgt: Windows, tick: Tick = None) -> Alignment:
        """Align two documents by their windows; `tick` is called with numbers of sentences as they are done."""
        return align_windows(src, tgt, self.settings, self.evidence, tick)


def align_windows(
    src: Windows, tgt: Windows, settings: Settings, evidence: Evidence | None = None, tick: Tick = None
) -> Alignment:
    """Align two documents by their windows, with the evidence of pieces if there is any."""
    n, m = len(src), len(tgt)
    lines = np.arange(n), np.arange(m)
    if not n or not m:
        ends = np.arange(n + m + 1)
        return Alignment(np.minimum(ends, n), np.minimum(ends, m), np.full(n + m, LOWEST), *lines)
    found = find_path(src, tgt, settings, evidence, tick)
    alignment = Alignment(found.path.x, found.path.y, _log_odds(found), *lines)
    return _without_bare(alignment, src.form, tgt.form)


def _without_bare(alignment: Alignment, src: Form | None, tgt: Form | None) -> Alignment:
    """Take lines without words out of links in which their side has others: no translation holds them."""
    if src is None or tgt is None or not (src.bare.any() or tgt.bare.any()):
        return alignment
    links: list[Link] = []
    for link in alignment:
        after: list[Link] = []
        sides = [list(link.src), list(link.tgt)]
        for side, form in enumerate((src, tgt)):
            bare = [i for i in sides[side] if form.bare[i]]
            if not all(sides) or len(bare) == len(sides[side]):
                continue
            sides[side] = [i for i in sides[side] if not form.bare[i]]
            for i in bare:
                alone = Link((i,), (), LOWEST) if side == 0 else Link((), (i,), LOWEST)
                (links if i < sides[side][0] else after).append(alone)
        links += [Link(tuple(sides[0]), tuple(sides[1]), link.score), *after]
    src_ends, src_lines = _flat([link.src for link in links])
    tgt_ends, tgt_lines = _flat([link.tgt for link in links])
    return Alignment(src_ends, tgt_ends, np.array([link.score for link in links]), src_lines, tgt_lines)


def _flat(groups: list[tuple[int, ...]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where groups of lines end, after a 0, and the lines."""
    ends = np.cumsum([0, *map(len, groups)], dtype=np.int64)
    return ends, np.array([line for group in groups for line in group], dtype=np.int64)


def probability(log_odds: float) -> float:
    """Return the probability of log odds; 0 for those of a sentence left out."""
    return 0.0 if log_odds <= LOWEST else 1 / (1 + math.exp(-log_odds))


def _log_odds(found: Found) -> NDArray[np.float64]:
    """Return the scores (steps,) of a path's links; `LOWEST` for a sentence left out."""
    path = found.path
    sentences = (np.diff(path.x) + np.diff(path.y)).astype(np.float64)
    likeness = np.nan_to_num(1 - found.distance.astype(np.float64), nan=0.0)
    # Sentences without a partner because the other document is shorter do not count against the rest.
    shorter = 2 * min(int(path.x[-1]), int(path.y[-1]))
    whole = np.full(len(path), min(1.0, float(likeness @ sentences) / max(1, shorter)))
    lost = np.nan_to_num(found.missed.astype(np.float64), nan=0.0) / sentences
    odds = np.stack([likeness, whole, lost, np.ones(len(path))], axis=1) @ np.array(_WEIGHTS)
    return np.where(np.isnan(found.distance), LOWEST, np.clip(odds, LOWEST + 0.001, HIGHEST))
