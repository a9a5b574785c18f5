"""Two documents, line by line, to an alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.search import Settings, find_path
from bitextmine.alignment.windows import VectorWindows, Windows, make_windows
from bitextmine.encoder.encoder import Encoder

__all__ = ["Alignment", "Link", "align", "align_vectors", "align_windows", "sentences"]

# Of documents that are no translations of each other the cheapest way still finds pairs, a little better than random.
_UNRELATED = 0.27
# Fewer pairs say nothing about a whole document.
_FEW = 5


@dataclass(frozen=True)
class Link:
    """Lines that belong together, numbers from 0; one of the two is empty for a line left out. score: `Alignment`."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Alignment:
    """The alignment of two documents: every line that is not blank is in one link, in order on both sides.

    src_ends, tgt_ends: (links + 1,) int64; link i holds the sentences from ends[i] to ends[i + 1] - 1. src_lines,
    tgt_lines: int64, the line (from 0) of each sentence. score: (links,) float64: 1 for vectors of one direction, about
    0 for random sentences of the two documents, and 0 where a sentence is left out.
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
    def paired(self) -> NDArray[np.bool_]:
        """(links,) bool: which links have lines on both sides."""
        return (np.diff(self.src_ends) > 0) & (np.diff(self.tgt_ends) > 0)

    @property
    def mean_score(self) -> float:
        """The mean score of the sentences, one that is left out counting 0."""
        sizes = np.diff(self.src_ends) + np.diff(self.tgt_ends)
        return float((sizes * self.score).sum() / max(1, sizes.sum()))

    @property
    def doubtful(self) -> bool:
        """Whether these look like documents that do not belong together: links hardly better than random pairs."""
        n, m = len(self.src_lines), len(self.tgt_lines)
        if min(n, m) < _FEW:
            return False
        # What has no partner because the other document is shorter is not held against the rest.
        sizes = np.diff(self.src_ends) + np.diff(self.tgt_ends)
        return float((sizes * self.score).sum()) / (2 * min(n, m)) < _UNRELATED


def sentences(lines: Sequence[str]) -> NDArray[np.int64]:
    """The lines (from 0) that are not blank."""
    return np.array([i for i, line in enumerate(lines) if line.strip()], dtype=np.int64)


def align(
    src: Sequence[str], tgt: Sequence[str], encoder: Encoder, settings: Settings | None = None
) -> Alignment:
    """Align two documents, one sentence a line; blank lines are passed over."""
    settings = settings or Settings()
    rows = sentences(src), sentences(tgt)
    texts = [[side[i] for i in numbers] for side, numbers in zip((src, tgt), rows, strict=True)]
    windows = make_windows(encoder, texts, max(1, settings.max_size - 1))
    return align_windows(windows[0], windows[1], settings, *rows)


def align_vectors(src: NDArray, tgt: NDArray, settings: Settings | None = None) -> Alignment:
    """Align two documents of which the sentences' vectors are known, (n, d) and (m, d) float unit rows."""
    settings = settings or Settings()
    sizes = max(1, settings.max_size - 1)
    return align_windows(VectorWindows(src, sizes), VectorWindows(tgt, sizes), settings)


def align_windows(
    src: Windows,
    tgt: Windows,
    settings: Settings,
    src_lines: NDArray[np.int64] | None = None,
    tgt_lines: NDArray[np.int64] | None = None,
    tick: Callable[[int], object] | None = None,
) -> Alignment:
    """Align two documents by their windows. src_lines, tgt_lines: the line of each sentence, if it is not its own
    number. tick: is told how many more sentences are done."""
    n, m = len(src), len(tgt)
    src_lines = np.arange(n) if src_lines is None else src_lines
    tgt_lines = np.arange(m) if tgt_lines is None else tgt_lines
    if not n or not m:
        ends = np.arange(n + m + 1)
        return Alignment(np.minimum(ends, n), np.minimum(ends, m), np.zeros(n + m), src_lines, tgt_lines)
    path, costs = find_path(src, tgt, settings, tick)
    score = np.nan_to_num(costs.likeness(path.x, path.y), nan=0.0)
    return Alignment(path.x, path.y, score, src_lines, tgt_lines)
