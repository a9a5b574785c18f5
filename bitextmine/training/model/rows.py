"""AdamW that only touches the rows of a table that a batch has, and ends where AdamW over all rows would.

A row without a gradient still moves under AdamW: its moments m and v decay, and its momentum moves it,

    w -= lr_n / (1 - b1^n) * m b1^j / (sqrt(v b2^j / (1 - b2^n)) + eps)        in step n, j steps after its last one,

which is m / (sqrt(v) + eps') times a number that depends on the steps only. So the sum over the steps that a row has
missed is a number from a table by the step of its last update, and is made up for just before the row is needed again.
eps' = eps sqrt((1 - b2^n) / b2^j) is taken from the first step missed: b1^j leaves others little weight, and eps
matters only for gradients near 1e-8. All else is exact but for rounding.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bitextmine import compiled


class RowAdamW(torch.optim.AdamW):
    """AdamW that updates parameters with sparse gradients by rows; call `catch_up` before rows are read.

    The state of such a parameter has two more entries, float32: "last" (rows,), the step of each row's last update,
    and "moved" (step + 1,), at s the movement since step s in units of m / (sqrt(v) + eps').
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update all parameters that have a gradient; those with a sparse one only in its rows."""
        sparse = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and p.grad.is_sparse:
                    sparse.append((group, p, p.grad))
                    p.grad = None
        loss = super().step(closure)
        for group, p, grad in sparse:
            self._step_rows(group, p, grad)
            p.grad = grad
        return loss

    @torch.no_grad()
    def catch_up(self, p: Tensor, rows: Tensor | None = None) -> None:
        """Bring rows (distinct; None: all) to where AdamW over all rows would have them now."""
        state = self.state[p]
        if "last" not in state:
            return
        group = next(g for g in self.param_groups if any(p is parameter for parameter in g["params"]))
        (b1, b2), step = group["betas"], float(state["step"])
        rows = (state["last"] < step).nonzero()[:, 0] if rows is None else rows[state["last"][rows] < step]
        last = state["last"][rows].double()
        gap = step - last
        eps = group["eps"] * ((1 - b2 ** (last + 1)) / b2).sqrt()
        moved = state["moved"][last.long()].double()
        _adam_rows(p, state, None, rows, torch.stack([b1**gap, b2**gap, moved, eps], dim=1).float())
        state["last"][rows] = step

    def catch_up_all(self) -> None:
        """Bring all rows of all parameters up to date."""
        for p in list(self.state):
            self.catch_up(p)

    def _step_rows(self, group: dict[str, Any], p: nn.Parameter, grad: Tensor) -> None:
        if group["weight_decay"]:
            raise ValueError("rows cannot decay")
        rows, values = grad._indices()[0], grad._values()
        if bool((rows.diff() <= 0).any()):
            grad = grad.coalesce()
            rows, values = grad.indices()[0], grad.values()
        state = self.state[p]
        if not state:
            state["step"] = torch.zeros((), device=p.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
            state["last"], state["moved"] = p.new_zeros(len(p)), p.new_zeros(1)
        self.catch_up(p, rows)
        state["step"] += 1
        (b1, b2), step = group["betas"], int(state["step"])
        move = group["lr"] / (1 - b1**step) * (1 - b2**step) ** 0.5
        factors = torch.tensor([b1, b2, move, group["eps"] * (1 - b2**step) ** 0.5], device=p.device)
        _adam_rows(p, state, values.contiguous(), rows, factors.repeat(len(rows), 1))
        since = torch.arange(step, 0, -1, device=p.device, dtype=torch.float64)
        moved = state["moved"].double() + move * (b1 / b2**0.5) ** since
        state["moved"] = torch.cat([moved, moved.new_zeros(1)]).float()
        state["last"][rows] = step


def _adam_rows(p: Tensor, state: dict[str, Any], grad: Tensor | None, rows: Tensor, factors: Tensor) -> None:
    """Move rows and their moments: factors (rows, 4) are the share kept of m and of v, the movement, and eps'.

    With a gradient (rows, d) the moments change before the movement, else after it.
    """
    tables = [p.data, state["exp_avg"], state["exp_avg_sq"]]
    library = compiled.library("encoder")
    if library is not None and all(table.device.type == "cpu" and table.is_contiguous() for table in tables):
        w, m, v = (table.numpy() for table in tables)
        at, each = rows.contiguous().numpy(), factors.contiguous().numpy()
        given = None if grad is None else grad.numpy()

        def step(part: np.ndarray) -> None:
            a, b = int(part[0]), int(part[1])
            mine = None if given is None else given[a:b]
            library.adam_rows(w, m, v, mine, at[a:b], b - a, w.shape[1], each[a:b])

        threads = torch.get_num_threads()
        cuts = np.linspace(0, len(at), threads + 1).astype(np.int64)
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(step, np.stack([cuts[:-1], cuts[1:]], axis=1)))
        return
    keep1, keep2, move, eps = factors.T[:, :, None]
    m, v = tables[1][rows], tables[2][rows]
    if grad is not None:
        m, v = keep1 * m + (1 - keep1) * grad, keep2 * v + (1 - keep2) * grad.square()
    tables[0].index_add_(0, rows, -move * m / (v.sqrt() + eps))
    if grad is None:
        m, v = keep1 * m, keep2 * v
    tables[1][rows], tables[2][rows] = m, v
