"""Encoders made of others, by the functions and by `bitextmine encoder join` and `reduce`: what their cosines are, what
is refused, and what happens to what lies where they are to go."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns.lengths import COLUMNS, length_table
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, packaged, read_folder, save_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.train.joining import JoinedPart, join_encoders
from bitextmine.train.reducing import Reduction, reduce_encoder

Run = Callable[..., Any]
TOKENIZER = packaged("default") / "tokenizer.model"
LINES = [
    "the sitting is closed",
    "la séance est levée",
    "a",
    "the vote will take place tomorrow at noon",
    "non",
]


@pytest.fixture
def encoder(bitextmine: Any) -> Run:
    """Runs `bitextmine encoder ...`."""
    return lambda *args, **more: bitextmine("encoder", *map(str, args), **more)


def save(folder: Path, dim: int, seed: int, std: float = 0.01, ngrams: Sequence[str] = ()) -> SentenceModel:
    """A random encoder, and some text beside its folder."""
    torch.manual_seed(seed)
    size = Tokenizer(TOKENIZER).vocab_size
    model = SentenceModel(EncoderConfig(size, dim, layers=0, ngrams=len(ngrams)))
    model.initialise(std)
    save_folder(folder, model, TOKENIZER, ngrams=ngrams, dtype="float32")
    (folder.parent / "text").write_text("".join(f"{line}\n" for line in LINES))
    return model


def test_joined_and_reduced(encoder: Run, tmp_path: Path) -> None:
    save(tmp_path / "one", 12, 0, 0.1)
    save(tmp_path / "two", 20, 1, 3.0)
    text = ("--text", tmp_path / "text")
    both = tmp_path / "both"
    encoder("join", tmp_path / "one", tmp_path / "two", *text, "--length-share", 0.25, "--out", both)
    one, two, joined = (load_encoder(tmp_path / name) for name in ("one", "two", "both"))
    assert joined.dim == 32 + COLUMNS
    # The norms of sums differ from sentence to sentence, so that the parts' shares are only about a half each.
    vectors = joined.encode(LINES)
    for part_of, part in ((one, vectors[:, :12]), (two, vectors[:, 12:32])):
        units = part / np.linalg.norm(part, axis=1, keepdims=True)
        np.testing.assert_allclose((units * part_of.encode(LINES)).sum(1), 1, atol=1e-5)
    shares = np.square(vectors[:, :12]).sum(1)
    assert 0.3 < shares.mean() / 0.75 < 0.7
    table = length_table()[[len(line) + 1 for line in LINES]]
    np.testing.assert_allclose(vectors[:, 32:], 0.5 * table, atol=1e-5)

    less = ("--dim", 5 + COLUMNS, "--storage", "float32")
    said = encoder("reduce", both, tmp_path / "text", *less, "--out", tmp_path / "cut").out
    # Five sentences span five dimensions: nothing of them is lost.
    assert said == "1.0000 of the squared length is kept\n"
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "cut").encode(LINES)) @ c.T, vectors @ vectors.T, atol=1e-4
    )


def test_columns_for_the_length_added(tmp_path: Path) -> None:
    save(tmp_path / "plain", 12, 1)
    longer = Reduction(12 + COLUMNS, length_share=0.25, storage="float32")
    reduce_encoder(tmp_path / "plain", [tmp_path / "text"], tmp_path / "longer", longer)
    before, after = (load_encoder(tmp_path / name).encode(LINES) for name in ("plain", "longer"))
    table = length_table()[[len(line) + 1 for line in LINES]]
    np.testing.assert_allclose(after @ after.T, 0.75 * before @ before.T + 0.25 * table @ table.T, atol=1e-4)


def test_three_joined(tmp_path: Path) -> None:
    names = ("one", "two", "three")
    for seed, name in enumerate(names):
        save(tmp_path / name, 8 + seed, seed, 10.0**-seed)
    folders = [tmp_path / name for name in names]
    join_encoders(folders, tmp_path / "text", tmp_path / "all")
    vectors = load_encoder(tmp_path / "all").encode(LINES)
    assert vectors.shape == (len(LINES), 8 + 9 + 10)
    shares = [np.square(vectors[:, part]).sum(1).mean() for part in (slice(8), slice(8, 17), slice(17, 27))]
    assert all(0.2 < share < 0.5 for share in shares), shares
    for folder, part in zip(folders, (slice(8), slice(8, 17), slice(17, 27)), strict=True):
        units = vectors[:, part] / np.linalg.norm(vectors[:, part], axis=1, keepdims=True)
        np.testing.assert_allclose((units * load_encoder(folder).encode(LINES)).sum(1), 1, atol=1e-5)


def test_ngrams_are_matched_by_name(tmp_path: Path) -> None:
    size = Tokenizer(TOKENIZER).vocab_size
    names = {"one": ["ting", "tion", "ance"], "two": ["ance", "ment", "ting"]}
    for seed, (name, ngrams) in enumerate(names.items()):
        save(tmp_path / name, 8, seed, ngrams=ngrams)
    folders = [tmp_path / name for name in names]
    parts = join_encoders(folders, tmp_path / "text", tmp_path / "both")
    assert parts == [JoinedPart(str(folders[0]), 8, 3, 3), JoinedPart(str(folders[1]), 8, 2, 3)]
    assert (tmp_path / "both" / "ngrams.txt").read_text().split() == names["one"]
    one, two, both = (
        read_weights(read_folder(folder)[0], folder / WEIGHTS)[PIECES]
        for folder in (*folders, tmp_path / "both")
    )
    scale = np.linalg.norm(both[5, 8:]) / np.linalg.norm(two[5])
    np.testing.assert_allclose(
        both[:, :8] / np.linalg.norm(both[5, :8]), one / np.linalg.norm(one[5]), rtol=1e-4
    )
    np.testing.assert_allclose(both[:size, 8:], scale * two[:size], rtol=1e-4)
    rows = [np.zeros(8) if n is None else scale * two[size + n] for n in (2, None, 0)]
    np.testing.assert_allclose(both[size:, 8:], rows, rtol=1e-4)


def test_columns_for_the_order_added(tmp_path: Path) -> None:
    model = save(tmp_path / "plain", 12, 1)
    ordered = Reduction(24, order_columns=12, order_weight=0.5, storage="float32")
    reduce_encoder(tmp_path / "plain", [tmp_path / "text"], tmp_path / "ordered", ordered)
    # Turned axes leave products as they were, those of all columns in order too.
    pieces, _ = Tokenizer(TOKENIZER).encode(LINES)
    table = model.embedding.weight.detach().double().numpy()
    expected = []
    for rows in (
        table[pieces.ids[a:b]] for a, b in zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)
    ):
        waves = 0.5 * np.cos(np.pi * (np.arange(len(rows)) + 0.5) / len(rows))
        vector = np.concatenate([rows.sum(0), waves @ rows])
        expected.append(vector / np.linalg.norm(vector))
    found = load_encoder(tmp_path / "ordered").encode(LINES)
    np.testing.assert_allclose(found @ found.T, np.array(expected) @ np.array(expected).T, atol=3e-3)
    same = Reduction(24, storage="float32")
    reduce_encoder(tmp_path / "ordered", [tmp_path / "text"], tmp_path / "turned", same)
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "turned").encode(LINES)) @ c.T, found @ found.T, atol=1e-4
    )


def test_what_they_refuse(encoder: Run, tmp_path: Path) -> None:
    model, out = packaged("europe5"), ("--out", tmp_path / "x")
    refused = encoder("join", model, model, "--text", "x", *out, "--length-share", "many", code=2)
    assert "--length-share" in refused.err and "'many' is not a number" in refused.err
    refused = encoder("join", model, "--text", "x", *out, code=2)
    assert "nothing to join" in refused.err
    refused = encoder("join", model, model, "--text", "x", *out, code=2)
    assert "join the encoders first" in refused.err
    for options, message in (
        (("--order-weight", -1), "order_weight"),
        (("--length-share", 2), "length_share"),
    ):
        refused = encoder("reduce", model, "x", "--dim", 200, *options, *out, code=2)
        assert message in refused.err
    assert not (tmp_path / "x").exists(), "before anything is written"
    for dim, options, message in (
        (100_000, {}, "of --dim at most 376 for the pieces"),
        (100, {"order_columns": 60}, "60 for the order"),
        (203, {"order_columns": 0, "order_weight": 0.0, "storage": "int4"}, "a multiple of 4 for the pieces"),
        (200, {"storage": "int3"}, "--storage int3"),
        (200, {"lines": 0}, "--lines 0"),
    ):
        with pytest.raises(UsageError, match=message):
            reduce_encoder(model, ["x"], tmp_path / "x", Reduction(dim, **options))


def test_what_the_files_must_be(tmp_path: Path) -> None:
    save(tmp_path / "one", 8, 0)
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / "bad").write_bytes(b"good\nbad \xff\n")
    pair = [tmp_path / "one", tmp_path / "one"]
    for text, message in (
        ("empty", "empty: no text"),
        ("bad", "bad: line 2: invalid UTF-8"),
        ("none", "no such file"),
    ):
        with pytest.raises(BitextmineError, match=message):
            join_encoders(pair, tmp_path / text, tmp_path / "x")
        with pytest.raises(BitextmineError, match=message):
            reduce_encoder(pair[0], [tmp_path / text], tmp_path / "x", Reduction(4))
    join_encoders(pair, tmp_path / "bad", tmp_path / "replaced", errors="replace")
    other = Tokenizer(TOKENIZER).path.read_bytes()[:-1]
    save(tmp_path / "two", 8, 1)
    (tmp_path / "two" / "tokenizer.model").write_bytes(other)
    with pytest.raises(BitextmineError, match=r"two.tokenizer\.model"):
        join_encoders([tmp_path / "one", tmp_path / "two"], tmp_path / "text", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_lies_there_is_not_written_over_unasked(encoder: Run, tmp_path: Path) -> None:
    for seed, name in enumerate(("one", "two")):
        save(tmp_path / name, 8, seed, ngrams=["ting"])
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
def test_killed_it_leaves_no_half_encoder(bitextmine: Any, tmp_path: Path, forced: bool) -> None:
    for seed, name in enumerate(("one", "out")):
        save(tmp_path / name, 8, seed)
    if not forced:
        for path in (tmp_path / "out").iterdir():
            path.unlink()
        (tmp_path / "out").rmdir()
    args = ["encoder", "reduce", "one", "text", "--dim", "4", "--out", "out", *(["--force"] * forced)]
    # Forced: killed when config.json of the encoder before is gone; else before the folder has its name.
    folder = tmp_path / "out" if forced else tmp_path
    child = bitextmine.start_to_die(tmp_path / "hooks", 2, *args, folder=folder, cwd=tmp_path)
    assert child.wait() == -signal.SIGKILL
    assert not (tmp_path / "out" / "config.json").exists()
    bitextmine(*args, cwd=tmp_path)
    assert load_encoder(tmp_path / "out").dim == 4
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"hooks", "one", "out", "text"}, "what the killed run left is swept"
