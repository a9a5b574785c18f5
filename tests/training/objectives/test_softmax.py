"""The blockwise loss against a slow float64 oracle, value and gradient."""

import numpy as np
import pytest
import torch

from bitextmine.training.objectives import cosines
from bitextmine.training.objectives.cosines import false_negatives


def oracle(src, tgt, t, keys):
    n = len(src)
    total = 0.0
    for i in range(n):
        for a, b in ((src, tgt), (tgt, src)):
            logits = []
            for j in range(n):
                same = keys[0, i] == keys[0, j] or keys[1, i] == keys[1, j]
                if j == i or not same:
                    logits.append(float(a[i] @ b[j]) / t)
            own = float(a[i] @ b[i]) / t
            top = max(logits)
            total += top + np.log(sum(np.exp(x - top) for x in logits)) - own
    return total / (2 * n)


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "block", "repeats"), [(2, 512, False), (7, 4, True), (30, 4, False)])
def test_value_and_gradient(n, block, repeats, monkeypatch):
    monkeypatch.setattr(cosines, "ROWS", block)
    rng = np.random.default_rng(n)
    src, tgt = unit(rng, n, 6), unit(rng, n, 6)
    keys = rng.integers(0, max(2, n // 3) if repeats else 10**9, (2, n)).astype(np.uint64)
    masked = false_negatives(keys)
    a = torch.tensor(src, dtype=torch.float32, requires_grad=True)
    b = torch.tensor(tgt, dtype=torch.float32, requires_grad=True)
    loss = cosines.symmetric_softmax_loss(a, b, 0.1, masked)
    assert float(loss.detach()) == pytest.approx(oracle(src, tgt, 0.1, keys), abs=1e-5)
    loss.backward()
    step = 1e-5
    for matrix, grad in ((src, a.grad), (tgt, b.grad)):
        for _ in range(6):
            i, j = int(rng.integers(n)), int(rng.integers(6))
            matrix[i, j] += step
            up = oracle(src, tgt, 0.1, keys)
            matrix[i, j] -= 2 * step
            down = oracle(src, tgt, 0.1, keys)
            matrix[i, j] += step
            assert float(grad[i, j]) == pytest.approx((up - down) / (2 * step), abs=2e-4)


def test_bfloat16_is_close():
    rng = np.random.default_rng(0)
    a, b = (torch.tensor(unit(rng, 200, 32), dtype=torch.float32) for _ in range(2))
    full = cosines.symmetric_softmax_loss(a, b, 0.05)
    low = cosines.symmetric_softmax_loss(a, b, 0.05, precision=torch.bfloat16)
    assert float(low) == pytest.approx(float(full), rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_false_negatives_are_all_pairs_of_equal_keys(seed):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 9, (2, 25)).astype(np.uint64)
    expected = [
        (i, j) for i in range(25) for j in range(25)
        if i != j and (keys[0, i] == keys[0, j] or keys[1, i] == keys[1, j])
    ]  # fmt: skip
    i, j = false_negatives(keys)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
