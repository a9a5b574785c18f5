"""Smaller encoders by a recipe."""

import numpy as np

from bitextmine.encoder import load_encoder
from bitextmine.encoder.extra_columns import COLUMNS
from bitextmine.encoder.folder import WEIGHTS, read_folder
from bitextmine.encoder.weights import piece_vectors, read_weights
from bitextmine.shipped import shipped_folder
from bitextmine.training.job import train

TOKENIZER = shipped_folder("europe5") / "tokenizer.model"


SETTINGS = {
    "model__dim": 24 + COLUMNS,
    "model__length_share": 0.1,
    "model__spelling": True,
    "model__ngrams": 20,
    "model__storage": "float32",
    "train__steps": 20,
    "data__valid_pairs": 0,
}


def table(folder):
    config, _ = read_folder(folder)
    return piece_vectors(read_weights(config, folder / WEIGHTS)).astype(np.float64)


def twelve_axes(folder, sentence_pairs):
    """The first principal axes of an encoder's vectors of what it was trained on, each pair once."""
    lines = [line for pair in dict.fromkeys(sentence_pairs[:1600]) for line in pair]
    units = load_encoder(folder).encode(lines).astype(np.float64)[:, :24]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    _, axes = np.linalg.eigh(units.T @ units)
    return axes[:, ::-1][:, :12]


def test_cut_to_the_principal_axes_of_what_was_trained_on(make_recipe, tmp_path, sentence_pairs):
    whole = train(make_recipe(**SETTINGS), tmp_path / "whole")
    cut = {"reduce__dim": 12 + 8 + COLUMNS, "reduce__order_columns": 8, "reduce__order_weight": 0.5}
    small = train(make_recipe(**SETTINGS, **cut), tmp_path / "small")
    config, _ = read_folder(small)
    assert (config.dim, config.piece_dim, config.length_share) == (20 + COLUMNS, 12, 0.1)
    assert (config.order_columns, config.order_weight) == (8, 0.5)

    expected = table(whole) @ twelve_axes(whole, sentence_pairs)
    found = table(small)
    signs = np.sign((expected * found).sum(axis=0))  # an axis may point either way
    np.testing.assert_allclose(found, expected * signs, atol=2e-4 * np.abs(expected).max())


def test_long_piece_vectors_shortened_before_the_cut(make_recipe, tmp_path, sentence_pairs):
    whole = table(train(make_recipe(**SETTINGS), tmp_path / "whole"))
    damped = train(make_recipe(**SETTINGS, reduce__repeat_damping=0.5), tmp_path / "damped")
    assert read_folder(damped)[0].repeat_damping == 0.5
    power = {"reduce__norm_power": 0.6}
    uncut = train(make_recipe(**SETTINGS, **power), tmp_path / "uncut")
    lengths = np.sqrt((whole**2).sum(axis=1, keepdims=True))
    middle = np.median(lengths[lengths > 0])
    expected = whole / np.maximum(lengths, 1e-30) * middle * (lengths / middle) ** 0.6
    assert lengths.max() > 1.5 * middle, "or nothing changes"
    np.testing.assert_allclose(table(uncut), expected, atol=1e-5 * np.abs(expected).max())

    small = train(make_recipe(**SETTINGS, **power, reduce__dim=12 + COLUMNS), tmp_path / "small")
    cut = expected @ twelve_axes(uncut, sentence_pairs)
    signs = np.sign((cut * table(small)).sum(axis=0))
    np.testing.assert_allclose(table(small), cut * signs, atol=2e-4 * np.abs(cut).max())
