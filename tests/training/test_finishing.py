"""A recipe that cuts what it has trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitextmine import load_encoder
from bitextmine.encoder.columns import COLUMNS
from bitextmine.encoder.folder import WEIGHTS, read_folder
from bitextmine.encoder.weights import piece_vectors, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.training.recipe import check_recipe
from bitextmine.training.trainer import train

Make = Callable[..., Any]
SETTINGS = {
    "model__dim": 24 + COLUMNS,
    "model__length_share": 0.1,
    "model__spelling": True,
    "model__ngrams": 20,
    "model__storage": "float32",
    "train__steps": 20,
    "data__valid_pairs": 0,
}


def table(folder: Path) -> np.ndarray:
    config, _ = read_folder(folder)
    return piece_vectors(read_weights(config, folder / WEIGHTS)).astype(np.float64)


def test_cut_to_the_principal_axes_of_what_was_trained_on(
    make_recipe: Make, tmp_path: Path, sentence_pairs: list[tuple[str, str]]
) -> None:
    whole = train(make_recipe(**SETTINGS), tmp_path / "whole")
    cut = {"reduce__dim": 12 + 8 + COLUMNS, "reduce__order_columns": 8, "reduce__order_weight": 0.5}
    small = train(make_recipe(**SETTINGS, **cut), tmp_path / "small")
    config, _ = read_folder(small)
    assert (config.dim, config.piece_dim, config.order_columns, config.order_weight) == (
        20 + COLUMNS,
        12,
        8,
        0.5,
    )
    assert config.length_share == 0.1

    # The rows in use are the same pairs for both; each once, as their file names none twice.
    lines = [line for pair in dict.fromkeys(sentence_pairs[:1600]) for line in pair]
    units = load_encoder(whole).encode(lines).astype(np.float64)[:, :24]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    _, axes = np.linalg.eigh(units.T @ units)
    expected = table(whole) @ axes[:, ::-1][:, :12]
    found = table(small)
    signs = np.sign((expected * found).sum(axis=0))  # an axis may point either way
    np.testing.assert_allclose(found, expected * signs, atol=2e-4 * np.abs(expected).max())


def test_long_piece_vectors_shortened_before_the_cut(
    make_recipe: Make, tmp_path: Path, sentence_pairs: list[tuple[str, str]]
) -> None:
    whole = table(train(make_recipe(**SETTINGS), tmp_path / "whole"))
    power = {"reduce__norm_power": 0.6}
    uncut = train(make_recipe(**SETTINGS, **power), tmp_path / "uncut")
    expected = np.zeros_like(whole)
    lengths = [float(np.sqrt(row @ row)) for row in whole]
    middle = float(np.median([length for length in lengths if length]))
    for i, (row, length) in enumerate(zip(whole, lengths, strict=True)):
        if length:
            expected[i] = row / length * middle * (length / middle) ** 0.6
    assert max(lengths) > 1.5 * middle, "or nothing changes"
    np.testing.assert_allclose(table(uncut), expected, atol=1e-5 * np.abs(expected).max())

    small = train(make_recipe(**SETTINGS, **power, reduce__dim=12 + COLUMNS), tmp_path / "small")
    lines = [line for pair in dict.fromkeys(sentence_pairs[:1600]) for line in pair]
    units = load_encoder(uncut).encode(lines).astype(np.float64)[:, :24]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    _, axes = np.linalg.eigh(units.T @ units)
    cut = expected @ axes[:, ::-1][:, :12]
    signs = np.sign((cut * table(small)).sum(axis=0))
    np.testing.assert_allclose(table(small), cut * signs, atol=2e-4 * np.abs(cut).max())


def test_killed_after_training_it_is_cut_the_same(make_recipe: Make, tmp_path: Path) -> None:
    recipe = make_recipe(**SETTINGS, reduce__dim=12 + COLUMNS)
    out = train(recipe, tmp_path / "out")
    before = (out / "model.safetensors").read_bytes()
    (out / "model.safetensors").unlink()
    assert (train(recipe, out) / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reduce__order_columns": 4}, r"reduce\.order_columns: found 4 without reduce\.dim"),
        ({"reduce__dim": 20}, r"reduce\.dim: 20 leaves 20 columns .* trained with 16; take 1 to 16"),
        ({"reduce__dim": 8, "model__layers": 1}, r"reduce\.dim: found with model\.layers 1"),
        (
            {"reduce__norm_power": 0.8, "model__layers": 1},
            r"reduce\.norm_power: found 0\.8 with model\.layers 1",
        ),
        ({"reduce__norm_power": 0.0}, r"reduce\.norm_power"),
        ({"reduce__norm_power": 1.5}, r"reduce\.norm_power"),
        (
            {"reduce__dim": 8, "reduce__order_columns": 5},
            r"reduce\.order_columns: 5 .* leaves 3; take at most 4",
        ),
        (
            {"reduce__dim": 10, "model__storage": "int4"},
            r"model\.storage: int4 needs a multiple of 4 columns .*found 10 ",
        ),
        ({"reduce__dim": -1}, r"reduce\.dim: found -1"),
    ],
)
def test_what_cannot_be_cut(make_recipe: Make, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BitextmineError, match=message):
        check_recipe(make_recipe(**wrong))
