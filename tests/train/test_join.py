"""train/join.py and train/reduce.py: what the cosines of the encoders that they make are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from bitextmine.encoder import load_encoder
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import packaged, save_folder
from bitextmine.encoder.lengths import COLUMNS, length_table
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.tokenizer import Tokenizer

TOKENIZER = packaged("default") / "tokenizer.model"
LINES = ["the sitting is closed", "la séance est levée", "a", "the vote will take place tomorrow at noon", "non"]


def run(root: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, args)], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )


def test_joined_and_reduced(root: Path, tmp_path: Path) -> None:
    size = Tokenizer(TOKENIZER).vocab_size
    for seed, (name, dim, std) in enumerate((("one", 12, 0.1), ("two", 20, 3.0))):
        torch.manual_seed(seed)
        model = SentenceModel(EncoderConfig(size, dim, layers=0))
        model.initialise(std)
        save_folder(tmp_path / name, model, TOKENIZER, dtype="float32")
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    made = run(
        root, "train/join.py", tmp_path / "one", tmp_path / "two", "--text", tmp_path / "text", "--length-share", 0.25,
        "--out", tmp_path / "both",
    )  # fmt: skip
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
        root, "train/reduce.py", tmp_path / "both", tmp_path / "text", "--dim", 5 + COLUMNS, "--storage", "float32",
        "--out", tmp_path / "cut",
    )  # fmt: skip
    assert cut.returncode == 0, cut.stderr
    # Five sentences span five dimensions: nothing of them is lost.
    np.testing.assert_allclose(
        (c := load_encoder(tmp_path / "cut").encode(LINES)) @ c.T, vectors @ vectors.T, atol=1e-4
    )


def test_columns_for_the_length_added(root: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = SentenceModel(EncoderConfig(Tokenizer(TOKENIZER).vocab_size, 12, layers=0))
    model.initialise()
    save_folder(tmp_path / "plain", model, TOKENIZER, dtype="float32")
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    made = run(
        root, "train/reduce.py", tmp_path / "plain", tmp_path / "text", "--dim", 12 + COLUMNS, "--storage", "float32",
        "--length-share", 0.25, "--out", tmp_path / "longer",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    plain, longer = (load_encoder(tmp_path / name).encode(LINES) for name in ("plain", "longer"))
    table = length_table()[[len(line) + 1 for line in LINES]]
    np.testing.assert_allclose(longer @ longer.T, 0.75 * plain @ plain.T + 0.25 * table @ table.T, atol=1e-4)


def test_what_they_refuse(root: Path, tmp_path: Path) -> None:
    refused = run(
        root, "train/join.py", packaged("europe5"), packaged("europe5"), "--text", "x", "--out", tmp_path / "x",
        "--length-share", "many",
    )  # fmt: skip
    assert refused.returncode == 2 and "invalid float value" in refused.stderr
    refused = run(root, "train/reduce.py", packaged("europe5"), "x", "--dim", 100_000, "--out", tmp_path / "x")
    assert refused.returncode == 2 and "--dim above 8 and at most 480" in refused.stderr
