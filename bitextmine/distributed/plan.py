"""What embedding and mining will take, in shards, tiles, bytes and hours, by arithmetic alone.

A corpus is embedded in shards of lines. Exact search compares every shard of one side with every shard of the other, a
tile each; through indexes, lines are compared with a share of the other side's lists, both ways. Rates are those
measured on the pages, or the reader's own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from bitextmine.console import aligned, counted
from bitextmine.errors import UsageError

__all__ = ["EmbeddingPlan", "IndexPlan", "Rates", "SearchPlan", "plan_table", "shard_rows"]

_FLOAT16 = 2
_FOUND = 8  # bytes of a neighbour: its number, its similarity
_NUMBER = 4  # of a row, beside its neighbours
_ANSWER = 12  # bytes of a neighbour in the answer of the whole search
_PAIRS = 200  # bytes per line for margins and threshold (index/performance.md)
_INDEXED = 10  # bytes of an index per vector, beside the vector (index/performance.md: 522 for 256 numbers)


@dataclass(frozen=True)
class Rates:
    """What the hours are reckoned with. Two processors of an AMD EPYC (Zen 5) measured them (index/performance.md).

    embed: lines encoded a second, by one processor. search: multiply-adds a second of exact search, by one processor:
    60,000 x 60,000 vectors of 512 numbers in 6.2 s. index: rows indexed a second, by one processor, and lists:
    multiply-adds a second of a search in lists, likewise: a million x a million vectors of 256 numbers. share: of the
    lists that a line is compared with, 18 of 2,048 there. network: bytes a second between shared storage and a worker,
    10 Gbit/s, which nobody measured. workers: how many; processors: of each.

    Raises UsageError for a number that is not above 0, and for a share above 1.
    """

    embed: float = 76_000.0
    search: float = 3.0e11
    index: float = 15_600.0
    lists: float = 4.2e10
    share: float = 18 / 2048
    network: float = 1.25e9
    workers: float = 1
    processors: float = 1

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            whole = name not in ("workers", "processors") or value == int(value)
            if not (0 < value < math.inf and whole and (name != "share" or value <= 1)):
                kind = "above 0 and at most 1" if name == "share" else "above 0" if whole else "whole"
                raise UsageError(f"--assume {name}={value:g}: it must be {kind}")

    def with_given(self, given: Mapping[str, float]) -> Rates:
        """The same with other numbers. Raises UsageError for a name that is none."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in given:
            if name not in names:
                raise UsageError(f"--assume {name}: there is no such rate; there are {', '.join(names)}")
        return dataclasses.replace(self, **given)

    def at_once(self, parts: int) -> int:
        """How many of the workers have something to do."""
        return min(int(self.workers), parts)


def shard_rows(rows: int, least: int = 1 << 16) -> int:
    """Rows of a shard, of a corpus of so many: a 64th of it, from `least` to 4 million, in thousands (of 1,024)."""
    wanted = min(max(-(-rows // 64), least), 1 << 22)
    return -(-wanted // 1024) * 1024


@dataclass(frozen=True)
class EmbeddingPlan:
    """Embedding a corpus of `lines` lines, `text` bytes unpacked, in shards of `rows`, into `dim` float16 numbers
    each."""

    lines: int
    text: int
    dim: int
    rows: int
    rates: Rates

    @property
    def shards(self) -> int:
        return -(-self.lines // self.rows)

    @property
    def vectors(self) -> int:
        """Bytes of the .npy."""
        return self.lines * self.dim * _FLOAT16

    @property
    def moved(self) -> int:
        """Bytes over the network: lines to the workers, vectors from them."""
        return self.text + self.vectors

    @property
    def worker(self) -> int:
        """Bytes of memory that a worker takes, beside the program: the text and the vectors of a shard."""
        rows = min(self.rows, self.lines)
        return rows * self.dim * _FLOAT16 + -(-self.text * rows // max(1, self.lines))

    @property
    def processor_seconds(self) -> float:
        return self.lines / self.rates.embed

    @property
    def seconds(self) -> float:
        """Until the busiest worker is done; computing and moving overlap."""
        busiest = min(-(-self.shards // int(self.rates.workers)) * self.rows, self.lines)
        return max(
            busiest / self.rates.embed / self.rates.processors,
            self.moved / self.rates.network / max(1, self.rates.at_once(self.shards)),
        )


@dataclass(frozen=True)
class SearchPlan:
    """Exact search, both ways, of n lines and m lines of `dim` numbers, k neighbours, in tiles of rows x rows."""

    n: int
    m: int
    dim: int
    k: int
    rows: int
    rates: Rates

    @property
    def grid(self) -> tuple[int, int]:
        """Shards of either side."""
        return -(-self.n // self.rows), -(-self.m // self.rows)

    @property
    def tiles(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def read(self) -> int:
        """Bytes of vectors that workers read: the target's for every row of tiles; a shard of the source once by each
        worker that has a tile of its row."""
        down, across = self.grid
        return (self.n * self.rates.at_once(across) + down * self.m) * self.dim * _FLOAT16

    @property
    def found(self) -> int:
        """Bytes of neighbours that workers hand back, in an order that chance made: a row is in the answer of the j-th
        tile that it is in with a probability of k/j at most, as its k best are equally likely to be in any."""
        down, across = self.grid
        some = self.n * _harmonic(across, self.k) + self.m * _harmonic(down, self.k)
        return math.ceil(some * (_NUMBER + self.k * _FOUND))

    @property
    def moved(self) -> int:
        """Bytes over the network."""
        return self.read + self.found

    @property
    def worker(self) -> int:
        """Bytes of memory that a worker takes, beside the program: both shards, the target's in int8 too, what is
        found."""
        x, y = min(self.rows, self.n), min(self.rows, self.m)
        return (x + y) * self.dim * _FLOAT16 + y * self.dim + (x + y) * self.k * _ANSWER

    @property
    def driver(self) -> int:
        """Bytes of memory of the machine that runs the command: the answer of all, then margins and threshold."""
        return (self.n + self.m) * (self.k * _ANSWER + _PAIRS)

    @property
    def processor_seconds(self) -> float:
        return self.n * self.m * self.dim / self.rates.search

    @property
    def seconds(self) -> float:
        """Until the busiest worker is done; computing and moving overlap."""
        tile = min(self.rows, self.n) * min(self.rows, self.m)
        busiest = min(-(-self.tiles // int(self.rates.workers)) * tile, self.n * self.m)
        return max(
            busiest * self.dim / self.rates.search / self.rates.processors,
            self.moved / self.rates.network / max(1, self.rates.at_once(self.tiles)),
        )


@dataclass(frozen=True)
class IndexPlan:
    """Search through an index of either side: both are built, by the machine that runs the command, then each side's
    lines go through the other's lists, in tiles: `rows` lines and lists of as many."""

    n: int
    m: int
    dim: int
    k: int
    rows: int
    rates: Rates

    @property
    def indexes(self) -> int:
        """Bytes of both indexes, which hold the vectors."""
        return (self.n + self.m) * (self.dim * _FLOAT16 + _INDEXED)

    @property
    def driver(self) -> int:
        """Bytes of memory, beside pages of the files: the answer, then margins and threshold."""
        return (self.n + self.m) * (self.k * _ANSWER + _PAIRS)

    @property
    def building(self) -> float:
        """Processor seconds. They grow a little faster than the rows do."""
        return (self.n + self.m) / self.rates.index

    @property
    def searching(self) -> float:
        """Processor seconds of both passes."""
        return 2 * self.n * self.m * self.rates.share * self.dim / self.rates.lists

    @property
    def processor_seconds(self) -> float:
        return self.building + self.searching

    @property
    def passes(self) -> tuple[SearchPlan, SearchPlan]:
        """Tiles and bytes of either pass, which are those of exact search."""
        return (
            SearchPlan(self.n, self.m, self.dim, self.k, self.rows, self.rates),
            SearchPlan(self.m, self.n, self.dim, self.k, self.rows, self.rates),
        )

    @property
    def moved(self) -> int:
        """Bytes over the network, of the passes."""
        return sum(one.moved for one in self.passes)

    @property
    def tiles(self) -> int:
        return sum(one.tiles for one in self.passes)

    @property
    def seconds(self) -> float:
        """Building by one machine, which has the processors of one worker; then the passes by all workers, where
        computing and moving overlap."""
        at_once = max(1, self.rates.at_once(self.passes[0].tiles))
        return self.building / self.rates.processors + max(
            self.searching / self.rates.processors / at_once, self.moved / self.rates.network / at_once
        )


def _harmonic(tiles: int, k: int) -> float:
    """The sum of min(1, k/j) for j = 1 .. tiles."""
    return min(k, tiles) + k * math.fsum(1 / j for j in range(k + 1, tiles + 1))


def plan_table(
    embeddings: Mapping[str, EmbeddingPlan], search: SearchPlan | IndexPlan | None, rates: Rates
) -> str:
    """For a person: what is embedded, by the name of the corpus, what is searched, and what it was reckoned with."""
    header = [
        "",
        "lines",
        "shards",
        "text",
        "vectors",
        "moved",
        "a worker's memory",
        "processor time",
        "time",
    ]
    rows = [
        [
            f"embed {name}",
            f"{plan.lines:,}",
            f"{plan.shards:,} x {plan.rows:,}",
            _size(plan.text),
            _size(plan.vectors),
            _size(plan.moved),
            _size(plan.worker),
            _time(plan.processor_seconds),
            _time(plan.seconds),
        ]
        for name, plan in embeddings.items()
    ]
    parts = [aligned(header, rows)] if rows else []
    if search is not None:
        parts.append(_search_table(search))
    total = sum(plan.seconds for plan in embeddings.values()) + (search.seconds if search else 0)
    parts.append(f"in all about {_time(total)} with {counted(int(rates.workers), 'worker')}")
    assumed = (f"{field.name}={getattr(rates, field.name):g}" for field in dataclasses.fields(rates))
    parts.append(f"reckoned with {' '.join(assumed)}; --assume NAME=NUMBER changes them")
    return "\n".join(parts)


def _search_table(search: SearchPlan | IndexPlan) -> str:
    if isinstance(search, IndexPlan):
        return aligned(
            ["search", "lines", "indexes", "tiles", "moved", "the driver's memory", "processor time", "time"],
            [
                [
                    "through indexes",
                    f"{search.n:,} x {search.m:,}",
                    _size(search.indexes),
                    f"{search.tiles:,} of {search.rows:,}",
                    _size(search.moved),
                    _size(search.driver),
                    f"{_time(search.building)} + {_time(search.searching)}",
                    _time(search.seconds),
                ]
            ],
        )
    down, across = search.grid
    return aligned(
        ["search", "lines", "tiles", "moved", "a worker's memory", "the driver's", "processor time", "time"],
        [
            [
                "exact, both ways",
                f"{search.n:,} x {search.m:,}",
                f"{down:,} x {across:,} of {search.rows:,} x {search.rows:,}",
                _size(search.moved),
                _size(search.worker),
                _size(search.driver),
                _time(search.processor_seconds),
                _time(search.seconds),
            ]
        ],
    )


def _size(count: float) -> str:
    """Bytes for a person, in thousands: 1.2 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000 or unit == "PB":
            break
        count /= 1000
    return f"{count:,.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"


def _time(seconds: float) -> str:
    """For a person: 2.6 s, 14 min, 3.7 h, 441 h."""
    for unit, length in (("s", 1), ("min", 60), ("h", 3600)):
        count = seconds / length
        if count < 100 or unit == "h":
            break
    return f"{count:,.0f} {unit}" if count >= 10 else f"{count:.2g} {unit}"
