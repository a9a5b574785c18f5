"""The vocabulary's sample, and disks that are full."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.training.vocabulary import sample_lines, train_vocabulary


def test_every_line_has_the_same_chance(make_recipe: Callable[..., Any]) -> None:
    found: Counter[int] = Counter()
    for seed in range(200):
        recipe = make_recipe(
            [f"{i}\tx" for i in range(50)], train__seed=seed, vocabulary__lines_per_language=10
        )
        lines = sample_lines(recipe)["en"]
        assert len(set(lines)) == 10
        found.update(map(int, lines))
    assert all(15 < found[i] < 75 for i in range(50)), "40 each, give or take chance"
    few = make_recipe(["a\tb", "c\td"], vocabulary__lines_per_language=10)
    assert sample_lines(few) == {"en": ["a", "c"], "fr": ["b", "d"]}


def test_a_full_disk_is_not_taken_for_too_few_lines(
    make_recipe: Callable[..., Any], tmp_path: Path, sentence_pairs: list[tuple[str, str]]
) -> None:
    lines = [pair[0] for pair in sentence_pairs[:300]]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(BitextmineError, match=r"t.model: cannot write the vocabulary: "):
            train_vocabulary(make_recipe([]), tmp_path / "t.model", lines)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("t.model*"))
    with pytest.raises(
        BitextmineError, match=r"vocabulary.size: SentencePiece could not train 150 pieces on 1"
    ):
        train_vocabulary(make_recipe([], vocabulary__type="bpe"), tmp_path / "t.model", ["a"])
