"""Which documents belong together."""

import numpy as np
import pytest

from bitextmine.alignment.documents import match_documents
from bitextmine.alignment.windows import Windows


def collection(seed, count, noise=0.6):
    """Documents of 5 to 40 sentences, those of one number in two languages."""
    rng = np.random.default_rng(seed)
    sides: tuple[list[Windows], list[Windows]] = ([], [])
    for _ in range(count):
        rows = rng.normal(size=(rng.integers(5, 40), 48)) + rng.normal(size=48)
        for side in sides:
            noisy = rows + noise * rng.normal(size=rows.shape)
            side.append(Windows(noisy / np.linalg.norm(noisy, axis=1, keepdims=True)))
    return sides


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_each_finds_its_own(count):
    src, tgt = collection(count, count)
    order = np.random.default_rng(1).permutation(count)
    found = match_documents(src, [tgt[i] for i in order])
    assert [(i, int(order[j])) for i, j in found] == [(i, i) for i in range(count)]


def test_what_has_no_partner_gets_none():
    src, tgt = collection(5, 40)
    found = match_documents(src[:30], tgt[10:])
    assert [(i, j + 10) for i, j in found] == [(i, i) for i in range(10, 30)]


def test_documents_without_sentences():
    src, tgt = collection(6, 5)
    empty = Windows(np.zeros((0, 48), dtype=np.float32))
    assert match_documents([], tgt) == match_documents(src, []) == []
    assert match_documents([empty, *src], [*tgt, empty])[-5:] == [(i + 1, i) for i in range(5)]


def test_documents_that_are_all_alike():
    src, _ = collection(7, 1)
    found = match_documents(src * 4, src * 3)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)
