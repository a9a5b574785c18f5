"""Mine two piles in a round of adapting, and estimate the precision of the best pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitextmine.adaptation.piles import Piles
from bitextmine.adaptation.training import AdaptOptions
from bitextmine.console import counted
from bitextmine.encoder.protocols import PieceRows
from bitextmine.errors import BitextmineError
from bitextmine.mining.candidates import candidates
from bitextmine.mining.choices import Margin, Retrieval
from bitextmine.mining.gold import Gold, pair_codes
from bitextmine.mining.neighbours import find_neighbours
from bitextmine.mining.noise import MIN_LINES, fit_null
from bitextmine.mining.options import WorkOptions
from bitextmine.mining.retrieval import retrieve_scored
from bitextmine.mining.run import rescorer
from bitextmine.mining.scorer import open_scoring
from bitextmine.mining.sides import load_side
from bitextmine.run import Run
from bitextmine.search.checkpoint import remove_checkpoint

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder


class TooSmall(BitextmineError):
    """Corpora with too little to learn from."""


def check_lines(piles: Piles, lines: Sequence[int], kind: str = "line") -> None:
    """Raise TooSmall if a corpus has too few lines to tell pairs from noise; ``lines`` are the counts."""
    if (fewest := min(lines)) < MIN_LINES:
        short = (piles.src, piles.tgt)[list(lines).index(fewest)]
        raise TooSmall(
            f"{piles}: {short.name} has {counted(fewest, kind)}, too few to tell pairs from noise: adapting needs "
            f"{MIN_LINES} of each corpus, and thousands to learn anything; keep the encoder that you have"
        )


@dataclass(frozen=True)
class MinedPairs:
    """One-to-one pairs, best first.

    Attributes:
        src: lines (p,) int64, from 0; of equal lines the first.
        tgt: likewise.
        precision: (p,) float64, the estimated share of true pairs among those up to each.
        firsts: for each line of either side the first equal line, -1 if it is not mined.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    precision: NDArray[np.float64]
    firsts: tuple[NDArray[np.int64], NDArray[np.int64]]

    def best(self, error_rate: float) -> int:
        """Return the number of best pairs with at most this share of wrong ones."""
        good = np.flatnonzero(self.precision >= 1 - error_rate)
        return int(good[-1]) + 1 if len(good) else 0


def mine_piles(
    piles: Piles, embeddings: tuple[Path, Path], encoder: Encoder, options: AdaptOptions, run: Run
) -> MinedPairs:
    """Return the pairs of two piles by their embeddings and, if the encoder has pieces to compare, by these.

    Pairs are one to one, with precision estimated from the noise of the piles (`fit_null`).

    Raises:
        TooSmall: a pile has too few lines to tell noise from pairs.
    """
    work = WorkOptions(run)
    sides = [load_side(text, npy) for text, npy in zip((piles.src, piles.tgt), embeddings, strict=True)]
    rows = [len(side.unique.rows) for side in sides]
    check_lines(piles, rows, "different line")
    checkpoint = embeddings[0].with_name(f"{embeddings[0].stem}-{embeddings[1].stem}.search.part")
    k = min(options.k, max(rows))  # more neighbours than there are lines would be empty columns
    neighbours, _ = find_neighbours(sides[0], sides[1], k + 1, work, checkpoint=checkpoint)
    best = candidates(neighbours, k, Margin.RATIO)
    scoring = open_scoring(encoder, encoder, isinstance(encoder.network, PieceRows))
    again = None if scoring is None else rescorer(sides, scoring)
    pairs = retrieve_scored(best, neighbours, k, Retrieval.MAX, Margin.RATIO, again)
    null = fit_null(neighbours, best, k=k, margin=Margin.RATIO, retrieval=Retrieval.MAX, rescore=again)
    precision = np.cumsum(null.true) / np.arange(1, len(null.true) + 1)
    remove_checkpoint(checkpoint)
    firsts = [np.append(side.unique.rows, -1)[side.unique.line_to_row] for side in sides]
    return MinedPairs(
        sides[0].unique.rows[pairs.src],
        sides[1].unique.rows[pairs.tgt],
        precision[: len(pairs)],
        (firsts[0], firsts[1]),
    )


def gold_shares(mined: MinedPairs, kept: int, gold: Gold) -> dict[str, float]:
    """Return precision and recall of the best ``kept`` pairs against known ones, in per cent.

    Precision counts pairs whose source line has a known translation.
    """
    ends = [firsts[lines] for lines, firsts in zip((gold.src, gold.tgt), mined.firsts, strict=True)]
    width = len(mined.firsts[1])
    known = np.unique(pair_codes(ends[0], ends[1], width)[(ends[0] >= 0) & (ends[1] >= 0)])
    about = np.isin(mined.src[:kept], ends[0])
    right = int(np.isin(pair_codes(mined.src[:kept], mined.tgt[:kept], width), known).sum())
    return {"precision": 100 * right / max(1, int(about.sum())), "recall": 100 * right / max(1, len(known))}
