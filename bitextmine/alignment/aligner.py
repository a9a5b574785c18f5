"""Align two documents, given as lines or as vectors of windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.costs import Tick
from bitextmine.alignment.evidence import Evidence
from bitextmine.alignment.scores import LOWEST, log_odds, probability
from bitextmine.alignment.search import Settings, find_path
from bitextmine.alignment.windows import Windows, make_windows
from bitextmine.encoder.encoder import Encoder

# The mean probability of unrelated documents' links is far below.
_UNRELATED = 0.3


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
        score: (links,) float64 log odds, see `scores`; `scores.LOWEST` for a sentence left out.
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

    def on_lines(self, src_lines: NDArray[np.int64], tgt_lines: NDArray[np.int64]) -> Alignment:
        """Return the same links of sentences that stand on these lines."""
        return replace(self, src_lines=src_lines, tgt_lines=tgt_lines)

    @property
    def _likely(self) -> float:
        """The sum of the probabilities over sentences."""
        return float(
            sum(n * probability(s) for n, s in zip(self._sizes().tolist(), self.score.tolist(), strict=True))
        )

    def _sizes(self) -> NDArray[np.int64]:
        return np.diff(self.src_ends) + np.diff(self.tgt_ends)

    @property
    def mean_score(self) -> float:
        """The mean probability of the sentences; one that is left out counts 0."""
        return self._likely / max(1, len(self.src_lines) + len(self.tgt_lines))

    @property
    def doubtful(self) -> bool:
        """True if the documents hardly look like translations of each other."""
        # Sentences without a partner because the other document is shorter do not count against the rest.
        fewer = min(len(self.src_lines), len(self.tgt_lines))
        return fewer > 0 and self._likely / (2 * fewer) < _UNRELATED


def sentences(lines: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers (from 0) of the lines that are not blank."""
    return np.array([i for i, line in enumerate(lines) if line.strip()], dtype=np.int64)


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
    score = log_odds(found.path, found.distance, found.missed)
    return Alignment(found.path.x, found.path.y, score, *lines)
