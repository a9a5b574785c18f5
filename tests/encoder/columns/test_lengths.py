"""Columns for the length of a sentence: what they say, and the same from each way of encoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns import (
    COLUMNS,
    LONGEST,
    PERIOD,
    SLACK,
    SPREAD,
    length_table,
    piece_characters,
    sentence_characters,
)
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, packaged, read_folder, save_folder
from bitextmine.encoder.model import SentenceModel, unit_vectors
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import CHARACTERS, write_weights
from bitextmine.errors import BitextmineError

PACKAGED = packaged("europe5") / "tokenizer.model"
LINES = [
    "La séance est levée.",
    "La séance",
    "",
    "the sitting is closed until tomorrow at nine o'clock",
    "x" * 300,
]
SHARE = 0.2


def make_model(dim: int = 40, ngrams: int = 0) -> SentenceModel:
    tokenizer = Tokenizer(PACKAGED)
    torch.manual_seed(0)
    model = SentenceModel(
        EncoderConfig(tokenizer.vocab_size, dim, layers=0, ngrams=ngrams, length_share=SHARE)
    )
    model.initialise()
    model.characters.copy_(torch.from_numpy(piece_characters(tokenizer.pieces(), ngrams)))
    return model


def test_the_product_is_a_hill_over_the_ratio_of_lengths() -> None:
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
    assert not length_table().flags.writeable


def test_characters_of_pieces_and_sentences() -> None:
    each = piece_characters(["", "▁the", "▁", "é", "x" * 300], ngrams=2)
    assert each.tolist() == [1, 4, 1, 1, 255, 0, 0] and each.dtype == np.uint8
    sentences = Pieces.from_lists([[1, 2, 3], [], [4] * 30, [5, 0]])
    assert sentence_characters(sentences, each).tolist() == [6, 0, LONGEST, 1]


@pytest.mark.parametrize("dtype", ["int4", "int8", "float32"])
def test_vectors_of_a_folder(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model()
    save_folder(tmp_path, model, PACKAGED, dtype=dtype)
    encoder = load_encoder(tmp_path)
    assert encoder.dim == 40 and encoder.describe()["length_share"] == SHARE
    found = encoder.encode(LINES)
    pieces, _ = encoder.tokenizer.encode(LINES)
    table = model.embedding.weight.detach().double().numpy()
    assert table.shape[1] == 40 - COLUMNS
    for i, line in enumerate(LINES):
        if not line:
            assert not found[i].any()
            continue
        total = table[pieces.ids[pieces.offsets[i] : pieces.offsets[i + 1]]].sum(0)
        # One more than the line: the space that SentencePiece puts before it.
        waves = length_table()[len(line) + 1]
        expected = np.concatenate(
            [np.sqrt(1 - SHARE) * total / np.linalg.norm(total), np.sqrt(SHARE) * waves]
        )
        cosine = expected @ found[i]
        assert cosine > (0.98 if dtype == "int4" else 0.9999)
        np.testing.assert_allclose(np.linalg.norm(found[i]), 1, atol=1e-5)
        np.testing.assert_allclose(found[i, -COLUMNS:], expected[-COLUMNS:], atol=1e-6)
    # The model in training and the one without the compiled part agree.
    if dtype == "float32":
        with torch.no_grad():
            trained = model(torch.from_numpy(pieces.ids).long(), torch.from_numpy(pieces.offsets))
        np.testing.assert_allclose(unit_vectors(trained).numpy(), found, atol=1e-5)
    monkeypatch.setenv("BITEXTMINE_COMPILED", "off")
    assert encoder.encode(LINES).tobytes() == found.tobytes()


def test_pieces_that_cancel_out_have_no_length_either() -> None:
    model = make_model()
    with torch.no_grad():
        model.embedding.weight[5] = -model.embedding.weight[4]
        both = model(torch.tensor([4, 5, 4]), torch.tensor([0, 2, 3]))
    assert not both[0].any() and both[1].norm() == pytest.approx(1)


def test_what_a_folder_must_have(tmp_path: Path) -> None:
    model = make_model()
    save_folder(tmp_path, model, PACKAGED)
    config, _ = read_folder(tmp_path)
    assert EncoderConfig.from_json(config.to_json(), "here") == config
    assert "length_share" not in EncoderConfig(10, 8).to_json(), "older versions can read the folder"
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    for wrong, message in (
        ({**state, CHARACTERS: state[CHARACTERS].astype(np.float32)}, "is float32, not uint8"),
        ({name: value for name, value in state.items() if name != CHARACTERS}, f"no tensor '{CHARACTERS}'"),
    ):
        write_weights(wrong, tmp_path / WEIGHTS, dtype="float32")
        with pytest.raises(BitextmineError, match=message):
            load_encoder(tmp_path)
    for wrong, message in (
        ({"layers": 1}, "only a model without layers"),
        ({"layers": 0, "length_share": 1.0}, r"must lie in \[0, 1\), found 1.0"),
        ({"layers": 0, "length_share": True}, r"must lie in \[0, 1\), found True"),
        ({"layers": 0, "dim": 8}, "leave none of dim 8"),
    ):
        with pytest.raises(BitextmineError, match=message):
            EncoderConfig(**{"vocab_size": 10, "dim": 16, "length_share": 0.1, **wrong})
