"""Exact search with torch: blocked products, survivors selected by threshold and rescored exactly; CPU and CUDA.

On a GPU everything stays there until a block of rows is done: the candidates, their exact products, the k best so far
of both sides and, if there is room, all rows of y.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.search.neighbours import TopK
from bitextmine.search.options import Arithmetic, SearchOptions
from bitextmine.search.products import LANES, pair_products
from bitextmine.search.rows import VectorRows, check_length
from bitextmine.system import bfloat16_instructions

_SMALLEST = 64
# Rows of x, of y at a time. On a GPU there are the fewer candidates the more rows of y are compared at once.
_GPU_BLOCK, _CPU_BLOCK = (16384, 65536), (4096, 1024)
_GPU_BYTES = 16  # per pair of rows of a block, with room to spare
_GPU_PAIRS = 1 << 18  # multiplied exactly at a time


@dataclass(frozen=True)
class _Loaded:
    """Rows x on the device, and divided by `scale` and rounded to x', with the largest |x|, |x'| and |x - x'|."""

    stored: torch.Tensor
    rows: torch.Tensor
    scale: float
    long: float
    near: float
    lost: float


class BlockSearch:
    """Compares blocks of x's rows with all of y, `tile` rows of y at a time.

    If the device runs out of memory, the tile is halved and the block starts again: pairs that are merged twice count
    once.

    A pair is dropped when its computed product is further below the k-th best of its row and of its column than the
    arithmetic's error bound: with unit roundoff u of the arithmetic (and of its output), rows x and y,

        |computed - x.y|  <=  |x - x'| |y| + |x'| |y - y'| + d 2^-23 |x'||y'| + u |x'||y'|

    where x', y' are the rows as rounded to that arithmetic, and the sums are float32. If torch may narrow float32
    operands, the bound allows for that as well.
    """

    def __init__(self, x: VectorRows, y: VectorRows, options: SearchOptions, memory: int) -> None:
        self._device = torch.device(options.device)
        self._dtype = getattr(torch, options.arithmetic or _arithmetic(options.device))
        self._x, self._y = x, y
        block = _CPU_BLOCK
        while self._device.type == "cpu" and max(block) > _SMALLEST and memory < _working(*block, x.dim):
            block = max(_SMALLEST, block[0] // 2), max(_SMALLEST, block[1] // 2)
        if self._device.type == "cuda":
            block = _GPU_BLOCK
            while block[1] > block[0] and math.prod(block) * _GPU_BYTES > _free(self._device)[0]:
                block = block[0], block[1] // 2
        self.block_rows, self._tile = block
        self._kept: dict[tuple[int, int], _Loaded] = {}  # rows of y that stay on a GPU

    @staticmethod
    def least_memory(x: VectorRows) -> int:
        """Return the bytes of a search with the smallest blocks."""
        return _working(_SMALLEST, _SMALLEST, x.dim)

    def _load(self, rows: NDArray[Any]) -> _Loaded:
        stored = torch.from_numpy(np.array(rows)).to(self._device)
        exact = stored.float()
        long = float(_longest(exact))
        check_length(long, "vectors")
        if self._dtype == torch.float32:
            return _Loaded(stored, exact, 1.0, long, long, 0.0)
        scale = 1.0
        if self._dtype == torch.float16 and long > 16:  # products of float16 end at 65504
            scale = 2.0 ** math.ceil(math.log2(long))
            exact, long = exact / scale, long / scale
        rounded = exact.to(self._dtype)
        lost = float(_longest(exact - rounded))
        return _Loaded(stored, rounded, scale, long, long + lost, lost)

    def _load_target(self, start: int, stop: int) -> _Loaded:
        loaded = self._kept.get((start, stop))
        if loaded is None:
            loaded = self._load(self._y.block(start, stop))
            if self._device.type == "cuda":
                free, total = _free(self._device)
                if free > total // 2:
                    self._kept[start, stop] = loaded
        return loaded

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compare x's rows start..stop with every row of y and merge the results into `fwd` and `bwd`.

        If both are one, so are x and y: one direction does.
        """
        stop, bwd = min(stop, len(self._x)), None if bwd is fwd else bwd
        best = _Best(fwd, start, stop, self._device)
        back = None if bwd is None else _Best(bwd, 0, len(self._y), self._device)
        while True:
            try:
                rows = self._load(self._x.block(start, stop))
                for begin in range(0, len(self._y), self._tile):
                    cols = begin, min(begin + self._tile, len(self._y))
                    self._compare(rows, (start, stop), cols, best, back)
                break
            except (RuntimeError, MemoryError) as error:
                if not _out_of_memory(error):
                    raise
                if self._tile <= _SMALLEST:
                    raise BitextmineError(
                        f"out of memory on {self._device} even with blocks of {stop - start} x {self._tile} vectors; "
                        "free memory there or use --device cpu"
                    ) from error
            self._kept.clear()
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
            self._tile = max(_SMALLEST, self._tile // 2)
        best.store()
        if back is not None:
            back.store()

    def _compare(
        self, a: _Loaded, rows: tuple[int, int], cols: tuple[int, int], fwd: "_Best", bwd: "_Best | None"
    ) -> None:
        b = self._load_target(*cols)
        sims = _product(a.rows, b.rows)
        roundoff = torch.finfo(self._dtype).eps / 2
        # A GPU may round partial sums to the type of the output.
        roundings = 5 if self._dtype == torch.float16 or sims.device.type == "cuda" else 1
        relative = self._x.dim * 2.0**-23 + roundings * roundoff + 1e-6
        if self._dtype == torch.float32:
            relative += 2.001 * _narrowed(sims.device)
        error = a.lost * b.long + a.near * b.lost + relative * a.near * b.near
        error += 1e-37  # where float32 begins to lose digits
        scale = a.scale * b.scale

        def exact(hit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            row, col = _true(hit)
            if self._device.type == "cpu":  # compiled, if possible
                x, y = self._x.block(*rows), self._y.block(*cols)
                exact_sims = pair_products(x, y, row.numpy(), col.numpy(), self._x.dtype)
                return row, col, torch.from_numpy(exact_sims)
            parts = zip(row.split(_GPU_PAIRS), col.split(_GPU_PAIRS), strict=True)
            return row, col, torch.cat([exact_products(a.stored[i], b.stored[j]) for i, j in parts])

        hit = sims >= self._limit(sims, 1, fwd.sim, error, scale)[:, None]
        row, col, sim = exact(hit)
        fwd.merge(row, col + cols[0], sim)
        if bwd is not None:
            limit = self._limit(sims, 0, bwd.sim[slice(*cols)], error, scale)
            row, col, sim = exact(torch.ge(sims, limit[None, :], out=hit))
            bwd.merge(col + cols[0], row + rows[0], sim)

    def _limit(
        self, sims: torch.Tensor, dim: int, best: torch.Tensor, error: float, scale: float
    ) -> torch.Tensor:
        """Return the least computed product that may matter.

        That is the k-th ``best`` (n, k) so far less one error; while there are fewer than k, a lower bound of this
        tile's k-th best less two errors.
        """
        limit, k = best[:, -1] / scale - error, best.shape[1]
        fresh = torch.isinf(limit)
        if bool(fresh.any()) and sims.shape[dim] >= k:
            limit[fresh] = _kth(sims, dim, k).float()[fresh] - 2 * error
        if sims.dtype == torch.float32:
            return limit
        narrow = torch.finfo(sims.dtype)  # rounded down
        return (limit - limit.abs() * narrow.eps - narrow.tiny).to(sims.dtype)


class _Best:
    """Rows start..stop of a `TopK` on a device: sim (n, k) float32 and id (n, k) int64; on a CPU its own memory."""

    def __init__(self, best: TopK, start: int, stop: int, device: torch.device) -> None:
        self._best, self._rows = best, slice(start, stop)
        self.sim, self.id = (torch.from_numpy(side[start:stop]).to(device) for side in (best.sim, best.id))

    def store(self) -> None:
        if self.sim.device.type != "cpu":
            self._best.sim[self._rows] = self.sim.cpu().numpy()
            self._best.id[self._rows] = self.id.cpu().numpy()

    def merge(self, row: torch.Tensor, ids: torch.Tensor, sim: torch.Tensor) -> None:
        """Add candidates (row, id, similarity), any number per row; an id that a row already has counts once.

        The ids of a row ascend.
        """
        if not len(row):
            return
        k = self.sim.shape[1]
        order = torch.sort(sim, descending=True, stable=True).indices
        order = order[torch.sort(row[order], stable=True).indices]
        row, ids, sim = row[order], ids[order], sim[order]
        rows, place, count = torch.unique_consecutive(row, return_inverse=True, return_counts=True)
        rank = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[place]
        keep = rank < k
        at = place[keep], rank[keep]
        new_sim = self.sim.new_full((len(rows), k), -math.inf)
        new_id = self.id.new_full((len(rows), k), -1)
        new_sim[at], new_id[at] = sim[keep], ids[keep]
        old_sim, old_id = self.sim[rows], self.id[rows]
        known = (new_id[:, :, None] == old_id[:, None, :]).any(dim=2)
        new_sim[known], new_id[known] = -math.inf, -1
        both_sim, both_id = torch.cat([old_sim, new_sim], dim=1), torch.cat([old_id, new_id], dim=1)
        # By id, missing ones last, then by similarity.
        order = torch.sort(both_id.where(both_id >= 0, torch.iinfo(torch.int64).max), dim=1).indices
        best = torch.sort(both_sim.gather(1, order), dim=1, descending=True, stable=True).indices
        order = order.gather(1, best[:, :k])
        self.sim[rows], self.id[rows] = both_sim.gather(1, order), both_id.gather(1, order)


def exact_products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return `products.products` of x (p, d) and y (p, d), float16 or float32, on their device, to the bit."""
    acc = torch.zeros((len(x), LANES), dtype=torch.float64, device=x.device)
    for at in range(0, x.shape[1], LANES):
        a, b = x[:, at : at + LANES].double(), y[:, at : at + LANES].double()
        acc[:, : a.shape[1]].addcmul_(a, b)  # exact products: a fused addition rounds alike
    s = (acc[:, :8] + acc[:, 8:16]) + (acc[:, 16:24] + acc[:, 24:])
    s = s[:, :4] + s[:, 4:]
    return ((s[:, 0] + s[:, 2]) + (s[:, 1] + s[:, 3])).float() + 0.0


def _product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y.T


def _arithmetic(device: str) -> Arithmetic:
    """Return float16 for CUDA, where stored vectors enter unrounded; on a CPU what it has instructions for."""
    if device.startswith("cuda"):
        return Arithmetic.FLOAT16
    fast = bfloat16_instructions() & {"avx512_bf16", "amx_tile"}
    return Arithmetic.BFLOAT16 if fast else Arithmetic.FLOAT32


def _free(device: torch.device) -> tuple[int, int]:
    """Return the bytes of a GPU that are free for this process, and all of them."""
    free, total = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + kept, total


def _narrowed(device: torch.device) -> float:
    """Return the unit roundoff that torch may round float32 operands to; 0 for float32's own.

    A program can ask for it, for all products at once.
    """
    try:
        asked = torch.get_float32_matmul_precision()
    except RuntimeError:  # it was asked for in the new way, per library: the narrowest
        asked = "medium"
    if device.type == "cuda":  # TF32, whose switches are several
        return 2.0**-11
    return {"highest": 0.0, "high": 2.0**-11}.get(asked, 2.0**-8)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "out of memory" in str(error)


def _longest(rows: torch.Tensor) -> torch.Tensor:
    """Return the length of the longest row, without squaring the smallest float32 numbers, which would vanish."""
    largest = rows.abs().max().clamp(min=1e-38)
    return largest * torch.linalg.vector_norm(rows / largest, dim=1).max()


def _working(rows: int, tile: int, dim: int) -> int:
    return (rows + tile) * (dim * 12 + 2000) + rows * tile * 6 + (8 << 20)


def _true(hit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows and columns of True, row by row; few are, so a CPU looks at eight together."""
    if hit.device.type != "cpu" or hit.numel() % 8:
        flat = hit.view(-1).nonzero()[:, 0]
    else:
        words = hit.view(-1).view(torch.int64).nonzero()[:, 0]
        word, byte = hit.view(-1, 8)[words].numpy().nonzero()
        flat = words[torch.from_numpy(word)] * 8 + torch.from_numpy(byte)
    return flat // hit.shape[1], flat % hit.shape[1]


def _kth(sims: torch.Tensor, dim: int, k: int) -> torch.Tensor:
    """Return a close lower bound of the k-th largest along `dim`: the k-th largest of the maxima of parts.

    The k largest maxima are k distinct entries, so at least k entries reach the smallest of them. Maxima cost one pass,
    a selection several.
    """
    size, parts = sims.shape[dim], 32 * k
    if size < 4 * parts:
        return torch.topk(sims, k, dim=dim).values.select(dim, k - 1)
    width = size // parts
    cut = sims.narrow(dim, 0, width * parts).unflatten(dim, (parts, width)).amax(dim=dim + 1)
    return torch.topk(cut, k, dim=dim).values.select(dim, k - 1)
