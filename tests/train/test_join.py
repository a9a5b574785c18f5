"""train/join.py and train/reduce.py: what the cosines of the encoders that they make are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.columns.lengths import COLUMNS, length_table
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import WEIGHTS, packaged, read_folder, save_folder
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import PIECES, read_weights

TOKENIZER = packaged("default") / "tokenizer.model"
LINES = [
    "the sitting is closed",
    "la séance est levée",
    "a",
    "the vote will take place tomorrow at noon",
    "non",
]


def run(root: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, args)], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )


def save(folder: Path, dim: int, seed: int, std: float = 0.01, ngrams: Sequence[str] = ()) -> SentenceModel:
    """A random encoder, and some text beside its folder."""
    torch.manual_seed(seed)
    size = Tokenizer(TOKENIZER).vocab_size
    model = SentenceModel(EncoderConfig(size, dim, layers=0, ngrams=len(ngrams)))
    model.initialise(std)
    save_folder(folder, model, TOKENIZER, ngrams=ngrams, dtype="float32")
    (folder.parent / "text").write_text("".join(f"{line}\n" for line in LINES))
    return model


def test_joined_and_reduced(root: Path, tmp_path: Path) -> None:
    save(tmp_path / "one", 12, 0, 0.1)
    save(tmp_path / "two", 20, 1, 3.0)
    made = run(
        root,
        "train/join.py",
        tmp_path / "one",
        tmp_path / "two",
        "--text",
        tmp_path / "text",
        "--length-share",
        0.25,
        "--out",
        tmp_path / "both",
    )
    assert made.returncode == 0, made.stderr
    one, two, both = (load_encoder(tmp_path / name) for name in ("one", "two", "both"))
    assert both.dim == 32 + COLUMNS
    # The norms of sums differ from sentence to sentence, so that the parts' shares are only about a half each.
    vectors = both.encode(LINES)
    for encoder, part in ((one, vectors[:, :12]), (two, vectors[:, 12:32])):
        units = part / np.linalg.norm(part, axis=1, keepdims=True)
        np.testing.assert_allclose((units * encoder.encode(LINES)).sum(1), 1, atol=1e-5)
    shares = np.square(vectors[:, :12]).sum(1)
    assert 0.3 < shares.mean() / 0.75 < 0.7
    table = length_table()[[len(line) + 1 for line in LINES]]
    np.testing.assert_allclose(vectors[:, 32:], 0.5 * table, atol=1e-5)

    cut = run(
        root,
        "train/reduce.py",
        tmp_path / "both",
        tmp_path / "text",
        "--dim",
        5 + COLUMNS,
        "--storage",
        "float32",
        "--out",
        tmp_path / "cut",
    )
    assert cut.returncode == 0, cut.stderr
    # Five sentences span five dimensions: nothing of them is lost.
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "cut").encode(LINES)) @ c.T, vectors @ vectors.T, atol=1e-4
    )


def test_columns_for_the_length_added(root: Path, tmp_path: Path) -> None:
    save(tmp_path / "plain", 12, 1)
    made = run(
        root,
        "train/reduce.py",
        tmp_path / "plain",
        tmp_path / "text",
        "--dim",
        12 + COLUMNS,
        "--storage",
        "float32",
        "--length-share",
        0.25,
        "--out",
        tmp_path / "longer",
    )
    assert made.returncode == 0, made.stderr
    plain, longer = (load_encoder(tmp_path / name).encode(LINES) for name in ("plain", "longer"))
    table = length_table()[[len(line) + 1 for line in LINES]]
    np.testing.assert_allclose(longer @ longer.T, 0.75 * plain @ plain.T + 0.25 * table @ table.T, atol=1e-4)


def test_three_joined(root: Path, tmp_path: Path) -> None:
    names = ("one", "two", "three")
    for seed, name in enumerate(names):
        save(tmp_path / name, 8 + seed, seed, 10.0**-seed)
    folders = [tmp_path / name for name in names]
    made = run(root, "train/join.py", *folders, "--text", tmp_path / "text", "--out", tmp_path / "all")
    assert made.returncode == 0, made.stderr
    vectors = load_encoder(tmp_path / "all").encode(LINES)
    assert vectors.shape == (len(LINES), 8 + 9 + 10)
    shares = [np.square(vectors[:, part]).sum(1).mean() for part in (slice(8), slice(8, 17), slice(17, 27))]
    assert all(0.2 < share < 0.5 for share in shares), shares
    for folder, part in zip(folders, (slice(8), slice(8, 17), slice(17, 27)), strict=True):
        units = vectors[:, part] / np.linalg.norm(vectors[:, part], axis=1, keepdims=True)
        np.testing.assert_allclose((units * load_encoder(folder).encode(LINES)).sum(1), 1, atol=1e-5)


def test_ngrams_are_matched_by_name(root: Path, tmp_path: Path) -> None:
    size = Tokenizer(TOKENIZER).vocab_size
    names = {"one": ["ting", "tion", "ance"], "two": ["ance", "ment", "ting"]}
    for seed, (name, ngrams) in enumerate(names.items()):
        save(tmp_path / name, 8, seed, ngrams=ngrams)
    folders = [tmp_path / name for name in names]
    made = run(root, "train/join.py", *folders, "--text", tmp_path / "text", "--out", tmp_path / "both")
    assert made.returncode == 0, made.stderr
    assert "2 of the 3 n-grams" in made.stdout
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


def test_columns_for_the_order_added(root: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "plain", 12, 1)
    made = run(
        root,
        "train/reduce.py",
        tmp_path / "plain",
        tmp_path / "text",
        "--dim",
        24,
        "--storage",
        "float32",
        "--order-columns",
        12,
        "--order-weight",
        0.5,
        "--out",
        tmp_path / "ordered",
    )
    assert made.returncode == 0, made.stderr
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
    again = run(
        root,
        "train/reduce.py",
        tmp_path / "ordered",
        tmp_path / "text",
        "--dim",
        24,
        "--storage",
        "float32",
        "--out",
        tmp_path / "turned",
    )
    assert again.returncode == 0, again.stderr
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "turned").encode(LINES)) @ c.T, found @ found.T, atol=1e-4
    )


def test_what_they_refuse(root: Path, tmp_path: Path) -> None:
    refused = run(
        root,
        "train/join.py",
        packaged("europe5"),
        packaged("europe5"),
        "--text",
        "x",
        "--out",
        tmp_path / "x",
        "--length-share",
        "many",
    )
    assert refused.returncode == 2 and "invalid float value" in refused.stderr
    refused = run(root, "train/join.py", packaged("europe5"), "--text", "x", "--out", tmp_path / "x")
    assert refused.returncode == 2 and "nothing to join" in refused.stderr
    refused = run(root, "train/join.py", *[packaged("europe5")] * 2, "--text", "x", "--out", tmp_path / "x")
    assert refused.returncode == 2 and "join the encoders first" in refused.stderr
    for options, message in (
        (("--order-weight", -1), "order_weight"),
        (("--length-share", 2), "length_share"),
    ):
        refused = run(
            root, "train/reduce.py", packaged("europe5"), "x", "--dim", 200, *options, "--out", tmp_path / "x"
        )
        assert refused.returncode == 2 and message in refused.stderr
    assert not (tmp_path / "x").exists(), "before anything is written"
    refused = run(
        root, "train/reduce.py", packaged("europe5"), "x", "--dim", 100_000, "--out", tmp_path / "x"
    )
    assert refused.returncode == 2 and "of --dim at most 376 for the pieces" in refused.stderr
    refused = run(
        root,
        "train/reduce.py",
        packaged("europe5"),
        "x",
        "--dim",
        100,
        "--order-columns",
        60,
        "--out",
        tmp_path / "x",
    )
    assert refused.returncode == 2 and "60 for the order" in refused.stderr
