"""Piece frequencies, and a start from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from bitextmine.training.sampling import piece_frequencies

Make = Callable[..., Any]


def test_frequencies_are_those_of_the_training_text(make_recipe: Make, prepare: Make) -> None:
    recipe = make_recipe()
    tokenizer, (cache,) = prepare(recipe)
    pairs = cache.train.take(np.arange(len(cache.train)))
    counts = np.bincount(np.concatenate([pairs.src.ids, pairs.tgt.ids]), minlength=tokenizer.vocab_size)
    found = piece_frequencies([cache], tokenizer.vocab_size)
    assert found.min() > 0
    np.testing.assert_allclose(found.sum(), 1)
    seen = counts > 0
    np.testing.assert_allclose(found[seen] / found[seen].sum(), counts[seen] / counts.sum())
    few = piece_frequencies([cache], tokenizer.vocab_size, pairs=len(cache.train) // 2)
    assert np.abs(few - found).sum() < 0.2
    # A corpus that is drawn twice as often counts twice: here, of the same text, that changes nothing.
    np.testing.assert_allclose(piece_frequencies([cache, cache], tokenizer.vocab_size), found, atol=1e-5)


def test_a_run_starts_from_them(make_recipe: Make, begin: Make) -> None:
    recipe = make_recipe(train__objective={"xtr": 1.0})
    run = begin(recipe)
    (head,) = run.objectives.heads
    expected = piece_frequencies(run.caches, run.inputs.tokenizer.vocab_size)
    with torch.no_grad():
        no_vectors = torch.zeros(len(expected), recipe.model.dim)
        p = (head(torch.randn(3, recipe.model.dim)) @ no_vectors.T + head.bias).softmax(1)
    for row in p.numpy():
        np.testing.assert_allclose(row, expected, rtol=1e-4)
    assert begin(make_recipe(train__objective={"contrastive": 1.0})).objectives.heads == ()
