"""Triton kernels of the exact search: similarity tiles that keep only what may be among the k best, both ways.

The matrix of similarities is never written. A tile (float16 or bfloat16 operands, float32 sums) is compared
with a bar per row and a bar per column, below which nothing can enter that row's or column's k best; the
pairs that reach either bar, a few in a million, go to a list. A second kernel computes their exact inner
products from the stored vectors and offers each to its row and to its column, a third merges the offers into
the k best, which raises the bars for the tiles to come.

An entry of a k best list is one int64, `key`: the similarity's float32 bits, made to order as integers do, in
the upper half, and 2^32 - 1 - id in the lower. Keys are therefore all different and the larger one is the
better neighbour, by similarity, then by lower id; -2^63 (a NaN's place, so no neighbour has it) is an empty
entry. What comes out is a set of largest keys: it does not depend on the order in which programs run.

Importing this module needs triton. With TRITON_INTERPRET=1 in the environment the kernels run on a CPU, slowly.
"""

# Triton compiles these functions from their source: types are the compiler's there.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
import triton
import triton.language as tl

NOTHING = -(1 << 63)
MOST_TILES = 1 << 30  # of a slab
_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class Config:
    """Sizes that cost or save time and never change a result.

    rows, cols, depth: of a tile (powers of two; depth divides the padded dimension). group: tiles of rows that
    are visited together, so that what they read stays in the cache. warps, stages: Triton's num_warps and
    num_stages. descriptors: load tiles through tensor descriptors (Hopper's bulk copies) instead of pointers.
    persistent: one program a multiprocessor, which goes from tile to tile. rescored: pairs, and merged:
    entries, that a program takes at a time. first: side of the first slab; each later one doubles what was
    seen. cap: offers that a row can hold, None for 4 k + 32. pairs: length of the list of pairs, None to have
    it set from k and the slabs.
    """

    rows: int = 128
    cols: int = 256
    depth: int = 64
    group: int = 8
    warps: int = 8
    stages: int = 3
    descriptors: bool = False
    persistent: bool = False
    rescored: int = 64
    merged: int = 2048
    first: int = 2048
    cap: int | None = None
    pairs: int | None = None

    @property
    def word(self) -> int:
        """How many columns of a tile share a word of hit bits."""
        return min(16, self.cols // 8)

    def offers(self, k: int) -> int:
        """How many offers a row or column can hold.

        Rows are visited in random order. Of the columns in a slab that doubles what a row has seen, the number
        better than its k-th best so far is then negative binomial with mean k and variance 2 k, whatever the
        vectors: 4 k + 32 is passed less than once in 10^7. Passing it costs time (a second visit), not results.
        """
        return self.cap if self.cap is not None else 4 * k + 32


@dataclass
class SweepSide:
    """One side of the comparison, on one device, in the order in which it is visited.

    near (n + padding, dim): the rows in the precision of the products, zero rows after the last. exact (n or
    more, dim): as stored. ids (n,) int64: what the rows are called in results. keys (n, k) int64, best first.
    bar (n,) float32: what an exact similarity must reach; -inf lets all pass, inf none. lost (n,) int32: not 0
    where offers were dropped for want of room.
    """

    near: torch.Tensor
    exact: torch.Tensor
    ids: torch.Tensor
    keys: torch.Tensor
    bar: torch.Tensor
    lost: torch.Tensor

    def __len__(self) -> int:
        return len(self.ids)


@triton.jit
def _tile(
    x,
    y,
    i,
    j,
    steps,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    TMA: tl.constexpr,
):
    """Products of x's rows i.. with y's rows j..: (BM, BN) float32. steps: DIM / BK, which the compiler must not know:
    some versions would write out every step of the loop, and take minutes for it."""
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if TMA:
        for step in range(steps):
            acc = tl.dot(x.load([i, step * BK]), y.load([j, step * BK]).T, acc)
    else:
        deep = tl.arange(0, BK)
        a_at = x + i.to(tl.int64) * DIM + (tl.arange(0, BM)[:, None] * DIM + deep[None, :])
        b_at = y + j.to(tl.int64) * DIM + (tl.arange(0, BN)[None, :] * DIM + deep[:, None])
        for _ in range(steps):
            acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
            a_at += BK
            b_at += BK
    return acc


@triton.jit
def _apart(values, BM: tl.constexpr, BN: tl.constexpr, WIDE: tl.constexpr):
    """(BM, BN) -> (BM, BN / (8 WIDE), WIDE, 8): WIDE columns that are 8 apart along one axis. They are in the registers
    of one thread, as matrix units leave their results."""
    return tl.reshape(values, (BM, BN // (8 * WIDE), WIDE, 8))


@triton.jit(do_not_specialize=["rows", "cols", "groups", "steps"])
def _maxima(
    x,
    y,
    out,
    rows,
    cols,
    groups,
    steps,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    WIDE: tl.constexpr,
    TMA: tl.constexpr,
):
    """out (rows, groups): the largest product of each row with each set of columns (`sets`)."""
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = _tile(x, y, i, j, steps, DIM, BM, BN, BK, TMA)
    acc = tl.where((j + tl.arange(0, BN) < cols)[None, :], acc, float("-inf"))
    best = tl.reshape(tl.max(_apart(acc, BM, BN, WIDE), 2), (BM, BN // WIDE))
    ri, group = i + tl.arange(0, BM), j // WIDE + tl.arange(0, BN // WIDE)
    at = out + ri.to(tl.int64)[:, None] * groups + group[None, :]
    tl.store(at, best, mask=(ri < rows)[:, None] & (group < groups)[None, :])


@triton.jit
def _look(
    tile,
    x,
    y,
    x_bar,
    y_bar,
    error,
    pairs,
    count,
    capacity,
    i0,
    i1,
    j0,
    j1,
    steps,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    WIDE: tl.constexpr,
    TMA: tl.constexpr,
):
    """Lists what is to be listed of one tile, numbered by columns within bands of GROUP tiles' height."""
    down, across = tl.cdiv(i1 - i0, BM), tl.cdiv(j1 - j0, BN)
    band = tile // (GROUP * across) * GROUP
    height = min(down - band, GROUP)
    place = tile % (GROUP * across)
    i = i0 + (band + place % height) * BM
    j = j0 + place // height * BN
    acc = _tile(x, y, i, j, steps, DIM, BM, BN, BK, TMA)

    ri, cj = i + tl.arange(0, BM), j + tl.arange(0, BN)
    # Past the end a bar is NaN, which the lower of two bars then is, and which nothing reaches.
    row_bar = tl.load(x_bar + ri, mask=ri < i1, other=float("nan")) - error
    col_bar = tl.load(y_bar + cj, mask=cj < j1, other=float("nan")) - error
    bar = tl.minimum(row_bar[:, None], col_bar[None, :], propagate_nan=tl.PropagateNan.ALL)
    # One bit a pair, WIDE pairs a word: every later step works on a sixteenth of the tile.
    place = tl.arange(0, WIDE)
    bit = tl.where(_apart(acc >= bar, BM, BN, WIDE), (1 << place)[None, None, :, None], 0)
    words = tl.sum(bit, 2)
    # (As an `if` around a `while`, this did not pass Triton 3.6's fusing of loops.)
    while tl.max(tl.reshape(words, (BM * BN // WIDE,)), 0) > 0:
        # a power of two as a float32 holds its exponent, plus 127, above 23 bits of nothing
        lowest = (words & -words).to(tl.float32).to(tl.int32, bitcast=True)
        row = (i + tl.arange(0, BM)).to(tl.int64)[:, None, None]
        col = tl.arange(0, BN // (8 * WIDE))[:, None] * (8 * WIDE) + tl.arange(0, 8)[None, :]
        pair = (row << 32) | (j + col[None, :, :] + ((lowest >> 23) - 127) * 8).to(tl.int64)
        some = words > 0
        at = tl.atomic_add(count + tl.zeros_like(pair), 1, mask=some, sem="relaxed")
        tl.store(pairs + at, pair, mask=some & (at < capacity))
        words = words & (words - 1)


@triton.jit(do_not_specialize=["count", "capacity", "i0", "i1", "j0", "j1", "steps"])
def _hits(
    x,
    y,
    x_bar,
    y_bar,
    error,
    pairs,
    count,
    capacity,
    i0,
    i1,
    j0,
    j1,
    steps,
    DIM: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    WIDE: tl.constexpr,
    TMA: tl.constexpr,
    FLAT: tl.constexpr,
):
    """Appends to `pairs` (i << 32 | j) what reaches a bar less `error`, among rows i0..i1 and columns j0..j1.

    `count` is how many there were, which may be more than the `capacity` of the list. FLAT: there are fewer
    programs than tiles, and each loads the next tile's operands while it looks at the one before.
    """
    if FLAT:
        tiles = tl.cdiv(i1 - i0, BM) * tl.cdiv(j1 - j0, BN)
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            _look(
                tile,
                x,
                y,
                x_bar,
                y_bar,
                error,
                pairs,
                count,
                capacity,
                i0,
                i1,
                j0,
                j1,
                steps,
                DIM,
                BM,
                BN,
                BK,
                GROUP,
                WIDE,
                TMA,
            )
    else:
        _look(
            tl.program_id(0),
            x,
            y,
            x_bar,
            y_bar,
            error,
            pairs,
            count,
            capacity,
            i0,
            i1,
            j0,
            j1,
            steps,
            DIM,
            BM,
            BN,
            BK,
            GROUP,
            WIDE,
            TMA,
        )


@triton.jit
def _key(sim, ids):
    """See the module: larger keys are better neighbours."""
    bits = sim.to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (bits.to(tl.int64) << 32) | (0xFFFFFFFF - ids)


@triton.jit
def _offer(sim, key, at, first, keys, bar, offers, counts, live, K: tl.constexpr, CAP: tl.constexpr):
    """Puts keys into the offers of rows `at`, whose numbers there count from `first`."""
    last = tl.load(keys + at * K + (K - 1), mask=live, other=0)
    good = live & (key > last) & (sim >= tl.load(bar + at, mask=live, other=0.0))
    slot = tl.atomic_add(counts + (at - first), 1, mask=good, sem="relaxed")
    tl.store(offers + (at - first) * CAP + slot, key, mask=good & (slot < CAP))


@triton.jit(do_not_specialize=["count", "capacity", "i0", "j0"])
def _rescore(
    x,
    y,
    x_ids,
    y_ids,
    pairs,
    count,
    capacity,
    i0,
    j0,
    x_keys,
    x_bar,
    x_offers,
    x_counts,
    y_keys,
    y_bar,
    y_offers,
    y_counts,
    K: tl.constexpr,
    CAP: tl.constexpr,
    DIM: tl.constexpr,
    P: tl.constexpr,
):
    """The exact product of each pair, as products.products() has it to the last bit, offered to both sides."""
    total = tl.minimum(tl.load(count), capacity)
    start = tl.program_id(0).to(tl.int64) * P
    while start < total:
        at = start + tl.arange(0, P)
        live = at < total
        pair = tl.load(pairs + at, mask=live, other=0)
        i, j = pair >> 32, pair & 0xFFFFFFFF
        lane = tl.arange(0, 32)  # as products.LANES
        acc = tl.zeros((P, 32), dtype=tl.float64)
        for deep in range(0, DIM, 32):
            a = tl.load(x + i[:, None] * DIM + (deep + lane)[None, :], mask=live[:, None], other=0.0)
            b = tl.load(y + j[:, None] * DIM + (deep + lane)[None, :], mask=live[:, None], other=0.0)
            if x.dtype.element_ty == tl.float16:  # whose products are exact in float32
                acc += (a.to(tl.float32) * b.to(tl.float32)).to(tl.float64)
            else:
                acc += a.to(tl.float64) * b.to(tl.float64)
        # Sums of two, in the order of products.products()
        s = tl.sum(tl.sum(tl.reshape(acc, (P, 2, 2, 8)), 2), 1)
        s = tl.sum(tl.reshape(s, (P, 2, 4)), 1)
        s = tl.sum(tl.sum(tl.reshape(s, (P, 2, 2)), 1), 1)
        sim = s.to(tl.float32) + 0.0  # -0.0 becomes 0.0
        x_key = _key(sim, tl.load(y_ids + j, mask=live, other=0))
        y_key = _key(sim, tl.load(x_ids + i, mask=live, other=0))
        _offer(sim, x_key, i, i0, x_keys, x_bar, x_offers, x_counts, live, K, CAP)
        _offer(sim, y_key, j, j0, y_keys, y_bar, y_offers, y_counts, live, K, CAP)
        start += tl.num_programs(0) * P


@triton.jit(do_not_specialize=["first", "rows"])
def _merge(
    keys,
    bar,
    lost,
    offers,
    counts,
    first,
    rows,
    K: tl.constexpr,
    KP: tl.constexpr,
    CAP: tl.constexpr,
    CP: tl.constexpr,
    R: tl.constexpr,
):
    """The K largest different keys of those had and those offered; bars rise to the K-th; counts return to 0."""
    number = tl.program_id(0) * R + tl.arange(0, R)
    live = number < rows
    n = tl.load(counts + number, mask=live, other=0)
    if tl.max(n, 0) > 0:
        row = (first + number).to(tl.int64)
        slot, place = tl.arange(0, CP), tl.arange(0, KP)
        there = slot[None, :] < tl.minimum(n, CAP)[:, None]
        at = number.to(tl.int64)[:, None] * CAP + slot[None, :]
        new = tl.load(offers + at, mask=there, other=-(1 << 63))
        there = live[:, None] & (place < K)[None, :]
        old = tl.load(keys + row[:, None] * K + place[None, :], mask=there, other=-(1 << 63))
        last = tl.full((R,), -(1 << 63), tl.int64)
        for rank in range(K):
            last = tl.maximum(tl.max(new, 1), tl.max(old, 1))
            tl.store(keys + row * K + rank, last, mask=live)
            # an entry offered again is taken out together with the one that is here
            new = tl.where(new == last[:, None], -(1 << 63), new)
            old = tl.where(old == last[:, None], -(1 << 63), old)
        bits = (last >> 32).to(tl.int32)
        sim = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
        was = tl.load(bar + row, mask=live, other=0.0)
        tl.store(bar + row, tl.maximum(was, sim), mask=live & (last > -(1 << 63)))
        tl.store(lost + row, 1, mask=live & (n > CAP))
        tl.store(counts + number, 0, mask=live)


def pack(sim: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Keys (int64) of similarities (float32) and ids (int64, -1 for none)."""
    bits = sim.contiguous().view(torch.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return torch.where(ids < 0, NOTHING, (bits.long() << 32) | (_LOW - ids))


def unpack(keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Similarities (float32, -inf for none) and ids (int64, -1 for none) of keys."""
    bits = (keys >> 32).int()
    sim = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(torch.float32)
    empty = keys == NOTHING
    return torch.where(empty, -torch.inf, sim), torch.where(empty, -1, _LOW - (keys & _LOW))


def edges(total: int, first: int) -> list[int]:
    """Where slabs begin and end: each as large as all before it; the last takes a remainder of up to half."""
    at = [0]
    size = first
    while at[-1] < total:
        step = min(size, total - at[-1])
        if total - at[-1] - step < step // 2:
            step = total - at[-1]
        at.append(at[-1] + step)
        size = at[-1]
    return at


def sets(cols: int, span: int) -> int:
    """Into how many sets the first columns fall that _maxima takes together: of each `span`, those with the same
    remainder by 8."""
    return cols // span * 8 + min(8, cols % span)


class Sweep:
    """The search of one SweepSide against another on one device.

    A visit of all slabs is queued as a whole, and the device waited for once, when it is done.
    """

    def __init__(self, dim: int, k: int, device: torch.device, config: Config) -> None:
        self._dim, self._k, self._device, self._config = dim, k, device, config
        self._cap = config.offers(k)
        self._processors = 1
        if device.type == "cuda":
            self._processors = torch.cuda.get_device_properties(device).multi_processor_count

    @property
    def padding(self) -> int:
        """How many zero rows `near` must have after its last row, for tiles that reach past the end."""
        return max(self._config.rows, self._config.cols)

    def bytes_per_row(self) -> int:
        """Of the workspace, for a row of either side."""
        return (self._cap * 8 + 4 + 8 * (2 * self._k + 16)) * 3 // 4 + 1

    def run(self, x: SweepSide, y: SweepSide, error: float, both: bool) -> None:
        """Leaves in x.keys the k best of what was there and y's rows, and if `both`, likewise in y.keys.

        error: how far a product may be from the exact one. Bars must be right on entry (-inf always is); they
        are changed, and y's are lost unless `both`.
        """
        with torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext():
            if not both:
                y = replace(y, bar=torch.full_like(y.bar, torch.inf), lost=torch.zeros_like(y.lost))
            self._seed(x, y, error)
            if both:
                self._seed(y, x, error)
            self._visit(x, y, error, both)
            # A row that lost offers still got `cap` of them, so that its k-th best rose and fewer will come
            # the next time: a few rounds at most.
            while (again := x.lost.nonzero()[:, 0]).numel():
                self._again(x, again, y, error)
            while both and (again := y.lost.nonzero()[:, 0]).numel():
                self._again(y, again, x, error)

    def _again(self, x: SweepSide, rows: torch.Tensor, y: SweepSide, error: float) -> None:
        x.lost.zero_()
        near = torch.zeros((len(rows) + self.padding, self._dim), dtype=x.near.dtype, device=self._device)
        near[: len(rows)] = x.near[rows]
        some = SweepSide(near, x.exact[rows], x.ids[rows], x.keys[rows], x.bar[rows], x.lost[rows])
        still = replace(y, bar=torch.full_like(y.bar, torch.inf), lost=torch.zeros_like(y.lost))
        self._visit(some, still, error, False)
        x.keys[rows], x.bar[rows], x.lost[rows] = some.keys, some.bar, some.lost

    def _operand(self, near: torch.Tensor, rows: int) -> Any:
        if not self._config.descriptors:
            return near
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor.from_tensor(near, [rows, self._config.depth])

    def _seed(self, x: SweepSide, y: SweepSide, error: float) -> None:
        """Bars for x's rows out of the first of y's: k maxima over disjoint sets are k products, so the k-th
        best is no smaller than the least of them."""
        c = self._config
        cols = min(c.first, len(y))
        groups = sets(cols, 8 * c.word)
        if groups < self._k:
            return
        step = min(len(x), 1 << 17)
        out = torch.empty((step, groups), dtype=torch.float32, device=self._device)
        b = self._operand(y.near, c.cols)
        for at in range(0, len(x), step):
            rows = min(step, len(x) - at)
            a = self._operand(x.near[at : at + rows + self.padding], c.rows)
            _maxima[(triton.cdiv(rows, c.rows), triton.cdiv(cols, c.cols))](
                a,
                b,
                out,
                rows,
                cols,
                groups,
                self._dim // c.depth,
                DIM=self._dim,
                BM=c.rows,
                BN=c.cols,
                BK=c.depth,
                WIDE=c.word,
                TMA=c.descriptors,
                num_warps=c.warps,
                num_stages=c.stages,
            )
            least = torch.topk(out[:rows], self._k, dim=1).values[:, -1] - error
            part = x.bar[at : at + rows]
            torch.maximum(part, least, out=part)

    def _visit(self, x: SweepSide, y: SweepSide, error: float, both: bool) -> None:
        down, across = edges(len(x), self._config.first), edges(len(y), self._config.first)
        size = self._config.rows * self._config.cols
        slabs = [
            part
            for a, b in pairwise(down)
            for c, e in pairwise(across)
            for part in numbered((a, b, c, e), size)
        ]
        tall = max(b - a for a, b, _, _ in slabs)
        wide = max(e - c for _, _, c, e in slabs)
        capacity = self._config.pairs or max(1 << 20, (2 * self._k + 16) * (tall + wide))
        room = _Room(tall, wide, self._cap, capacity, self._device)
        while slabs:
            counts = torch.zeros(len(slabs), dtype=torch.int64, device=self._device)
            for number, slab in enumerate(slabs):
                self._slab(x, y, slab, error, both, room, counts[number:])
            found = counts.tolist()
            # The list was too short there. What it held has raised the bars; a quarter is tried next.
            over = [slab for slab, n in zip(slabs, found, strict=True) if n > capacity]
            slabs = [part for slab in over for part in _quarters(slab)]

    def _slab(
        self,
        x: SweepSide,
        y: SweepSide,
        slab: tuple[int, int, int, int],
        error: float,
        both: bool,
        room: _Room,
        count: torch.Tensor,
    ) -> None:
        c, k = self._config, self._k
        i0, i1, j0, j1 = slab
        tiles = triton.cdiv(i1 - i0, c.rows) * triton.cdiv(j1 - j0, c.cols)
        _hits[(min(tiles, self._processors) if c.persistent else tiles,)](
            self._operand(x.near, c.rows),
            self._operand(y.near, c.cols),
            x.bar,
            y.bar,
            error,
            room.pairs,
            count,
            len(room.pairs),
            i0,
            i1,
            j0,
            j1,
            self._dim // c.depth,
            DIM=self._dim,
            BM=c.rows,
            BN=c.cols,
            BK=c.depth,
            GROUP=c.group,
            WIDE=c.word,
            TMA=c.descriptors,
            FLAT=c.persistent,
            num_warps=c.warps,
            num_stages=c.stages,
        )
        _rescore[(min(triton.cdiv(len(room.pairs), c.rescored), 8 * self._processors),)](
            x.exact,
            y.exact,
            x.ids,
            y.ids,
            room.pairs,
            count,
            len(room.pairs),
            i0,
            j0,
            x.keys,
            x.bar,
            room.x_offers,
            room.x_counts,
            y.keys,
            y.bar,
            room.y_offers,
            room.y_counts,
            K=k,
            CAP=self._cap,
            DIM=self._dim,
            P=c.rescored,
            num_warps=4,
        )
        self._merge(x, room.x_offers, room.x_counts, i0, i1 - i0, self._cap)
        if both:
            self._merge(y, room.y_offers, room.y_counts, j0, j1 - j0, self._cap)

    def _merge(
        self, side: SweepSide, offers: torch.Tensor, counts: torch.Tensor, first: int, rows: int, cap: int
    ) -> None:
        slots, places = triton.next_power_of_2(cap), triton.next_power_of_2(self._k)
        together = max(1, self._config.merged // (slots + places))
        together = 1 << (together.bit_length() - 1)
        _merge[(triton.cdiv(rows, together),)](
            side.keys,
            side.bar,
            side.lost,
            offers,
            counts,
            first,
            rows,
            K=self._k,
            KP=places,
            CAP=cap,
            CP=slots,
            R=together,
            num_warps=4,
        )

    def join(self, side: SweepSide, others: Iterable[torch.Tensor]) -> None:
        """Merges into side.keys the keys (n, k) that other devices found for the same rows."""
        with torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext():
            counts = torch.empty(len(side), dtype=torch.int32, device=self._device)
            for keys in others:
                counts.fill_(self._k)
                self._merge(side, keys.to(self._device).contiguous(), counts, 0, len(side), self._k)


class _Room:
    """What slabs are worked on in."""

    def __init__(self, tall: int, wide: int, cap: int, capacity: int, device: torch.device) -> None:
        self.pairs = torch.empty(capacity, dtype=torch.int64, device=device)
        self.x_offers = torch.empty((tall, cap), dtype=torch.int64, device=device)
        self.y_offers = torch.empty((wide, cap), dtype=torch.int64, device=device)
        self.x_counts = torch.zeros(tall, dtype=torch.int32, device=device)
        self.y_counts = torch.zeros(wide, dtype=torch.int32, device=device)


def numbered(slab: tuple[int, int, int, int], size: int) -> list[tuple[int, int, int, int]]:
    """The slab in parts whose tiles, of so many pairs, 32 bits can number."""
    a, b, c, e = slab
    if (b - a) * (e - c) <= size * MOST_TILES:
        return [slab]
    return [small for part in _quarters(slab) for small in numbered(part, size)]


def _quarters(slab: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    a, b, c, e = slab
    i, j = (a + b + 1) // 2, (c + e + 1) // 2
    return [(p, q, r, s) for p, q in ((a, i), (i, b)) for r, s in ((c, j), (j, e)) if q > p and s > r]
