"""Columns for the order and the length of a sentence: what they say, and the same from each way of encoding."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import FORMAT, KIND, EncoderConfig
from bitextmine.encoder.extra_columns import (
    COLUMNS,
    LONGEST,
    PERIOD,
    SLACK,
    SPREAD,
    STEPS,
    length_table,
    piece_characters,
    sentence_characters,
    waves,
)
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError
from bitextmine.shipped import shipped_folder

from .conftest import save_folder

PACKAGED = shipped_folder("europe5") / "tokenizer.model"
LINES = ["La séance est levée.", "La séance", "", "the sitting is closed until tomorrow", "Non", "x" * 300]
DIM, ORDER, WEIGHT, SHARE = 24, 10, 0.7, 0.2


def make_model(order=ORDER, share=0.0):
    tokenizer = Tokenizer(PACKAGED)
    torch.manual_seed(0)
    config = EncoderConfig(
        tokenizer.vocab_size,
        DIM + order + (COLUMNS if share else 0),
        layers=0,
        length_share=share,
        order_columns=order,
        order_weight=WEIGHT if order else 0.0,
    )
    model = SentenceModel(config)
    model.initialise()
    if share:
        model.characters.copy_(torch.from_numpy(piece_characters(tokenizer.pieces())))
    return model


def test_the_product_is_a_hill_over_the_ratio_of_lengths():
    table = length_table().astype(np.float64)
    np.testing.assert_allclose((table**2).sum(1), 1, atol=1e-6)
    for n in (1, 30, 500):
        steps = np.log((np.arange(LONGEST + 1) + SLACK) / (n + SLACK))
        found = table @ table[n]
        near = abs(steps) < PERIOD / 2
        order = np.argsort(abs(steps[near]))
        falling = found[near][order][abs(steps[near])[order] < 1.3]
        assert (np.diff(falling) < 1e-6).all(), "the less alike the lengths, the smaller"
        # The hill of a normal curve, less its mean over a period.
        level = SPREAD * np.sqrt(2 * np.pi) / PERIOD
        hill = (np.exp(-(steps**2) / (2 * SPREAD**2)) - level) / (1 - level)
        np.testing.assert_allclose(found[near], hill[near], atol=0.05)


def test_characters_of_pieces_and_sentences():
    each = piece_characters(["", "▁the", "▁", "é", "x" * 300, "东京", "に行った"], ngrams=2)
    assert each.tolist() == [1, 4, 1, 1, 255, 6, 9, 0, 0] and each.dtype == np.uint8
    sentences = Pieces.from_lists([[1, 2, 3], [], [4] * 30, [7, 0]])
    assert sentence_characters(sentences, each).tolist() == [6, 0, LONGEST, 1]


@given(st.lists(st.integers(0, 40), max_size=6))
def test_waves_are_cosines_of_the_places(lengths):
    pieces = Pieces.from_lists([[1] * n for n in lengths])
    found = waves(pieces, WEIGHT)
    expected = [WEIGHT * np.cos(np.pi * (i + 0.5) / n) for n in lengths for i in range(n)]
    np.testing.assert_allclose(found, np.array(expected), atol=WEIGHT * np.pi / STEPS)
    assert found.dtype == np.float32


@pytest.mark.parametrize(("order", "share"), [(0, 0.0), (0, SHARE), (ORDER, SHARE)])
@pytest.mark.parametrize(("dtype", "off"), [("int4", 0.2), ("int8", 1e-2), ("float32", 3e-3)])
def test_vectors_of_a_folder(dtype, off, order, share, tmp_path, monkeypatch):
    model = make_model(order, share)
    save_folder(tmp_path, model, PACKAGED, dtype=dtype)
    encoder = load_encoder(tmp_path)
    facts = encoder.describe()
    assert (facts.get("order_columns", 0), facts.get("length_share", 0.0)) == (order, share)
    found = encoder.encode(LINES)
    assert found.shape == (len(LINES), model.config.dim)
    pieces, _ = encoder.tokenizer.encode(LINES)
    table = model.embedding.weight.detach().double().numpy()
    assert table.shape[1] == DIM
    for i, line in enumerate(LINES):
        if not line:
            assert not found[i].any()
            continue
        rows = table[pieces.ids[pieces.offsets[i] : pieces.offsets[i + 1]]]
        weights = WEIGHT * np.cos(np.pi * (np.arange(len(rows)) + 0.5) / len(rows))
        sums = np.concatenate([rows.sum(0), (weights[:, None] * rows[:, :order]).sum(0)])
        # One more than the line: the space that SentencePiece puts before it.
        columns = [np.sqrt(share) * length_table()[len(line) + 1]] if share else []
        expected = np.concatenate([np.sqrt(1 - share) * sums / np.linalg.norm(sums), *columns])
        assert expected @ found[i] > (0.97 if dtype == "int4" else 0.9999)
        np.testing.assert_allclose(found[i], expected, atol=off)
        np.testing.assert_allclose(found[i, DIM + order :], expected[DIM + order :], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(found[i]), 1, atol=1e-5)
    # The model in training and the one without the compiled part agree.
    if dtype == "float32":
        with torch.no_grad():
            trained = model(torch.from_numpy(pieces.ids).long(), torch.from_numpy(pieces.offsets))
        np.testing.assert_allclose(unit_vectors(trained).numpy(), found, atol=1e-5)
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert encoder.encode(LINES).tobytes() == found.tobytes()


def test_pieces_that_cancel_out_have_no_length_either():
    model = make_model(0, SHARE)
    with torch.no_grad():
        model.embedding.weight[5] = -model.embedding.weight[4]
        both = model(torch.tensor([4, 5, 4]), torch.tensor([0, 2, 3]))
    assert not both[0].any() and both[1].norm() == pytest.approx(1)


def test_a_configuration_has_them():
    base = {"vocab_size": 10, "dim": 28, "layers": 0, "order_columns": 4, "order_weight": 0.5}
    config = EncoderConfig(**base, length_share=0.1, ngrams=5)
    assert EncoderConfig.from_json(config.to_json(), "here") == config and config.piece_dim == 16
    assert not {"order_columns", "length_share", "ngrams"} & EncoderConfig(10, 8).to_json().keys(), (
        "older versions can read the folder"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layers": 1, "heads": 1}, "only a model without layers"),
        ({"order_columns": 0}, "go together, found 0 and 0.5"),
        ({"order_weight": float("nan")}, r"Expected `float` >= 0.0 - at `\$.order_weight`"),
        ({"length_share": 1.0}, "Expected `float` < 1.0"),
    ],
)
def test_what_a_configuration_refuses(wrong, message):
    base = {"vocab_size": 10, "dim": 16, "layers": 0, "order_columns": 4, "order_weight": 0.5}
    with pytest.raises(BitextmineError, match=message):
        EncoderConfig.from_json({"kind": KIND, "format": FORMAT, **base, **wrong}, "config.json")
