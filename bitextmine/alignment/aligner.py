"""Align two documents, given as lines or as vectors of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.search import Settings, find_path
from bitextmine.alignment.windows import Windows

# Even between unrelated documents the cheapest path finds pairs a little better than random ones.
_UNRELATED = 0.27
# Fewer pairs say nothing about a whole document.
_FEW = 5


@dataclass(frozen=True)
class Link:
    """Lines that belong together, counted from 0; one side of a line left out is empty. score: see `Alignment`."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Alignment:
    """An alignment of two documents: every line that is not blank is in one link, in order on both sides.

    Attributes:
        src_ends, tgt_ends: (links + 1,) int64; link i holds the sentences from ends[i] to ends[i + 1] - 1.
        score: (links,) float64: 1 for vectors of one direction, about 0 for random sentences of the two documents, and
            0 for a sentence left out.
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
    def _score_sum(self) -> float:
        """The sum of the scores over sentences; one that is left out counts 0."""
        return float(((np.diff(self.src_ends) + np.diff(self.tgt_ends)) * self.score).sum())

    @property
    def mean_score(self) -> float:
        """The mean score of the sentences; one that is left out counts 0."""
        return self._score_sum / max(1, len(self.src_lines) + len(self.tgt_lines))

    @property
    def doubtful(self) -> bool:
        """True if the links are hardly better than random pairs: probably unrelated documents."""
        fewer = min(len(self.src_lines), len(self.tgt_lines))
        # Sentences without a partner because the other document is shorter do not count against the rest.
        return fewer >= _FEW and self._score_sum / (2 * fewer) < _UNRELATED


def sentences(lines: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers (from 0) of the lines that are not blank."""
    return np.array([i for i, line in enumerate(lines) if line.strip()], dtype=np.int64)


def align_windows(
    src: Windows,
    tgt: Windows,
    settings: Settings,
    src_lines: NDArray[np.int64] | None = None,
    tgt_lines: NDArray[np.int64] | None = None,
    tick: Callable[[int], object] | None = None,
) -> Alignment:
    """Align two documents by their windows, whose sentences stand on the given lines (None: numbered from 0).

    `tick` is called with numbers of sentences as they are done.
    """
    n, m = len(src), len(tgt)
    src_lines = np.arange(n) if src_lines is None else src_lines
    tgt_lines = np.arange(m) if tgt_lines is None else tgt_lines
    if not n or not m:
        ends = np.arange(n + m + 1)
        return Alignment(np.minimum(ends, n), np.minimum(ends, m), np.zeros(n + m), src_lines, tgt_lines)
    path, costs = find_path(src, tgt, settings, tick)
    score = np.nan_to_num(costs.likeness(path.x, path.y), nan=0.0)
    return Alignment(path.x, path.y, score, src_lines, tgt_lines)
