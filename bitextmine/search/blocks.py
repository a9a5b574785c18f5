"""Exact search with torch: blocked products, survivors selected by threshold and rescored exactly; CPU and CUDA."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.search.neighbours import TopK
from bitextmine.search.options import Arithmetic, SearchOptions, default_arithmetic
from bitextmine.search.products import pair_products
from bitextmine.search.rows import VectorRows, check_length

_SMALLEST = 64
_GPU_BLOCK, _CPU_BLOCK = (8192, 4096), (4096, 1024)  # rows of x, of y at a time; on a CPU, to stay in cache
_TYPES = {
    Arithmetic.FLOAT32: torch.float32,
    Arithmetic.BFLOAT16: torch.bfloat16,
    Arithmetic.FLOAT16: torch.float16,
}


@dataclass(frozen=True)
class _Loaded:
    """Rows x on the device, divided by `scale` and rounded to x', with the largest |x|, |x'| and |x - x'|."""

    rows: torch.Tensor
    scale: float
    long: float
    near: float
    lost: float


class BlockSearch:
    """Compares blocks of x's rows with all of y, `tile` rows of y at a time.

    If the device runs out of memory, the tile is halved and the block starts again: pairs that are merged twice count
    once. `tile` and `product`, in place of the matrix product, are for tests.

    A pair is dropped when its computed product is further below the k-th best of its row and of its column than the
    arithmetic's error bound: with unit roundoff u of the arithmetic (and of its output), rows x and y,

        |computed - x.y|  <=  |x - x'| |y| + |x'| |y - y'| + d 2^-23 |x'||y'| + u |x'||y'|

    where x', y' are the rows as rounded to that arithmetic, and the sums are float32. If torch may narrow float32
    operands, the bound allows for that as well.
    """

    def __init__(
        self,
        x: VectorRows,
        y: VectorRows,
        options: SearchOptions,
        memory: int,
        *,
        tile: int | None = None,
        product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        self._device = torch.device(options.device)
        self._dtype = _TYPES[options.arithmetic or default_arithmetic(options.device)]
        self._x, self._y = x, y
        block = _CPU_BLOCK if self._device.type == "cpu" else _GPU_BLOCK
        while self._device.type == "cpu" and max(block) > _SMALLEST and memory < _working(*block, x.dim):
            block = max(_SMALLEST, block[0] // 2), max(_SMALLEST, block[1] // 2)
        self.block_rows, self._tile = block[0], tile or block[1]
        self._product = product or (lambda a, b: a @ b.T)

    @staticmethod
    def least_memory(x: VectorRows) -> int:
        """Return the bytes of a search with the smallest blocks."""
        return _working(_SMALLEST, _SMALLEST, x.dim)

    def _load(self, rows: NDArray[Any]) -> _Loaded:
        exact = torch.from_numpy(np.array(rows)).to(self._device).float()
        long = float(_longest(exact))
        check_length(long, "vectors")
        if self._dtype == torch.float32:
            return _Loaded(exact, 1.0, long, long, 0.0)
        scale = 1.0
        if self._dtype == torch.float16 and long > 16:  # products of float16 end at 65504
            scale = 2.0 ** math.ceil(math.log2(long))
            exact, long = exact / scale, long / scale
        rounded = exact.to(self._dtype)
        lost = float(_longest(exact - rounded))
        return _Loaded(rounded, scale, long, long + lost, lost)

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compare x's rows start..stop with every row of y and merge the results into `fwd` and `bwd`."""
        stop = min(stop, len(self._x))
        while True:
            try:
                rows = self._load(self._x.block(start, stop))
                for begin in range(0, len(self._y), self._tile):
                    cols = begin, min(begin + self._tile, len(self._y))
                    for best, row, ids, sim in self._compare(rows, (start, stop), cols, fwd, bwd):
                        best.merge(row, ids, sim)
                break
            except (RuntimeError, MemoryError) as error:
                if not _out_of_memory(error):
                    raise
                if self._tile <= _SMALLEST:
                    raise BitextmineError(
                        f"out of memory on {self._device} even with blocks of {stop - start} x {self._tile} vectors; "
                        "free memory there or use --device cpu"
                    ) from error
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
            self._tile = max(_SMALLEST, self._tile // 2)

    def _compare(
        self, block: _Loaded, rows: tuple[int, int], cols: tuple[int, int], fwd: TopK, bwd: TopK | None
    ) -> list[tuple[TopK, NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
        a, b = block, self._load(self._y.block(*cols))
        sims = self._product(a.rows, b.rows)
        roundoff = torch.finfo(self._dtype).eps / 2
        # A GPU may round partial sums to the type of the output.
        roundings = 5 if self._dtype == torch.float16 or sims.device.type == "cuda" else 1
        relative = self._x.dim * 2.0**-23 + roundings * roundoff + 1e-6
        if self._dtype == torch.float32:
            relative += 2.001 * _narrowed(sims.device)
        error = a.lost * b.long + a.near * b.lost + relative * a.near * b.near
        error += 1e-37  # where float32 begins to lose digits
        scale = a.scale * b.scale
        hit = sims >= self._limit(sims, 1, fwd, rows, error, scale)[:, None]
        out = [(fwd, *self._select(hit, rows, cols))]
        if bwd is not None:
            hit = torch.ge(sims, self._limit(sims, 0, bwd, cols, error, scale)[None, :], out=hit)
            row, col, sim = self._select(hit, rows, cols)
            out.append((bwd, col, row, sim))
        return out

    def _limit(
        self, sims: torch.Tensor, dim: int, best: TopK, span: tuple[int, int], error: float, scale: float
    ) -> torch.Tensor:
        """Return the least computed product that may matter.

        That is the k-th best so far less one error; while there are fewer than k, a lower bound of this tile's k-th
        best less two errors.
        """
        limit = torch.from_numpy(best.limit(*span) / np.float32(scale) - np.float32(error)).to(sims.device)
        fresh = torch.isinf(limit)
        if bool(fresh.any()) and sims.shape[dim] >= best.k:
            limit[fresh] = _kth(sims, dim, best.k).float()[fresh] - 2 * error
        if sims.dtype == torch.float32:
            return limit
        narrow = torch.finfo(sims.dtype)  # rounded down
        return (limit - limit.abs() * narrow.eps - narrow.tiny).to(sims.dtype)

    def _select(
        self, hit: torch.Tensor, rows: tuple[int, int], cols: tuple[int, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        at = _true(hit)
        row, col = at // hit.shape[1], at % hit.shape[1]
        x, y = self._x.block(*rows), self._y.block(*cols)
        return row + rows[0], col + cols[0], pair_products(x, y, row, col, self._x.dtype)


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
    """Tell if memory ran out, here or on a GPU."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "out of memory" in str(error)


def _longest(rows: torch.Tensor) -> torch.Tensor:
    """Return the length of the longest row, without squaring the smallest float32 numbers, which would vanish."""
    largest = rows.abs().max().clamp(min=1e-38)
    return largest * torch.linalg.vector_norm(rows / largest, dim=1).max()


def _working(rows: int, tile: int, dim: int) -> int:
    """Return the bytes at work on a block of so many rows of x and of y."""
    return (rows + tile) * (dim * 12 + 2000) + rows * tile * 6 + (8 << 20)


def _true(hit: torch.Tensor) -> NDArray[np.int64]:
    """Return the flat positions of True, ascending; few are, so eight are looked at together."""
    if hit.device.type != "cpu" or hit.numel() % 8:
        flat: NDArray[np.int64] = hit.view(-1).nonzero()[:, 0].cpu().numpy()
        return flat
    words = hit.view(-1).view(torch.int64).nonzero()[:, 0]
    word, byte = hit.view(-1, 8)[words].numpy().nonzero()
    where: NDArray[np.int64] = words.numpy()[word] * 8 + byte
    return where


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
