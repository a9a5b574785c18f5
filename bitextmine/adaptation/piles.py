"""The piles of text that an encoder is adapted to, how a round mines them, and the recipe of its training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.adaptation.options import AdaptOptions
from bitextmine.console import counted
from bitextmine.encoder import Encoder
from bitextmine.encoder.pieces import PieceRows
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.mining.dedup import unique_lines
from bitextmine.mining.mine import mine_texts
from bitextmine.mining.noise import MIN_LINES
from bitextmine.mining.options import CorpusOptions, MiningOptions, WorkOptions
from bitextmine.mining.texts import Pair, find_pairs
from bitextmine.mining.threshold import NoEstimate
from bitextmine.run import Run
from bitextmine.training import recipe as recipes

# Chosen on the even rows of Europarl, for an encoder that had seen none of it. Piece dropout and a
# margin make the pairs harder: the encoder finds them already.
BATCH, EPOCHS = 2048, 24
FEWEST_STEPS, MOST_STEPS = 40, 2000
TRAINING: dict[str, Any] = {
    "batch": BATCH,
    "piece_dropout": 0.2,
    "margin": 0.1,
    "embedding_learning_rate": 2e-3,
}


class TooSmall(BitextmineError):
    """Corpora with too little to learn from."""


# --- piles ---------------------------------------------------------------------------------------------------


def names_of(piles: Sequence[Pair]) -> str:
    """Return the names of pairs of corpora, for messages."""
    return "; ".join(f"{src.name} x {tgt.name}" for src, tgt in piles)


def find_piles(named: CorpusOptions, run: Run | None = None) -> list[Pair]:
    """Return each source with each target in another language; arguments and errors of `find_pairs`."""
    return piles_of([pair for pair in find_pairs(named, run) if pair[0].lang != pair[1].lang])


def piles_of(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the distinct pairs of corpora; UsageError for none, for one language, and for a corpus with itself."""
    for src, tgt in pairs:
        assert src.source is not None and tgt.source is not None
        if src.source.identity == tgt.source.identity:
            raise UsageError(f"{src.source}: is both the source and the target corpus; adapting needs two")
        for source in (src.source, tgt.source):
            if not source.path.is_file():
                raise BitextmineError(f"{source}: no such file")
        if src.lang == tgt.lang:
            raise UsageError(
                f"{src.source} and {tgt.source} are both in '{src.lang}'; adapting needs two languages"
            )
    if not pairs:
        raise UsageError("both corpora are in the same language; adapting needs two")
    return list(dict.fromkeys(pairs))


def check_piles(piles: Pair) -> None:
    """Raise TooSmall for too few different lines to tell pairs from noise."""
    for text in piles:
        lines = len(unique_lines(text.lines()).rows)
        if lines < MIN_LINES:
            raise TooSmall(
                f"{names_of([piles])}: {text.name} has {counted(lines, 'different line')}, too few to tell pairs "
                f"from noise: adapting needs {MIN_LINES} of each corpus, and thousands to learn anything; keep the "
                "encoder that you have"
            )


# --- mining --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MinedPairs:
    """One-to-one pairs, best first, cut where the estimated error rate reaches that of the options.

    src, tgt: lines (p,) int64, from 0, of equal lines the first; precision: (p,) float64, the estimated share of true
    pairs among those up to each; interval: the 95% interval of the last of these.
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
    piles: Pair, embedded: dict[Corpus, Path], encoder: Encoder, options: AdaptOptions, run: Run
) -> MinedPairs:
    """Return the pairs of two cleaned piles; none if no threshold has the precision of the options by estimate."""
    rescore = isinstance(encoder.network, PieceRows) or None
    wanted = MiningOptions(threshold=f"precision={1 - options.error_rate:g}", rescore=rescore)
    work = WorkOptions(run, cache=next(iter(embedded.values())).parent)
    try:
        mined = mine_texts(piles, wanted, work, model=encoder)
    except NoEstimate:
        nothing = np.zeros(0, dtype=np.int64)
        return MinedPairs(nothing, nothing, np.zeros(0))
    mined.discard_checkpoint()
    assert mined.estimate is not None
    assert mined.threshold is not None
    precision = mined.estimate.precisions()[: len(mined)]
    return MinedPairs(
        mined.src_index, mined.tgt_index, precision, mined.estimate.precision_interval(mined.threshold)
    )


# --- training ------------------------------------------------------------------------------------------------


def round_recipe(
    start: str,
    folder: Path,
    corpora: Sequence[tuple[str, tuple[str, str]]],
    pairs: int,
    options: AdaptOptions,
) -> recipes.Recipe:
    """Return the recipe of a round, which starts from the first encoder: errors of a round do not stay in the weights.

    start is as in model.start_from; corpora are TSV files in the folder and their languages, of so many pairs.
    """
    steps = min(MOST_STEPS, max(FEWEST_STEPS, math.ceil(EPOCHS * pairs / BATCH)))
    settings = {**TRAINING, "steps": steps, "seed": options.seed}
    recipe = recipes.Recipe(
        recipes.Data(tuple(recipes.PairCorpus(langs, name) for name, langs in corpora), valid_pairs=0),
        model=recipes.Model(start_from=start),
        train=recipes.Training(**settings),
        base=folder,
    )
    return recipes.check_recipe(recipes.with_start(recipe, {f"train.{name}" for name in settings}))
