"""Columns computed block by block elsewhere are those that one process computes, byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from bitextmine.clean.score import ScoreOptions, score
from bitextmine.distributed import cluster as clusters
from bitextmine.errors import UsageError

from .conftest import Here


@pytest.fixture
def pairs(tmp_path: Path, sentence_pairs: list[tuple[str, str]]) -> Path:
    """Rows that are no pairs make blocks short, so that they are seen with the ones before."""
    path = tmp_path / "pairs.tsv"
    lines = [f"{en}\t{fr}\n" for en, fr in sentence_pairs[:300]]
    for row in (5, 70, 71, 72, 140, 299):
        lines[row] = "no pair\n"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("layers", [0, 1])
def test_scores_are_the_same(
    layers: int,
    pairs: Path,
    tmp_path: Path,
    make_folder: Callable[..., Path],
    here: Callable[..., Here],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make_folder(tmp_path / "model", layers)
    plain = ScoreOptions(model=str(model), window=64, device="cpu")
    score(pairs, tmp_path / "plain.tsv", plain)
    cluster = here()
    monkeypatch.setattr(clusters, "connected", lambda options: contextlib.nullcontext(cluster))
    remote = ScoreOptions(model=str(model), window=64, ray="local")
    score(pairs, tmp_path / "cluster.tsv", remote)
    assert (tmp_path / "cluster.tsv").read_bytes() == (tmp_path / "plain.tsv").read_bytes()
    assert len(cluster.made) == 5


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="give each worker a GPU with --ray-gpus 1"):
        score("x.tsv", "y.tsv", ScoreOptions(ray="local", device="cuda"))
    with pytest.raises(UsageError, match="is for --ray, which is not given"):
        score("x.tsv", "y.tsv", ScoreOptions(ray_cpus=2))
