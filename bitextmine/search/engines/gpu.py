"""The search on CUDA devices, one or several: rows on the cards, sizes that fit them, triton_topk.py's kernels."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.search.engines.blocks import BlockSearch, longest, out_of_memory
from bitextmine.search.options import Arithmetic
from bitextmine.search.precision import TORCH_TYPES
from bitextmine.search.rows import VectorRows, check_length
from bitextmine.search.topk import TopK

if TYPE_CHECKING:
    from bitextmine.search.engines.triton_topk import Config, SweepSide

MAX_K = 64
MAX_DIM = 4096
# At most so many rows on a card: tiles are numbered in 32 bits.
MAX_X, MAX_Y = 1 << 21, 1 << 24
_SMALLEST = 1024
_WORTHWHILE = 1 << 28  # pairs; below, compiling the kernels takes longer than the search
_CHUNK = 1 << 16

# What has run and was right, in this process: device, dimensions, k, types as stored and compared, sizes.
_PROVED: set[tuple[torch.device, int, int, np.dtype[Any], torch.dtype, Config]] = set()

T = TypeVar("T")
Area = tuple[int, int, int, int]


def interpreting() -> bool:
    """Whether triton was told to run its kernels on the CPU, which is for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def devices(name: str) -> list[torch.device]:
    """The devices that a name stands for: "cuda" all that torch sees, "cuda:1" that one, "cuda:0,cuda:2" two."""
    found = [torch.device(part) for part in name.split(",")]
    if found == [torch.device("cuda")]:
        return [torch.device("cuda", i) for i in range(max(1, torch.cuda.device_count()))]
    return [torch.device("cuda", 0) if d.type == "cuda" and d.index is None else d for d in found]


def configs(device: torch.device) -> list[Config]:
    """What to try on a device, best first: the later ones ask for less shared memory and fewer registers."""
    from bitextmine.search.engines.triton_topk import Config

    if device.type != "cuda":
        return [Config(rows=32, cols=64, depth=32, group=2, rescored=1024, merged=1 << 14, first=64)]
    smaller = [Config(cols=128, depth=32, stages=4), Config(rows=64, cols=64, depth=32, warps=4, stages=2)]
    # The largest tile wants the shared memory of a data centre's card: 9.0 and 10.x have it, 12.x (GeForce) has not.
    return [Config(), *smaller] if torch.cuda.get_device_capability(device)[0] in (9, 10) else smaller


def unsupported(x: VectorRows, y: VectorRows, k: int, device: str) -> str | None:
    """Why the kernels cannot be used, None when they can as far as one sees without running them."""
    if k > MAX_K:
        return f"k is {k}, and the kernels have room for {MAX_K}"
    if x.dim > MAX_DIM:
        return f"the vectors have {x.dim} dimensions, and the kernels were made for {MAX_DIM} at most"
    if max(len(x.vectors), len(y.vectors)) >= 1 << 32:
        return "more than 2^32 rows"
    for each in devices(device):
        if each.type == "cpu" and interpreting():
            continue
        if each.type != "cuda" or (each.index or 0) >= torch.cuda.device_count():
            return f"{each} is not a CUDA device that torch sees"
        if torch.version.hip is None and torch.cuda.get_device_capability(each) < (8, 0):
            return f"{torch.cuda.get_device_name(each)} is older than compute capability 8.0"
    try:
        import bitextmine.search.engines.triton_topk  # noqa: F401
    except ImportError as error:
        return f"triton cannot be imported ({error})"
    return None


def open_search(
    x: VectorRows,
    y: VectorRows,
    k: int,
    device: str,
    arithmetic: Arithmetic | None = None,
    *,
    must: bool = False,
) -> GpuSearch | None:
    """A GpuSearch, or None where it cannot be used or is not worth compiling; if it `must`, BitextmineError."""
    if not must and len(x) * len(y) < _WORTHWHILE:
        return None
    reason = unsupported(x, y, k, device)
    if reason is None:
        try:
            return GpuSearch(x, y, k, device=device, arithmetic=arithmetic)
        except (_UnusableError, RuntimeError, MemoryError) as error:
            if not (isinstance(error, _UnusableError) or out_of_memory(error)):
                raise
            reason = str(error).partition("\n")[0]
            warnings.warn(f"searching with torch, more slowly: {reason}", RuntimeWarning, stacklevel=2)
    if must:
        raise BitextmineError(f"search engine triton: {reason}; use engine torch")
    return None


class _UnusableError(Exception):
    """The kernels do not run here."""


class _UnboundedError(Exception):
    """The rows are too long for an error bound."""


@dataclass
class _OnDevice:
    """Some rows on a device, in random order. order (n,): which row is where, counted from the first of them;
    zero: those without a direction; long, near_long, off: the largest |x|, |x'| and |x - x'|, x' as rounded."""

    near: torch.Tensor
    exact: torch.Tensor
    order: torch.Tensor
    zero: torch.Tensor
    long: float
    near_long: float
    off: float


class _Card:
    """One device: rows brought there, compared, results brought back."""

    def __init__(self, device: torch.device, dim: int, k: int, dtype: torch.dtype, config: Config) -> None:
        from bitextmine.search.engines.triton_topk import Sweep

        self.device, self._k, self._dtype = device, k, dtype
        self._dim = -(-dim // max(config.depth, 32)) * max(config.depth, 32)
        self.sweep = Sweep(self._dim, k, device, config)
        self._kept: dict[int, tuple[tuple[int, int], _OnDevice]] = {}

    def bytes_per_row(self, stored: np.dtype[Any]) -> int:
        exact = 4 * self._dim if stored == np.float32 or self._dtype != torch.float16 else 0
        return 2 * self._dim + exact + 24 * self._k + 32 + self.sweep.bytes_per_row()

    def free(self) -> int:
        if self.device.type != "cuda":
            return 1 << 40
        idle = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0]) + idle

    def forget(self) -> None:
        self._kept.clear()
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.empty_cache()

    def vectors(self, side: int, rows: VectorRows, start: int, stop: int) -> _OnDevice:
        """Rows start..stop, those of the last call for this side again without another copy."""
        kept = self._kept.get(side)
        if kept is not None and kept[0] == (start, stop):
            return kept[1]
        self._kept.pop(side, None)
        loaded = self._load(rows, start, stop, side)
        self._kept[side] = ((start, stop), loaded)
        return loaded

    def _load(self, rows: VectorRows, start: int, stop: int, seed: int) -> _OnDevice:
        n = stop - start
        stored = torch.float16 if rows.dtype == np.float16 else torch.float32
        # Random, so that what has been seen tells what is to come however the corpus is sorted; drawn on the
        # CPU, so that all devices have the same.
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        place = torch.empty_like(order)
        place[order] = torch.arange(n)
        place = place.to(self.device)
        near = torch.zeros((n + self.sweep.padding, self._dim), dtype=self._dtype, device=self.device)
        exact = near
        if stored != self._dtype:
            exact = torch.zeros((n, self._dim), dtype=stored, device=self.device)
        zero = torch.empty(n, dtype=torch.bool, device=self.device)
        lengthy = torch.zeros(2, device=self.device)
        staged = torch.empty((min(n, _CHUNK), rows.dim), dtype=stored, pin_memory=self.device.type == "cuda")
        for at in range(0, n, _CHUNK):
            size = min(_CHUNK, n - at)
            np.copyto(staged[:size].numpy(), rows.block(start + at, start + at + size))
            block = staged[:size].to(self.device)
            to = place[at : at + size]
            exact[to, : rows.dim] = block
            zero[to] = (block == 0).all(dim=1)
            wide = block.float()
            lengths = [longest(wide)]
            if exact is not near:
                rounded = block.to(self._dtype)
                near[to, : rows.dim] = rounded
                lengths.append(longest(wide - rounded.float()))
            for i, length in enumerate(lengths):
                lengthy[i] = torch.maximum(lengthy[i], length)
        long, off = lengthy.tolist()
        check_length(long, "vectors")
        return _OnDevice(near, exact, order.to(self.device), zero, long, long + off, off)

    def side(self, v: _OnDevice, span: tuple[int, int], best: TopK | None) -> SweepSide:
        """The rows, with what is known of their k best so far."""
        from bitextmine.search.engines.triton_topk import NOTHING, SweepSide, pack, unpack

        if best is None:
            keys = torch.full((len(v.order), self._k), NOTHING, device=self.device)
        else:
            had = (torch.from_numpy(a[slice(*span)]).to(self.device) for a in (best.sim, best.id))
            keys = pack(*had)[v.order]
        bar = unpack(keys[:, -1])[0].contiguous()
        bar[v.zero] = torch.inf
        lost = torch.zeros(len(keys), dtype=torch.int32, device=self.device)
        return SweepSide(v.near, v.exact, v.order + span[0], keys, bar, lost)

    def compare(
        self,
        x: VectorRows,
        y: VectorRows,
        x_span: tuple[int, int],
        y_span: tuple[int, int],
        fwd: TopK,
        bwd: TopK | None,
    ) -> _Compared:
        """The k best of what fwd and bwd hold for these rows and of what they are to each other, on the device."""
        xv, yv = self.vectors(0, x, *x_span), self.vectors(1, y, *y_span)
        sums = (2 * self._dim + 32) * 2.0**-23
        error = xv.off * yv.long + xv.near_long * yv.off + (sums + 1e-6) * xv.near_long * yv.near_long
        error += 1e-37  # where float32 begins to lose digits
        if not math.isfinite(error):
            raise _UnboundedError
        found = _Compared(self, xv, yv, self.side(xv, x_span, fwd), self.side(yv, y_span, bwd))
        self.sweep.run(found.x_side, found.y_side, error, bwd is not None)
        return found

    def results(self, v: _OnDevice, keys: torch.Tensor) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        from bitextmine.search.engines.triton_topk import unpack

        ordered = torch.empty_like(keys)
        ordered[v.order] = keys
        sim, ids = unpack(ordered)
        return sim.cpu().numpy(), ids.cpu().numpy()


class GpuSearch:
    """Compares blocks of x's rows with all of y, on every device named; each takes its share of the rows.

    What a device computes is taken for no more than it is: products whose error is bounded as in BlockSearch
    (the sums in float32 are allowed twice the usual bound, as matrix units truncate), from which nothing is dropped
    that could matter, and exact products of the rest. The results are those of every other engine.

    `block_rows` is how many rows of x to give to block() at a time. When a device runs out of memory, the parts
    of x and y that are compared at a time are halved and the work goes on; below 1,024 rows a BitextmineError
    says so. arithmetic: float16 (default) or bfloat16. config, limits (rows of x and of y on a device): for tests and
    measurements.
    """

    def __init__(
        self,
        x: VectorRows,
        y: VectorRows,
        k: int,
        *,
        device: str = "cuda",
        arithmetic: Arithmetic | None = None,
        config: Config | None = None,
        limits: tuple[int, int] | None = None,
    ) -> None:
        self._x, self._y, self._k = x, y, k
        dtype = TORCH_TYPES[arithmetic or Arithmetic.FLOAT16]
        self._cards = [_open(each, x.dim, k, x.dtype, dtype, config) for each in devices(device)]
        self._limits = limits or self._sizes()

    def _sizes(self) -> tuple[int, int]:
        """How many rows of x and of y each card can take: all of y if possible, so that it is copied once."""
        rows = min(card.free() * 85 // 100 // card.bytes_per_row(self._x.dtype) for card in self._cards)
        of_y = max(_SMALLEST, min(len(self._y), rows * 3 // 4, MAX_Y))
        return max(_SMALLEST, min(rows - of_y, MAX_X)), of_y

    @property
    def block_rows(self) -> int:
        """As many as the cards can take; where they hold all of y, no more than keep them busy for seconds, so
        that progress shows."""
        rows = self._limits[0] * len(self._cards)
        if self._limits[1] < len(self._y):
            return rows
        busy = 10**15 * len(self._cards) // (max(1, len(self._y)) * self._x.dim)
        return min(rows, max(_CHUNK, busy))

    def block(self, start: int, stop: int, fwd: TopK, bwd: TopK | None) -> None:
        """Compares x's rows start..stop with every row of y and merges what is found into fwd and bwd."""
        todo = self._areas([(start, min(stop, len(self._x)), 0, len(self._y))])
        while todo:
            area = todo.pop()
            try:
                self._compare(area, fwd, bwd)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self._halve(area, error)
                todo = self._areas([*todo, area])

    def _areas(self, areas: list[Area]) -> list[Area]:
        """The same areas in parts that the cards can take, last first."""
        high, wide = self._limits[0] * len(self._cards), self._limits[1]
        parts = [
            (i, min(i + high, b), j, min(j + wide, e))
            for a, b, c, e in areas
            for i in range(a, b, high)
            for j in range(c, e, wide)
        ]
        return sorted(parts, reverse=True)

    def _halve(self, failed: Area, error: BaseException) -> None:
        """Makes room, and sees to it that the area comes in smaller parts the next time."""
        error.__traceback__ = None  # whose frames hold tensors
        for card in self._cards:
            card.forget()
        a, b, c, e = failed
        tried = -(-(b - a) // len(self._cards)), e - c
        if max(tried) <= _SMALLEST:
            raise BitextmineError(
                f"out of memory on {self._cards[0].device} even with blocks of {tried[0]} x {tried[1]} vectors; "
                "free memory there or use --device cpu"
            ) from error
        of_x, of_y = (max(_SMALLEST, min(*pair) // 2) for pair in zip(tried, self._limits, strict=True))
        self._limits = of_x, of_y

    def _compare(self, area: Area, fwd: TopK, bwd: TopK | None) -> None:
        a, b, c, e = area
        share = -(-(b - a) // len(self._cards))
        spans = [(i, min(i + share, b)) for i in range(a, b, share)]

        def work(number: int) -> _Compared:
            return self._cards[number].compare(self._x, self._y, spans[number], (c, e), fwd, bwd)

        try:
            found = _each(work, len(spans), self._cards[0].device.type == "cuda")
        except _UnboundedError:
            # numbers that the narrow type does not hold
            plain = BlockSearch(
                self._x, self._y, device=str(self._cards[0].device), arithmetic=Arithmetic.FLOAT32
            )
            plain.cover(*area, fwd, bwd)
            return
        # Only now, when all parts are there, is anything kept: an area that failed can be done again.
        for (start, stop), part in zip(spans, found, strict=True):
            fwd.sim[start:stop], fwd.id[start:stop] = part.card.results(part.x, part.x_side.keys)
            _directionless(part.x, start, (c, e), fwd)
        if bwd is not None:
            first = found[0]
            first.card.sweep.join(first.y_side, [part.y_side.keys for part in found[1:]])
            bwd.sim[c:e], bwd.id[c:e] = first.card.results(first.y, first.y_side.keys)
            _directionless(first.y, c, (a, b), bwd)


@dataclass
class _Compared:
    card: _Card
    x: _OnDevice
    y: _OnDevice
    x_side: SweepSide
    y_side: SweepSide


def _directionless(v: _OnDevice, start: int, others: tuple[int, int], best: TopK) -> None:
    """A zero row is equally far from all rows, so that the first ones are its nearest. No kernel is asked."""
    rows = (v.order[v.zero] + start).cpu().numpy()
    ids = np.arange(others[0], min(others[0] + best.k, others[1]))
    both = np.repeat(rows, len(ids)), np.tile(ids, len(rows))
    best.merge(*both, np.zeros(len(both[0]), dtype=np.float32))


def _each(work: Callable[[int], T], count: int, together: bool) -> list[T]:
    """work(0..count-1), each in a thread of its own if `together`."""
    if count == 1 or not together:
        return [work(number) for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def _open(
    device: torch.device, dim: int, k: int, stored: np.dtype[Any], dtype: torch.dtype, config: Config | None
) -> _Card:
    """A card that works with the first configuration that does; _UnusableError with the last one's complaint."""
    reason = "no configuration"
    for each in [config] if config is not None else configs(device):
        card = _Card(device, dim, k, dtype, each)
        if device.type != "cuda":
            return card
        try:
            proof = (device, dim, k, stored, dtype, each)
            if proof not in _PROVED:
                _prove(card, dim, k, stored)
                _PROVED.add(proof)
            return card
        except Exception as error:  # of a compiler, a driver or a C compiler that is missing: no common class
            if out_of_memory(error):  # no smaller tile helps
                raise
            reason = f"{device}: {type(error).__name__}: {error}"
            card.forget()
    raise _UnusableError(reason)


def _prove(card: _Card, dim: int, k: int, stored: np.dtype[Any]) -> None:
    """Runs the kernels on a small case, which compiles them, and checks what they find."""
    rng = np.random.default_rng(0)
    x, y = ((rng.standard_normal((n, dim)) / math.sqrt(dim)).astype(stored) for n in (2000, 9000))
    fwd, bwd = TopK.empty(len(x), k), TopK.empty(len(y), k)
    found = card.compare(VectorRows(x, stored), VectorRows(y, stored), (0, len(x)), (0, len(y)), fwd, bwd)
    a, b = (torch.from_numpy(v).to(card.device).double() for v in (x, y))
    for v, side, sims in ((found.x, found.x_side, a @ b.T), (found.y, found.y_side, b @ a.T)):
        want = torch.topk(sims, k, dim=1).values.cpu().numpy()
        got, ids = card.results(v, side.keys)
        if (ids < 0).any() or not np.allclose(got, want, rtol=0, atol=1e-5):
            raise _UnusableError("the kernels gave wrong results on a test case")
    card.forget()
