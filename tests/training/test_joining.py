"""Encoders made of others, by the functions and by `bitextmine encoder join`: what their cosines are, what
is refused, and what happens to what lies where they are to go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns.lengths import COLUMNS, length_table
from bitextmine.encoder.folder import WEIGHTS, packaged, read_folder
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, read_weights
from bitextmine.errors import BitextmineError
from bitextmine.training.joining import JoinedPart, join_encoders
from bitextmine.training.reducing import Reduction, reduce_encoder

Run = Callable[..., Any]
Save = Callable[..., Any]
TOKENIZER = packaged("default") / "tokenizer.model"


def test_joined_and_reduced(encoder: Run, tmp_path: Path, save_encoder: Save, lines: list[str]) -> None:
    save_encoder(tmp_path / "one", 12, 0, 0.1)
    save_encoder(tmp_path / "two", 20, 1, 3.0)
    text = ("--text", tmp_path / "text")
    both = tmp_path / "both"
    encoder("join", tmp_path / "one", tmp_path / "two", *text, "--length-share", 0.25, "--out", both)
    one, two, joined = (load_encoder(tmp_path / name) for name in ("one", "two", "both"))
    assert joined.dim == 32 + COLUMNS
    # The norms of sums differ from sentence to sentence, so that the parts' shares are only about a half each.
    vectors = joined.encode(lines)
    for part_of, part in ((one, vectors[:, :12]), (two, vectors[:, 12:32])):
        units = part / np.linalg.norm(part, axis=1, keepdims=True)
        np.testing.assert_allclose((units * part_of.encode(lines)).sum(1), 1, atol=1e-5)
    shares = np.square(vectors[:, :12]).sum(1)
    assert 0.3 < shares.mean() / 0.75 < 0.7
    table = length_table()[[len(line) + 1 for line in lines]]
    np.testing.assert_allclose(vectors[:, 32:], 0.5 * table, atol=1e-5)

    less = ("--dim", 5 + COLUMNS, "--storage", "float32")
    said = encoder("reduce", both, tmp_path / "text", *less, "--out", tmp_path / "cut").out
    # Five sentences span five dimensions: nothing of them is lost.
    assert said == "1.0000 of the squared length is kept\n"
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "cut").encode(lines)) @ c.T, vectors @ vectors.T, atol=1e-4
    )


def test_three_joined(tmp_path: Path, save_encoder: Save, lines: list[str]) -> None:
    names = ("one", "two", "three")
    for seed, name in enumerate(names):
        save_encoder(tmp_path / name, 8 + seed, seed, 10.0**-seed)
    folders = [tmp_path / name for name in names]
    join_encoders(folders, tmp_path / "text", tmp_path / "all")
    vectors = load_encoder(tmp_path / "all").encode(lines)
    assert vectors.shape == (len(lines), 8 + 9 + 10)
    shares = [np.square(vectors[:, part]).sum(1).mean() for part in (slice(8), slice(8, 17), slice(17, 27))]
    assert all(0.2 < share < 0.5 for share in shares), shares
    for folder, part in zip(folders, (slice(8), slice(8, 17), slice(17, 27)), strict=True):
        units = vectors[:, part] / np.linalg.norm(vectors[:, part], axis=1, keepdims=True)
        np.testing.assert_allclose((units * load_encoder(folder).encode(lines)).sum(1), 1, atol=1e-5)


def test_ngrams_are_matched_by_name(tmp_path: Path, save_encoder: Save) -> None:
    size = Tokenizer(TOKENIZER).vocab_size
    names = {"one": ["ting", "tion", "ance"], "two": ["ance", "ment", "ting"]}
    for seed, (name, ngrams) in enumerate(names.items()):
        save_encoder(tmp_path / name, 8, seed, ngrams=ngrams)
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


def test_what_joining_refuses(encoder: Run, tmp_path: Path) -> None:
    model, out = packaged("europe5"), ("--out", tmp_path / "x")
    refused = encoder("join", model, model, "--text", "x", *out, "--length-share", "many", code=2)
    assert "--length-share" in refused.err and "'many' is not a number" in refused.err
    refused = encoder("join", model, "--text", "x", *out, code=2)
    assert "nothing to join" in refused.err
    refused = encoder("join", model, model, "--text", "x", *out, code=2)
    assert "join the encoders first" in refused.err
    assert not (tmp_path / "x").exists(), "before anything is written"


def test_what_the_files_must_be(tmp_path: Path, save_encoder: Save) -> None:
    save_encoder(tmp_path / "one", 8, 0)
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
    save_encoder(tmp_path / "two", 8, 1)
    (tmp_path / "two" / "tokenizer.model").write_bytes(other)
    with pytest.raises(BitextmineError, match=r"two.tokenizer\.model"):
        join_encoders([tmp_path / "one", tmp_path / "two"], tmp_path / "text", tmp_path / "x")
    assert not (tmp_path / "x").exists()
