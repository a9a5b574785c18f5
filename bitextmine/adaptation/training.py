"""The training of a round: a recipe that continues from the first encoder with the mined pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bitextmine.adaptation.options import AdaptOptions
from bitextmine.training.recipe import Corpus, Data, Model, Recipe, Training, check_recipe, with_start

# Chosen on the even rows of Europarl, for an encoder that had seen none of it (train/lab-notes.md).
BATCH, EPOCHS = 2048, 24
FEWEST_STEPS, MOST_STEPS = 40, 2000
PIECE_DROPOUT = 0.2
MARGIN = 0.1
RATE = 2e-3


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
    steps = math.ceil(EPOCHS * pairs / BATCH)
    training = Training(
        steps=min(MOST_STEPS, max(FEWEST_STEPS, steps)),
        batch=BATCH,
        piece_dropout=PIECE_DROPOUT,
        margin=MARGIN,
        embedding_learning_rate=RATE,
        seed=options.seed,
    )
    recipe = Recipe(
        data=Data(
            corpora=tuple(Corpus(langs=langs, pairs=name) for name, langs in corpora),
            valid_pairs=0,
            check_languages=False,
        ),
        model=Model(start_from=start),
        train=training,
        base=folder,
    )
    given = {
        "train.steps",
        "train.batch",
        "train.piece_dropout",
        "train.margin",
        "train.embedding_learning_rate",
        "train.seed",
    }
    return check_recipe(with_start(recipe, given))
