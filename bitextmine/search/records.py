"""What a search found between two saves, as bytes, and back. Checkpoint puts these records into a file, one after
another.

A record holds the neighbours of the rows of x that were finished since the record before and, of the lists of y's
rows, what these rows of x changed: ids, and where in its list each stands. What they pushed out follows from it.
Similarities are not there: they are computed again from the vectors, to the same bytes. With rows in no particular
order the j-th of S equal parts of x changes one neighbour in j of y's rows, so that all records together hold
1 + 1/2 + ... + 1/S times what the lists of y's rows do.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bitextmine.search.products import best_first, pair_products
from bitextmine.search.rows import VectorRows
from bitextmine.search.topk import TopK

__all__ = ["Records", "fill_similarities"]

Ids = NDArray[np.int64]

_HEAD = struct.Struct("<QQ")  # rows of x that are done: before the record, with it
_PART = struct.Struct("<II")  # bytes of gaps, changed neighbours
_DIGEST = 16
_SLOTS = 1 << 18  # places in lists that are looked at together
_SKIP = 255  # among gaps: so many places, and no changed neighbour yet
_QUERIES, _PAIRS = 1 << 14, 512  # similarities of so many rows are computed in one go, so many at a time


class Records:
    """The records of one search, whose k best so far are fwd, of x's rows, and bwd, of y's (None: not wanted).

    x, y: the rows that are compared. Of x's rows the first ones are done, and nothing in bwd counts but these: a
    neighbour that comes later is found again when its turn comes.
    """

    def __init__(self, x: VectorRows, y: VectorRows, fwd: TopK, bwd: TopK | None) -> None:
        self._x, self._y, self._fwd, self._bwd = x, y, fwd, bwd
        self._wide = _width(len(y) + 1)
        self._step = max(1, _SLOTS // fwd.k)

    @property
    def rows(self) -> int:
        """How many rows x has."""
        return len(self._x)

    # --- how long they are ---

    @property
    def answer(self) -> int:
        """Bytes of the k best of all rows, as the search returns them."""
        return sum(best.sim.nbytes + best.id.nbytes for best in (self._fwd, self._bwd) if best is not None)

    @property
    def finished(self) -> int:
        """Bytes that the neighbours of x's rows take in all records."""
        return len(self._x) * self._fwd.k * self._wide

    @property
    def longest(self) -> int:
        """No less than what any record takes besides the neighbours of x's rows."""
        return self._framed(self._slots, _width(len(self._x)))

    def size(self, since: int, done: int) -> int:
        """No less than the bytes of the record of x's rows since..done."""
        changed = 0
        if self._bwd is not None:
            for a, b in self._parts(0, len(self._y)):
                ids = self._bwd.id[a:b]
                changed += int(np.count_nonzero((ids >= since) & (ids < done)))
        own = (done - since) * self._fwd.k * self._wide
        return own + self._framed(changed, _width(done - since))

    @property
    def _slots(self) -> int:
        return 0 if self._bwd is None else self._bwd.id.size

    def _framed(self, changed: int, width: int) -> int:
        parts = 0 if self._bwd is None else -(-len(self._y) // self._step)
        return _HEAD.size + _DIGEST + parts * (_PART.size + 1) + self._slots // _SKIP + changed * (1 + width)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        for a in range(start, stop, self._step):
            yield a, min(a + self._step, stop)

    # --- to bytes ---

    def pieces(self, since: int, done: int, before: bytes) -> Iterator[bytes]:
        """The record of x's rows since..done, piece by piece; the last one is the digest of it and of `before`, the
        digest of the record before."""
        digest = hashlib.blake2b(before, digest_size=_DIGEST)
        for piece in self._content(since, done):
            digest.update(piece)
            yield piece
        yield digest.digest()

    def _content(self, since: int, done: int) -> Iterator[bytes]:
        yield _HEAD.pack(since, done)
        for a, b in self._parts(since, done):
            yield _packed(self._fwd.id[a:b].reshape(-1) + 1, self._wide)
        if self._bwd is not None:
            width = _width(done - since)
            for a, b in self._parts(0, len(self._y)):
                at, ids = _changed(self._bwd.id[a:b], since, done)
                gaps = _gaps(at)
                yield _PART.pack(len(gaps), len(at)) + gaps + _packed(ids - since, width)

    # --- and back ---

    def read(
        self, take: Callable[[int], bytes], since: int, before: bytes, *, use: bool
    ) -> tuple[int, bytes]:
        """Reads the record that follows `since` rows of x, and puts what is in it into fwd and bwd if it is to `use`;
        returns how many rows are then done, and its digest. ValueError where no such record is whole.

        take: gives the next so many bytes, ValueError where there are fewer.
        """
        digest = hashlib.blake2b(before, digest_size=_DIGEST)

        def checked(count: int) -> bytes:
            data = take(count)
            digest.update(data)
            return data

        first, done = _HEAD.unpack(checked(_HEAD.size))
        if first != since or not since < done <= len(self._x):
            raise ValueError
        for a, b in self._parts(since, done):
            data = checked((b - a) * self._fwd.k * self._wide)
            if use:
                self._fwd.id[a:b] = _unpacked(data, self._wide).reshape(b - a, -1) - 1
        if self._bwd is not None:
            width = _width(done - since)
            for a, b in self._parts(0, len(self._y)):
                gaps, changed = _PART.unpack(checked(_PART.size))
                slots = (b - a) * self._bwd.k
                if changed > slots or gaps > slots:
                    raise ValueError
                where, which = checked(gaps), checked(changed * width)
                if use:
                    _put(self._bwd.id[a:b], _places(where), _unpacked(which, width) + since)
        end: bytes = digest.digest()
        if take(_DIGEST) != end:
            raise ValueError
        return done, end

    def complete(self, done: int) -> bool:
        """Computes the similarities of all neighbours in fwd's first `done` rows and in bwd; returns whether they
        are in order, as those of a search are."""
        sides = [(self._x, self._y, TopK(self._fwd.sim[:done], self._fwd.id[:done]))]
        if self._bwd is not None:
            sides.append((self._y, self._x, self._bwd))
        return all(fill_similarities(*side) for side in sides)


def _width(values: int) -> int:
    """Bytes for a number below `values`."""
    return max(1, -(-(values - 1).bit_length() // 8))


def _packed(numbers: Ids, width: int) -> bytes:
    """Numbers from 0 on, `width` bytes each, the lowest first."""
    return numbers.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def _unpacked(data: bytes, width: int) -> Ids:
    wide = np.zeros((len(data) // width, 8), dtype=np.uint8)
    wide[:, :width] = np.frombuffer(data, dtype=np.uint8).reshape(-1, width)
    return wide.view("<i8").reshape(-1).astype(np.int64)


def _changed(lists: Ids, since: int, done: int) -> tuple[Ids, Ids]:
    """The neighbours in lists (n, k) that are since..done, and their places, counted through all lists without what is
    `done` or more."""
    late = lists >= done
    if late.any():
        order = np.argsort(late, axis=1, kind="stable")
        lists = np.take_along_axis(np.where(late, -1, lists), order, axis=1)
    flat = lists.reshape(-1)
    at = np.flatnonzero((flat >= since) & (flat < done))
    return at, flat[at]


def _put(lists: Ids, at: Ids, ids: Ids) -> None:
    """Undoes `_changed`: puts ids at these places of lists (n, k); the others move down, the last ones out."""
    new: Ids = np.full(lists.size, -1, dtype=np.int64)
    new[at] = ids
    new = new.reshape(lists.shape)
    free = new < 0
    stay = np.arange(lists.shape[1]) < free.sum(axis=1)[:, None]
    new[free] = lists[stay]
    lists[...] = new


def _gaps(at: Ids) -> bytes:
    """Ascending places as the gaps between them, a byte each where they are short."""
    gaps = np.diff(at, prepend=-1) - 1
    ends = np.cumsum(gaps // _SKIP + 1) - 1
    out = np.full(int(ends[-1]) + 1 if len(ends) else 0, _SKIP, dtype=np.uint8)
    out[ends] = gaps % _SKIP
    return out.tobytes()


def _places(gaps: bytes) -> Ids:
    """Undoes `_gaps`."""
    raw = np.frombuffer(gaps, dtype=np.uint8)
    ends = np.flatnonzero(raw != _SKIP)
    return np.cumsum(raw, dtype=np.int64)[ends] + np.arange(len(ends))


def fill_similarities(queries: VectorRows, pool: VectorRows, best: TopK) -> bool:
    """Computes the similarity of every neighbour in `best`, whose ids are rows of `pool`, those of the first queries;
    returns whether each list is in order."""
    for start in range(0, len(best.id), _QUERIES):
        ids, sim = best.id[start : start + _QUERIES], best.sim[start : start + _QUERIES]
        row, place = np.nonzero(ids >= 0)
        # By rows of the pool: whatever of it has to be mapped or read is then close together.
        order = np.argsort(ids[row, place], kind="stable")
        row, place = row[order], place[order]
        sim.fill(-np.inf)
        for at in range(0, len(row), _PAIRS):
            one, which = row[at : at + _PAIRS], place[at : at + _PAIRS]
            other = ids[one, which]
            sim[one, which] = pair_products(
                queries.vectors,
                pool.vectors,
                _numbers(queries, start + one),
                _numbers(pool, other),
                pool.dtype,
            )
            pool.release(int(other[0]), int(other[-1]) + 1)
        queries.release(start, start + _QUERIES)
        ordered = best_first(sim, ids, best.k)
        if not (np.array_equal(sim, ordered[0]) and np.array_equal(ids, ordered[1])):
            return False
    return True


def _numbers(rows: VectorRows, which: Ids) -> Ids:
    return which if rows.index is None else rows.index[which]
