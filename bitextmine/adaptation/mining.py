"""Mine two piles in a round of adapting, as `mine` does, with a threshold for the precision asked for."""

from __future__ import annotations

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
from bitextmine.files.corpus import Corpus
from bitextmine.mining.dedup import unique_lines
from bitextmine.mining.gold import Gold, pair_codes
from bitextmine.mining.noise import MIN_LINES
from bitextmine.mining.options import MiningOptions, WorkOptions
from bitextmine.mining.run import mine_texts
from bitextmine.mining.threshold import NoEstimate
from bitextmine.run import Run

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder


class TooSmall(BitextmineError):
    """Corpora with too little to learn from."""


def check_lines(piles: Piles) -> None:
    """Raise TooSmall if a corpus has too few different lines to tell pairs from noise."""
    for text in (piles.src, piles.tgt):
        lines = len(unique_lines(text.lines()).rows)
        if lines < MIN_LINES:
            raise TooSmall(
                f"{piles}: {text.name} has {counted(lines, 'different line')}, too few to tell pairs from noise: "
                f"adapting needs {MIN_LINES} of each corpus, and thousands to learn anything; keep the encoder that "
                "you have"
            )


@dataclass(frozen=True)
class MinedPairs:
    """One-to-one pairs, best first, cut where the estimated error rate reaches that of the options.

    Attributes:
        src: lines (p,) int64, from 0; of equal lines the first.
        tgt: likewise.
        precision: (p,) float64, the estimated share of true pairs among those up to each.
        interval: the 95% interval of the last of these.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    precision: NDArray[np.float64]
    interval: tuple[float, float] = (0.0, 1.0)

    def __len__(self) -> int:
        return len(self.src)

    def best(self, error_rate: float) -> int:
        """Return the number of best pairs with at most this share of wrong ones."""
        good = np.flatnonzero(self.precision >= 1 - error_rate)
        return int(good[-1]) + 1 if len(good) else 0


def mine_piles(
    piles: Piles, embedded: dict[Corpus, Path], encoder: Encoder, options: AdaptOptions, run: Run
) -> MinedPairs:
    """Return the pairs of two cleaned piles; none if no threshold has the precision of the options by estimate."""
    rescore = isinstance(encoder.network, PieceRows) or None
    wanted = f"precision={1 - options.error_rate:g}"
    work = WorkOptions(run, cache=next(iter(embedded.values())).parent)
    try:
        found = mine_texts(
            piles.src,
            piles.tgt,
            MiningOptions(k=options.k, threshold=wanted, rescore=rescore),
            work,
            model=encoder,
            embedded=embedded,
        )
    except NoEstimate:
        nothing = np.zeros(0, dtype=np.int64)
        return MinedPairs(nothing, nothing, np.zeros(0))
    found.discard_checkpoint()
    assert found.estimate is not None
    assert found.threshold is not None
    precision = found.estimate.precisions()[: len(found)]
    return MinedPairs(found.src_index, found.tgt_index, precision, found.estimate.interval(found.threshold))


def gold_shares(mined: MinedPairs, piles: Piles, gold: Gold) -> dict[str, float]:
    """Return precision and recall of the pairs against known ones, in per cent.

    Precision counts pairs whose source line has a known translation. Equal lines are one.
    """
    firsts = []
    for text, lines in ((piles.src, gold.src), (piles.tgt, gold.tgt)):
        unique = unique_lines(text.lines())
        firsts.append(np.append(unique.rows, -1)[unique.line_to_row[lines]])
    src, tgt = firsts
    width = len(piles.tgt)
    known = np.unique(pair_codes(src, tgt, width)[(src >= 0) & (tgt >= 0)])
    about = np.isin(mined.src, src)
    right = int(np.isin(pair_codes(mined.src, mined.tgt, width), known).sum())
    return {"precision": 100 * right / max(1, int(about.sum())), "recall": 100 * right / max(1, len(known))}
