"""What it takes to mine a billion lines against a billion: the tables of index/distributed.md, by arithmetic.

    python index/plan_billion.py
    python index/plan_billion.py --lines 5e8 --other 2e9 --workers 256 --assume search=6e11 --processor-hour 0.03

Nothing is run. The rates are those of index/performance.md and mine/filtering.md, the rest is stated: a GPU's rate, the
network's and all prices are assumptions, to be replaced by one's own.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from bitextmine.distributed.plan import EmbeddingPlan, IndexPlan, Rates, SearchPlan, shard_rows

MEASURED = 10**6  # lines a side that a search through indexes was measured with
GROWTH = (1.25, 1.5, 1.75)  # of its work with the rows: as measured, and two guesses (index/performance.md)
RESCORED = (
    60_000 / 11
)  # lines a second of a processor: 39 s with rescoring, 28 s without (index/performance.md)
SCORED = 17_227.0  # rows a second of a processor, `score` (mine/filtering.md)
FILTERED = 112_607.0  # `filter --preset mild` (mine/filtering.md)
GPU = 1.5e14  # multiply-adds a second; assumed: 30% of an H100's data sheet (989 teraflops)
PACKED = 0.35  # of a text's bytes that zstd leaves; assumed


@dataclass(frozen=True)
class Stage:
    """A row: processor hours, GPU hours, hours by the clock, terabytes over the network and kept on disk."""

    name: str
    processor: float = 0.0
    gpu: float = 0.0
    clock: float = 0.0
    moved: float = 0.0
    kept: float = 0.0

    def cost(self, a: argparse.Namespace) -> float:
        return (
            self.processor * a.processor_hour
            + self.gpu * a.gpu_hour
            + self.kept * 1000 * a.gigabyte_month * a.months
        )

    def cells(self, a: argparse.Namespace) -> list[str]:
        numbers = [self.processor, self.gpu, self.clock, self.moved, self.kept, self.cost(a)]
        return [self.name, *("" if not n else f"{n:,.0f}" if n >= 10 else f"{n:.2g}" for n in numbers)]


def stages(a: argparse.Namespace) -> tuple[list[Stage], list[Stage], list[Stage]]:
    """What every way takes; the ways to search, of which one is taken; what comes after them."""
    n, m, dim, k = int(a.lines), int(a.other), a.dim, 5  # 4 neighbours, one more for the threshold
    rates = Rates().with_given({"workers": a.workers, "processors": a.processors, **dict(a.assume)})
    rows = shard_rows(max(n, m))
    text = (n + m) * a.bytes
    cores = rates.workers * rates.processors
    embedding = [EmbeddingPlan(lines, lines * a.bytes, dim, shard_rows(lines), rates) for lines in (n, m)]
    before = [
        Stage("text, packed", moved=text * PACKED / 1e12, kept=text * PACKED / 1e12),
        Stage(
            "embed",
            sum(one.processor_seconds for one in embedding) / 3600,
            clock=sum(one.seconds for one in embedding) / 3600,
            moved=sum(one.moved for one in embedding) / 1e12,
            kept=sum(one.vectors for one in embedding) / 1e12,
        ),
    ]
    exact = SearchPlan(n, m, dim, k, rows, rates)
    on_cards = Rates(workers=a.gpus, search=GPU, network=rates.network)
    cards = SearchPlan(n, m, dim, k, rows, on_cards)
    ways = [
        Stage(
            "search: exact, by processors",
            exact.processor_seconds / 3600,
            clock=exact.seconds / 3600,
            moved=exact.moved / 1e12,
        ),
        Stage(
            "search: exact, by GPUs (assumed rate)",
            gpu=cards.processor_seconds / 3600,
            clock=cards.seconds / 3600,
            moved=cards.moved / 1e12,
        ),
    ]
    small = IndexPlan(MEASURED, MEASURED, dim, k, rows, rates)
    index = IndexPlan(n, m, dim, k, rows, rates)
    larger = (n / MEASURED * m / MEASURED) ** 0.5
    for power in GROWTH:
        # Lists are as many as the root of the rows, and a row goes to the nearest of all: rows^1.5.
        building = small.building * larger**1.5 / 3600
        searching = small.searching * larger**power / 3600
        moving = index.moved / rates.network / rates.workers / 3600
        ways.append(
            Stage(
                f"search: indexes, work as rows^{power:g}",
                building + searching,
                clock=building / rates.processors + max(searching / cores, moving),
                moved=(index.indexes + index.moved) / 1e12,
                kept=index.indexes / 1e12,
            )
        )
    found = min(n, m)
    after = [
        Stage("rescore", n / RESCORED / 3600, clock=n / RESCORED / 3600 / rates.processors),
        Stage(
            "score and filter every line's best pair",
            (found / SCORED + found / FILTERED) / 3600,
            clock=(found / SCORED + found / FILTERED) / 3600 / cores,
            moved=2 * found * 2 * a.bytes / 1e12,
            kept=found * 2 * a.bytes * PACKED / 1e12,
        ),
    ]
    return before, ways, after


def report(a: argparse.Namespace) -> str:
    """Both tables, in Markdown."""
    before, ways, after = stages(a)
    header = ["stage", "processor hours", "GPU hours", "hours by the clock", "TB moved", "TB kept", "cost"]
    lines = [f"| {' | '.join(header)} |", "|---|" + "---:|" * (len(header) - 1)]
    lines += [f"| {' | '.join(stage.cells(a))} |" for stage in [*before, *ways, *after]]
    header = ["all of it, with", "processor hours", "GPU hours", "hours by the clock", "cost"]
    lines += ["", f"| {' | '.join(header)} |", "|---|" + "---:|" * (len(header) - 1)]
    for way in ways:
        run = [*before, way, *after]
        sums = [sum(getattr(stage, name) for stage in run) for name in ("processor", "gpu", "clock")]
        cells = [f"{number:,.0f}" for number in (*sums, sum(stage.cost(a) for stage in run))]
        lines.append(f"| {way.name} | {' | '.join(cells)} |")
    rates = Rates().with_given({"workers": a.workers, "processors": a.processors, **dict(a.assume)})
    n, m = int(a.lines), int(a.other)
    rows = shard_rows(max(n, m))
    search = SearchPlan(n, m, a.dim, 5, rows, rates)
    down, across = search.grid
    lines += [
        "",
        f"{down:,} x {across:,} tiles of {rows:,} x {rows:,} lines; a worker holds {search.worker / 1e9:,.1f} GB, the "
        f"machine that runs the command {search.driver / 1e9:,.0f} GB.",
    ]
    return "\n".join(lines)


def assumption(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    return name, float(number)


def parser() -> argparse.ArgumentParser:
    about, _, examples = (__doc__ or "").partition("\n\n")
    p = argparse.ArgumentParser(
        description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--lines", type=float, default=1e9, help="of one side (default: 1e9)")
    p.add_argument("--other", type=float, default=1e9, help="of the other (default: 1e9)")
    p.add_argument("--dim", type=int, default=480, help="numbers of a vector (default: 480)")
    p.add_argument("--bytes", type=float, default=90, help="of a line, unpacked (default: 90, assumed)")
    p.add_argument("--workers", type=float, default=64, help="(default: 64)")
    p.add_argument("--processors", type=float, default=16, help="of a worker (default: 16)")
    p.add_argument("--gpus", type=float, default=64, help="for the search by GPUs (default: 64)")
    p.add_argument(
        "--assume", type=assumption, action="append", default=[], help="a rate, as mine --plan takes it"
    )
    p.add_argument("--processor-hour", type=float, default=0.04, help="price (default: 0.04)")
    p.add_argument("--gpu-hour", type=float, default=3.0, help="price (default: 3)")
    p.add_argument("--gigabyte-month", type=float, default=0.023, help="price of storage (default: 0.023)")
    p.add_argument("--months", type=float, default=1.0, help="that files are kept (default: 1)")
    return p


if __name__ == "__main__":
    print(report(parser().parse_args()))
