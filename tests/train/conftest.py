"""A small corpus and a recipe that trains on it in seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TINY = {
    "vocabulary.size": 150, "model.dim": 16, "train.batch": 64, "train.steps": 40, "train.valid_every": 20,
    "data.valid_pairs": 60,
}  # fmt: skip


@pytest.fixture
def make_recipe(sentence_pairs: list[tuple[str, str]], tmp_path: Path) -> Callable[..., Any]:
    """Writes pairs.en-fr.tsv and returns a recipe over it, with overrides."""
    from bitextmine.train.recipe import recipe_from_pairs

    def make(rows: list[str] | None = None, **overrides: Any) -> Any:
        rows = rows if rows is not None else [f"{en}\t{fr}" for en, fr in sentence_pairs[:1600]]
        (tmp_path / "pairs.en-fr.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        settings = {**TINY, **{key.replace("__", "."): value for key, value in overrides.items()}}
        return recipe_from_pairs(["pairs.en-fr.tsv"], settings, folder=tmp_path)

    return make
