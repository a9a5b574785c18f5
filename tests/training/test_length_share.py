"""Training vectors that tell the length of a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bitextmine.encoder.columns import COLUMNS, piece_characters
from bitextmine.encoder.folder import WEIGHTS, read_folder
from bitextmine.encoder.weights import CHARACTERS, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.training.recipe import check_objectives, check_recipe

Make = Callable[..., Any]


@pytest.mark.parametrize("spelling", [False, True])
def test_the_finished_model_has_its_own_share(make_recipe: Make, tmp_path: Path, spelling: bool) -> None:
    from bitextmine.training.cache import open_caches
    from bitextmine.training.run import Inputs, TrainingRun
    from bitextmine.training.trainer import train
    from bitextmine.training.vocabulary import open_vocabulary

    recipe = make_recipe(
        model__dim=40,
        model__length_share=0.2,
        model__spelling=spelling,
        train__length_share_in_training=0.4,
        train__steps=20,
    )
    out = train(recipe, tmp_path / "out")
    config, tokenizer = read_folder(out)
    assert (config.length_share, config.dim, config.piece_dim) == (0.2, 40, 40 - COLUMNS)
    found = read_weights(config, out / WEIGHTS)[CHARACTERS]
    assert (found == piece_characters(tokenizer.pieces())).all()

    work = tmp_path / "out" / "work"
    run = TrainingRun(
        Inputs(recipe, open_caches(work / "cache", recipe, open_vocabulary(recipe, work)), tokenizer)
    )
    ids, offsets = torch.arange(9), torch.tensor([0, 4, 9])
    with torch.no_grad():
        shares = [
            run.model.train(training)(ids, offsets)[:, -COLUMNS:].square().sum(1).numpy()
            for training in (True, False)
        ]
    np.testing.assert_allclose(shares, [[0.4, 0.4], [0.2, 0.2]], atol=1e-5)


def test_what_it_does_not_go_with(make_recipe: Make) -> None:
    for wrong, message in (
        (
            {"model__length_share": 0.1, "model__layers": 1, "model__dim": 16},
            r"model\.length_share: found with",
        ),
        ({"model__length_share": 0.1, "model__dim": 8}, r"its 8 columns leave none of model\.dim 8"),
        ({"train__length_share_in_training": 0.1}, r"without model\.length_share"),
        ({"model__length_share": 1.0}, r"model\.length_share: found 1\.0"),
    ):
        with pytest.raises(BitextmineError, match=message):
            check_recipe(make_recipe(**wrong))
    with pytest.raises(BitextmineError, match=r"model\.length_share: not with 'sim'"):
        check_objectives(
            make_recipe(model__length_share=0.1, train__objective={"contrastive": 1.0, "sim": 1.0})
        )
