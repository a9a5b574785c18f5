"""Columns for the places of the pieces: what they say, and the same from each way of encoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bitextmine import compiled
from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns import COLUMNS, STEPS, steps, wave, waves
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import packaged, save_folder
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, SCALE
from bitextmine.errors import BitextmineError
from bitextmine.training.spelling import finished, piece_ngrams, spell

PACKAGED = packaged("europe5") / "tokenizer.model"
LINES = [
    "La séance est levée.",
    "La séance",
    "",
    "the sitting is closed until tomorrow at nine o'clock",
    "Non",
    "x" * 300,
]
ORDER, WEIGHT = 10, 0.7


def make_model(piece_dim: int = 24, length_share: float = 0.0) -> SentenceModel:
    torch.manual_seed(0)
    dim = piece_dim + ORDER + (COLUMNS if length_share else 0)
    model = SentenceModel(
        EncoderConfig(
            Tokenizer(PACKAGED).vocab_size,
            dim,
            layers=0,
            length_share=length_share,
            order_columns=ORDER,
            order_weight=WEIGHT,
        )
    )
    model.initialise()
    return model


@given(st.lists(st.integers(0, 40), max_size=6))
def test_waves_are_cosines_of_the_places(lengths: list[int]) -> None:
    pieces = Pieces.from_lists([[1] * n for n in lengths])
    found = waves(pieces, WEIGHT)
    expected = [WEIGHT * np.cos(np.pi * (i + 0.5) / n) for n in lengths for i in range(n)]
    np.testing.assert_allclose(found, np.array(expected), atol=WEIGHT * np.pi / STEPS)
    assert found.dtype == np.float32


def test_places_of_the_longest_sentences() -> None:
    found = steps(np.arange(5000), 5000)
    assert found[0] == 0 and found[-1] == STEPS - 1 and (np.diff(found) >= 0).all()
    assert not wave().flags.writeable


@pytest.mark.parametrize("length_share", [0.0, 0.2])
@pytest.mark.parametrize("dtype", ["int4", "int8", "float32"])
def test_vectors_of_a_folder(
    dtype: str, length_share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(length_share=length_share)
    save_folder(tmp_path, model, PACKAGED, dtype=dtype)
    encoder = load_encoder(tmp_path)
    columns = 24 + ORDER
    assert encoder.dim == columns + (COLUMNS if length_share else 0)
    assert encoder.describe()["order_columns"] == ORDER
    found = encoder.encode(LINES)
    pieces, _ = encoder.tokenizer.encode(LINES)
    table = model.embedding.weight.detach().double().numpy()
    assert table.shape[1] == 24
    for i, line in enumerate(LINES):
        if not line:
            assert not found[i].any()
            continue
        rows = table[pieces.ids[pieces.offsets[i] : pieces.offsets[i + 1]]]
        weights = WEIGHT * np.cos(np.pi * (np.arange(len(rows)) + 0.5) / len(rows))
        expected = np.concatenate([rows.sum(0), (weights[:, None] * rows[:, :ORDER]).sum(0)])
        expected *= np.sqrt(1 - length_share) / np.linalg.norm(expected)
        if dtype == "int4":
            assert expected @ found[i, :columns] / (1 - length_share) > 0.97
        else:
            np.testing.assert_allclose(found[i, :columns], expected, atol=1e-2 if dtype == "int8" else 3e-3)
        np.testing.assert_allclose(np.linalg.norm(found[i]), 1, atol=1e-5)
    # The model in training and the one without the compiled part agree.
    if dtype == "float32" and not length_share:
        with torch.no_grad():
            trained = model(torch.from_numpy(pieces.ids).long(), torch.from_numpy(pieces.offsets))
        np.testing.assert_allclose(unit_vectors(trained).numpy(), found, atol=1e-5)
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert encoder.encode(LINES).tobytes() == found.tobytes()


@pytest.mark.skipif(compiled.library("encoder") is None, reason="nothing is compiled here")
@pytest.mark.parametrize("kind", [np.int8, np.float32])
@pytest.mark.parametrize(("dim", "columns"), [(7, 7), (33, 20), (200, 48), (376, 96), (300, 130), (520, 520)])
def test_compiled_and_plain_are_the_same(
    dim: int, columns: int, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(dim)
    weights = {PIECES: rng.integers(-127, 128, (50, dim)).astype(kind)}
    if kind == np.int8:
        weights[SCALE] = rng.random(50).astype(np.float32)
    pieces = Pieces.from_lists([rng.integers(0, 50, n).tolist() for n in rng.integers(0, 40, 60)])
    config = EncoderConfig(50, dim + columns, layers=0, order_columns=columns, order_weight=WEIGHT)
    network = PieceSums(weights, config)
    found = network.vectors(pieces)
    assert found.shape == (60, dim + columns)
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert network.vectors(pieces).tobytes() == found.tobytes()


def test_another_order_is_another_vector(tmp_path: Path) -> None:
    save_folder(tmp_path, make_model(), PACKAGED, dtype="int8")
    encoder = load_encoder(tmp_path)
    there, back = (Pieces.from_lists([ids]) for ids in ([5, 60, 700, 8000], [8000, 700, 60, 5]))
    one, other = (encoder.encode_pieces(pieces)[0] for pieces in (there, back))
    np.testing.assert_allclose(one[:24], other[:24], atol=1e-3)
    np.testing.assert_allclose(one[24:], -other[24:], atol=1e-2)
    assert np.abs(one[24:]).max() > 0.05


def test_a_spelled_model_has_them_too() -> None:
    model = make_model()
    spell(model, *piece_ngrams(Tokenizer(PACKAGED).pieces()), [])
    ids, offsets = torch.tensor([5, 60, 700, 8000, 5, 5]), torch.tensor([0, 4, 4, 6])
    with torch.no_grad():
        np.testing.assert_allclose(
            model(ids, offsets).numpy(), finished(model)(ids, offsets).numpy(), rtol=1e-4, atol=1e-6
        )


def test_what_a_configuration_refuses() -> None:
    base = {"vocab_size": 10, "dim": 16, "layers": 0, "order_columns": 4, "order_weight": 0.5}
    config = EncoderConfig(**base)
    assert EncoderConfig.from_json(config.to_json(), "here") == config and config.piece_dim == 12
    assert "order_columns" not in EncoderConfig(10, 8).to_json(), "older versions can read the folder"
    for wrong, message in (
        ({"layers": 1, "heads": 1}, "only a model without layers"),
        ({"order_columns": 0}, "go together, found 0 and 0.5"),
        ({"order_weight": 0.0}, "go together, found 4 and 0.0"),
        ({"order_weight": float("nan")}, r"order_weight must lie in \[0, inf\)"),
        ({"order_weight": True}, r"order_weight must lie in \[0, inf\)"),
        ({"order_columns": 4.0}, "order_columns must be a whole number"),
        ({"order_columns": 9}, "9 order_columns .* leaves 7"),
        ({"order_columns": 20}, "20 order_columns .* leaves 0"),
    ):
        with pytest.raises(BitextmineError, match=message):
            EncoderConfig(**{**base, **wrong})
