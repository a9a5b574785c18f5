"""Row-wise AdamW against AdamW over all rows."""

import numpy as np
import pytest
import torch
from torch import nn

from bitextmine.training.model.rows import RowAdamW
from bitextmine.training.model.spelling import _Means

SHAPE = (40, 19)  # neither a multiple of a vector register nor of the threads
RATES = [0.01 * min(1, (n + 1) / 5) * (1 - n / 130) for n in range(120)]


def _dense(weight, grads):
    """AdamW as in its paper, in float64, over all rows."""
    w, m, v = weight.astype(np.float64), np.zeros(SHAPE), np.zeros(SHAPE)
    for n, (grad, rate) in enumerate(zip(grads, RATES, strict=True), 1):
        m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad**2
        w -= rate * m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
    return w


def _gradients(share):
    rng = np.random.default_rng(3)
    drawn = [np.flatnonzero(rng.random(SHAPE[0]) < share) for _ in RATES]
    grads = [np.zeros(SHAPE, dtype=np.float32) for _ in RATES]
    for grad, rows in zip(grads, drawn, strict=True):
        drawn_rows = rng.normal(size=(len(rows), SHAPE[1])) * 1e-3
        grad[rows] = drawn_rows + np.copysign(1e-4, drawn_rows)  # eps' is exact only where eps matters little
    return rng.normal(size=SHAPE).astype(np.float32), grads, drawn


def _step(optimizer, p, n, grad, rows):
    optimizer.param_groups[0]["lr"] = RATES[n]
    at = torch.from_numpy(rows)
    optimizer.catch_up(p, at)
    if n % 3:
        p.grad = torch.sparse_coo_tensor(at[None], torch.from_numpy(grad[rows]), SHAPE, check_invariants=True)
    else:  # as from two uses of the table
        half = torch.from_numpy(grad[rows] / 2)
        at, values = torch.cat([at, at]), torch.cat([half, half])
        p.grad = torch.sparse_coo_tensor(at[None], values, SHAPE, check_invariants=True)
    optimizer.step()


@pytest.mark.parametrize("compiled", ["auto", "off"])
@pytest.mark.parametrize("share", [1.0, 0.3, 0.02])
def test_rows_end_where_adamw_over_all_rows_has_them(share, compiled, monkeypatch):
    monkeypatch.setenv("BITEXTMINE_COMPILED", compiled)
    weight, grads, drawn = _gradients(share)
    p = nn.Parameter(torch.from_numpy(weight.copy()))
    optimizer = RowAdamW([p], lr=0.01, weight_decay=0.0, fused=True)
    for n, (grad, rows) in enumerate(zip(grads, drawn, strict=True)):
        _step(optimizer, p, n, grad, rows)
    untouched = sorted(set(range(SHAPE[0])) - set(np.concatenate(drawn)))
    optimizer.catch_up_all()
    expected = _dense(weight, grads)
    moved = np.abs(expected - weight).max()
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=0, atol=1e-4 * moved)
    np.testing.assert_array_equal(p.detach().numpy()[untouched], weight[untouched])


def test_means_of_bags_and_their_gradient_are_those_of_torch():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 9, (50,), generator=generator)
    offsets = torch.tensor([0, 3, 3, 20, 21, 50])
    weights = torch.randn(5, 4, generator=generator)
    found = []
    for mean in (
        lambda table: _Means.apply(table, ids, offsets),
        lambda table: nn.functional.embedding_bag(ids, table, offsets, mode="mean", include_last_offset=True),
    ):
        table = torch.randn(12, 4, generator=torch.Generator().manual_seed(2), requires_grad=True)
        out = mean(table)
        (out * weights).sum().backward()
        found.append((out.detach(), table.grad.to_dense()))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)
