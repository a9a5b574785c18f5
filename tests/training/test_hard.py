"""Hard negatives: the nearest candidates, none that says the same, and the same choice wherever a run is resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.training.hard import RANKS, nearest_candidates, with_hard_negatives
from bitextmine.training.objectives.check import check_objectives
from bitextmine.training.recipe import Recipe, Training
from bitextmine.training.sampling import Batch, Sampler

Make = Callable[..., Any]


def unit(rng: np.random.Generator, n: int, d: int = 6) -> torch.Tensor:
    vectors = rng.standard_normal((n, d))
    return torch.from_numpy((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


def slow(
    src: np.ndarray, tgt: np.ndarray, keys: np.ndarray, begin: int, wanted: int, limit: float
) -> list[int]:
    n = len(src)

    def cosine(i: int, j: int) -> float:
        return max(float(src[i] @ tgt[j]), float(src[j] @ tgt[i]))

    def is_new(j: int) -> bool:
        before = [*range(begin), *range(begin, j)]
        return not any(keys[side, i] == keys[side, j] for i in before for side in (0, 1))

    new = [j for j in range(begin, n) if is_new(j)]
    same = [j for j in new if any(cosine(i, j) > limit for i in range(begin))]
    ranked = [sorted(new, key=lambda j: -cosine(i, j))[:RANKS] for i in range(begin)]
    order = [found[rank] for rank in range(RANKS) for found in ranked if rank < len(found)]
    order = [j for j in order if j not in same]
    order += [j for j in new if j not in same] + same + [j for j in range(begin, n) if j not in new]
    return list(dict.fromkeys(order))[:wanted]


@given(st.integers(1, 12), st.integers(1, 30), st.sampled_from([0.3, 0.8, 1.0]), st.integers(0, 2**32 - 1))
def test_the_nearest_that_are_no_copies(begin: int, candidates: int, limit: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = begin + candidates
    src, tgt = unit(rng, n), unit(rng, n)
    keys = rng.integers(0, max(2, n // 2), (2, n)).astype(np.uint64)
    wanted = int(rng.integers(1, candidates + 1))
    # Where two are as near as this, or one is to the limit, rounding decides.
    x, y = src.double().numpy(), tgt.double().numpy()
    near = np.sort(np.maximum(x[:begin] @ y[begin:].T, y[:begin] @ x[begin:].T), axis=1)
    assume((np.diff(near, axis=1) > 1e-6).all() and (np.abs(near - limit) > 1e-6).all())
    found = nearest_candidates(src, tgt, keys, begin, wanted, limit)
    assert found.dtype == np.int64
    expected = slow(x, y, keys, begin, wanted, limit)
    assert found.tolist() == expected
    assert len(set(found.tolist())) == wanted


def test_more_pairs_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    src, tgt, keys = unit(rng, 90), unit(rng, 90), np.arange(180, dtype=np.uint64).reshape(2, 90)
    whole = nearest_candidates(src, tgt, keys, 40, 30, 0.9)
    monkeypatch.setattr("bitextmine.training.hard.BLOCK_ROWS", 7)
    assert (nearest_candidates(src, tgt, keys, 40, 30, 0.9) == whole).all()


def test_a_batch_takes_the_pairs_that_are_confused() -> None:
    """Piece p of the source is translated by piece p + 1 (p even); candidate 6 is made of the pieces of pair 0."""
    model = SentenceModel(EncoderConfig(40, 32, layers=0, languages=("en", "fr")))
    torch.manual_seed(0)
    model.initialise()
    with torch.no_grad():
        model.embedding.weight[1::2] = model.embedding.weight[0::2]
    model.train()
    source = [[0, 2], [4, 6], [8, 10], [20, 22], [24, 26], [28, 30], [0, 12], [32, 34]]
    target = [[piece + 1 for piece in sentence] for sentence in source]
    keys = np.arange(16, dtype=np.uint64).reshape(2, 8)
    batch = Batch(0, Pieces.from_lists(source), Pieces.from_lists(target), keys, candidates=5, wanted=4)
    found = with_hard_negatives(model, batch, Training(hard_negatives=0.25))
    assert len(found) == 4 and not found.candidates and model.training
    assert found.src.ids.tolist() == [0, 2, 4, 6, 8, 10, 0, 12]
    assert found.tgt.ids.tolist() == [1, 3, 5, 7, 9, 11, 1, 13]
    assert found.keys.tolist() == keys[:, [0, 1, 2, 6]].tolist()
    plain = Batch(0, batch.src, batch.tgt, keys)
    assert with_hard_negatives(model, plain, Training()) is plain


def test_candidates_are_drawn_in_an_order_of_their_own_that_resumes(
    make_recipe: Make, tmp_path: Path
) -> None:
    from bitextmine.training.cache import open_caches
    from bitextmine.training.vocabulary import open_vocabulary

    recipe = make_recipe(train__batch=40, train__hard_negatives=0.25, train__hard_pool=3)
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    caches = open_caches(work / "cache", recipe, open_vocabulary(recipe, work), show_progress=False)
    n = len(caches[0].train)
    whole = Sampler(caches, recipe)
    batches = [whole.draw(step) for step in range(2 * n // 30)]
    assert {(len(batch), batch.candidates, batch.wanted) for batch in batches} == {(60, 30, 40)}
    everything = sorted(caches[0].train.take(np.arange(n)).keys[0].tolist())
    for part in (slice(0, 30), slice(30, 60)):
        seen = np.concatenate([batch.keys[0, part] for batch in batches])[:n]
        assert sorted(seen.tolist()) == everything, "a pass visits every pair once"
    late = Sampler(caches, recipe)
    late.skip(7)
    for step in range(7, 12):
        assert (late.draw(step).keys == batches[step].keys).all()


def test_a_corpus_smaller_than_the_candidates_gives_what_it_has(
    make_recipe: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bitextmine.training.run import Run
    from bitextmine.training.trainer import train

    recipe = make_recipe(train__batch=4000, train__hard_negatives=0.5, train__hard_pool=100, train__steps=1)
    seen = []

    def learn(self: Run, batch: Batch, share: float, lesson: Batch | None) -> dict[str, float]:
        seen.append(batch)
        return plain(self, batch, share)

    plain = Run.learn
    monkeypatch.setattr(Run, "learn", learn)
    train(recipe, tmp_path / "out", show_progress=False)
    (batch,) = seen
    assert not batch.candidates and len(set(map(tuple, batch.keys.T))) == len(batch) > 1000, "every pair once"


def test_only_contrastive_has_negatives() -> None:
    check_objectives(Recipe(train=Training(hard_negatives=0.5)))
    with pytest.raises(BitextmineError, match=r"train\.hard_negatives.*'contrastive'"):
        check_objectives(Recipe(train=Training(objective={"ugt": 1.0}, hard_negatives=0.5)))
