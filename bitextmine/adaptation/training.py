"""The options of adapting, and the recipe of a round: it continues from the first encoder with the mined pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitextmine.arguments import real_number, whole_number
from bitextmine.errors import UsageError
from bitextmine.training.recipe import Corpus, Data, Model, Recipe, Training, check_recipe, with_start

# Chosen on the even rows of Europarl, for an encoder that had seen none of it (train/lab-notes.md).
BATCH, EPOCHS = 2048, 24
FEWEST_STEPS, MOST_STEPS = 40, 2000
PIECE_DROPOUT = 0.2
MARGIN = 0.1
RATE = 2e-3


@dataclass(frozen=True)
class AdaptOptions:
    """How an encoder learns from the pairs it mines.

    Attributes:
        error_rate: estimated share of wrong pairs among those it trains on.
        rounds: maximum number of rounds of mining and training.
        k: neighbours per line for the margin.
        seed: random seed.

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """

    error_rate: float = 0.05
    rounds: int = 4
    k: int = 4
    seed: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "error_rate", real_number("error_rate", self.error_rate))
        if not 0 < self.error_rate < 1:
            raise UsageError(f"error_rate: expected a rate between 0 and 1, found {self.error_rate:g}")
        object.__setattr__(self, "rounds", whole_number("rounds", self.rounds))
        object.__setattr__(self, "k", whole_number("k", self.k))
        if self.k < 2:
            raise UsageError("k: with one neighbour there is no margin; take a k of 2 or more")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**32:
            raise UsageError(f"seed: expected a whole number from 0 to {2**32 - 1}, found {self.seed!r}")


def round_recipe(
    start: str,
    folder: Path,
    corpora: Sequence[tuple[str, tuple[str, str]]],
    pairs: int,
    options: AdaptOptions,
) -> Recipe:
    """Return the recipe of a round.

    Piece dropout and a margin make the pairs harder: the encoder finds them already. Every round starts from the first
    encoder, so that the errors of a round do not stay in the weights.

    Args:
        start: the encoder, as in model.start_from.
        folder: of the corpora.
        corpora: TSV files and their languages.
        pairs: their number of pairs.
        options: of the run.
    """
    settings: dict[str, Any] = {
        "steps": min(MOST_STEPS, max(FEWEST_STEPS, math.ceil(EPOCHS * pairs / BATCH))),
        "batch": BATCH,
        "piece_dropout": PIECE_DROPOUT,
        "margin": MARGIN,
        "embedding_learning_rate": RATE,
        "seed": options.seed,
    }
    data = Data(
        corpora=tuple(Corpus(langs=langs, pairs=name) for name, langs in corpora),
        valid_pairs=0,
        check_languages=False,
    )
    recipe = Recipe(data=data, model=Model(start_from=start), train=Training(**settings), base=folder)
    return check_recipe(with_start(recipe, {f"train.{name}" for name in settings}))
