"""Smaller encoders: by a recipe, by `reduce_encoder` and by `bitextmine encoder reduce`."""

import signal

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns import COLUMNS, length_table
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, packaged, read_folder, save_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import piece_vectors, read_weights
from bitextmine.errors import UsageError
from bitextmine.training.options import Reduction
from bitextmine.training.reducing import reduce_encoder
from bitextmine.training.trainer import train

TOKENIZER = packaged("europe5") / "tokenizer.model"


def test_columns_for_the_length_added(tmp_path, save_encoder, lines):
    save_encoder(tmp_path / "plain", 12, 1)
    longer = Reduction(12 + COLUMNS, length_share=0.25, storage="float32")
    reduce_encoder(tmp_path / "plain", [tmp_path / "text"], tmp_path / "longer", longer)
    before, after = (load_encoder(tmp_path / name).encode(lines) for name in ("plain", "longer"))
    table = length_table()[[len(line) + 1 for line in lines]]
    np.testing.assert_allclose(after @ after.T, 0.75 * before @ before.T + 0.25 * table @ table.T, atol=1e-4)


def test_columns_for_the_order_added(tmp_path, save_encoder, lines):
    model = save_encoder(tmp_path / "plain", 12, 1)
    ordered = Reduction(24, order_columns=12, order_weight=0.5, storage="float32")
    reduce_encoder(tmp_path / "plain", [tmp_path / "text"], tmp_path / "ordered", ordered)
    # Turned axes leave products as they were, those of all columns in order too.
    pieces, _ = Tokenizer(TOKENIZER).encode(lines)
    table = model.embedding.weight.detach().double().numpy()
    expected = []
    for rows in (
        table[pieces.ids[a:b]] for a, b in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)
    ):
        waves = 0.5 * np.cos(np.pi * (np.arange(len(rows)) + 0.5) / len(rows))
        vector = np.concatenate([rows.sum(0), waves @ rows])
        expected.append(vector / np.linalg.norm(vector))
    found = load_encoder(tmp_path / "ordered").encode(lines)
    np.testing.assert_allclose(found @ found.T, np.array(expected) @ np.array(expected).T, atol=3e-3)
    same = Reduction(24, storage="float32")
    reduce_encoder(tmp_path / "ordered", [tmp_path / "text"], tmp_path / "turned", same)
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "turned").encode(lines)) @ c.T, found @ found.T, atol=1e-4
    )


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_lies_there_is_not_written_over_unasked(encoder, tmp_path, save_encoder):
    for seed, name in enumerate(("one", "two")):
        save_encoder(tmp_path / name, 8, seed, ngrams=["ting"])
    (tmp_path / "two" / "notes.txt").write_text("mine")
    before = files(tmp_path / "two")
    args = ("reduce", tmp_path / "one", tmp_path / "text", "--dim", 4, "--storage", "float32")
    refused = encoder(*args, "--out", tmp_path / "two", code=1)
    assert "two: the folder is not empty" in refused.err and "--force" in refused.err
    assert files(tmp_path / "two") == before
    assert "a file is there" in encoder(*args, "--out", tmp_path / "text", "--force", code=1).err
    (tmp_path / "made").mkdir()  # an empty folder is as good as none
    encoder(*args, "--out", tmp_path / "made")
    encoder(*args, "--out", tmp_path / "two", "--force")
    assert files(tmp_path / "two") == {**files(tmp_path / "made"), "notes.txt": b"mine"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "one", "text", "two"]


@pytest.mark.parametrize("forced", [False, True])
def test_killed_it_leaves_no_half_encoder(bitextmine, tmp_path, forced, save_encoder):
    for seed, name in enumerate(("one", "out")):
        save_encoder(tmp_path / name, 8, seed)
    if not forced:
        for path in (tmp_path / "out").iterdir():
            path.unlink()
        (tmp_path / "out").rmdir()
    args = ["encoder", "reduce", "one", "text", "--dim", "4", "--out", "out", *(["--force"] * forced)]
    # Forced: killed when config.json of the encoder before is gone; else before the folder has its name.
    folder = tmp_path / "out" if forced else tmp_path
    died = bitextmine.dies(tmp_path / "hooks", 2 if forced else 3, *args, folder=folder, cwd=tmp_path)
    assert died.code == -signal.SIGKILL
    assert not (tmp_path / "out" / "config.json").exists()
    bitextmine(*args, cwd=tmp_path)
    assert load_encoder(tmp_path / "out").dim == 4
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"hooks", "one", "out", "text"}, "what the killed run left is swept"


def test_what_reducing_refuses(encoder, tmp_path):
    model, out = packaged("europe5"), ("--out", tmp_path / "x")
    shape = read_folder(model)[0]
    for options, message in (
        (("--order-weight", -1), "--order-weight must be at least 0, found -1"),
        (("--length-share", 2), "--length-share must be below 1, found 2"),
        (("--dim", 8), "--dim 8: model: "),
    ):
        assert message in encoder("reduce", model, "x", *options, *out, code=2).err
    assert not (tmp_path / "x").exists(), "before anything is written"
    for dim, options, message in (
        (100_000, {}, f"has {shape.piece_dim} columns for the pieces"),
        (100, {"order_columns": 60}, "60 order_columns"),
        (
            203,
            {"order_columns": 0, "order_weight": 0.0, "storage": "int4"},
            "a multiple of 4 columns for the pieces",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            reduce_encoder(model, ["x"], tmp_path / "x", Reduction(dim, **options))
    torch.manual_seed(1)
    layers = SentenceModel(EncoderConfig(Tokenizer(TOKENIZER).vocab_size, 8, layers=1, heads=2, ffn=8))
    layers.initialise(0.01)
    save_folder(tmp_path / "layers", layers, TOKENIZER)
    with pytest.raises(UsageError, match="layers: it has 1 layer; only encoders without layers"):
        reduce_encoder(tmp_path / "layers", ["x"], tmp_path / "x", Reduction(4))


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
    assert (config.dim, config.piece_dim, config.order_columns, config.order_weight) == (
        20 + COLUMNS,
        12,
        8,
        0.5,
    )
    assert config.length_share == 0.1

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
    expected = np.zeros_like(whole)
    lengths = [float(np.sqrt(row @ row)) for row in whole]
    middle = float(np.median([length for length in lengths if length]))
    for i, (row, length) in enumerate(zip(whole, lengths, strict=True)):
        if length:
            expected[i] = row / length * middle * (length / middle) ** 0.6
    assert max(lengths) > 1.5 * middle, "or nothing changes"
    np.testing.assert_allclose(table(uncut), expected, atol=1e-5 * np.abs(expected).max())

    small = train(make_recipe(**SETTINGS, **power, reduce__dim=12 + COLUMNS), tmp_path / "small")
    cut = expected @ twelve_axes(uncut, sentence_pairs)
    signs = np.sign((cut * table(small)).sum(axis=0))
    np.testing.assert_allclose(table(small), cut * signs, atol=2e-4 * np.abs(cut).max())
