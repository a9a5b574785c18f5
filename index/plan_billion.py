"""Estimate the cost of mining a billion lines against a billion: the tables of index/distributed.md, by arithmetic.

    python index/plan_billion.py
    python index/plan_billion.py --lines 5e8 --workers 256 --processor-hour 0.03

Nothing is run. The rates are measured on two processors of an AMD EPYC (Zen 5; see the pages);
the rate of a GPU, the network and all prices are assumptions, to be replaced by your own.
"""

from __future__ import annotations

import argparse

# Measured, for one processor: lines embedded a second; multiply-adds a second of exact search and of search in lists;
# rows indexed a second; the share of the lists that a line is compared with; lines rescored, rows scored and filtered.
EMBED, SEARCH, LISTS, INDEX, SHARE = 76_000.0, 3.0e11, 4.2e10, 15_600.0, 18 / 2048
RESCORE, SCORE, FILTER = 60_000 / 11, 17_227.0, 112_607.0
MEASURED = 10**6  # lines a side that the search through indexes was measured with
GROWTH = (1.25, 1.5, 1.75)  # of its work with the rows: as measured, and two guesses
GPU = 1.5e14  # multiply-adds a second; assumed: 30% of an H100's data sheet
NETWORK = 1.25e9  # bytes a second of a worker; assumed: 10 Gbit/s
PACKED = 0.35  # of a text's bytes that zstd leaves; assumed
K = 5  # 4 neighbours, one more for the threshold

Stage = tuple[
    str, float, float, float, float
]  # name, processor hours, GPU hours, hours by the clock, TB moved


def stages(a: argparse.Namespace) -> tuple[list[Stage], list[Stage], list[Stage]]:
    """Return the stages before the search, the ways to search (of which one is taken), and the stages after it."""
    n, m, cores = a.lines, a.other, a.workers * a.processors
    text, vectors = (n + m) * a.bytes, (n + m) * a.dim * 2
    shard = min(1 << 22, max(1 << 16, max(n, m) / 64))
    embed = (n + m) / EMBED / 3600
    before = [
        ("text, packed", 0.0, 0.0, 0.0, text * PACKED / 1e12),
        ("embed", embed, 0.0, embed / cores, (text + vectors) / 1e12),
    ]
    work = n * m * a.dim
    tiles = -(-n // shard) * -(-m // shard)
    moved = tiles * 2 * shard * a.dim * 2 / 1e12
    by_cores, by_gpus = work / SEARCH / 3600, work / GPU / 3600
    ways = [
        ("search: exact, by processors", by_cores, 0.0, by_cores / cores, moved),
        ("search: exact, by GPUs (assumed rate)", 0.0, by_gpus, by_gpus / a.gpus, moved),
    ]
    larger = (n / MEASURED * m / MEASURED) ** 0.5
    searching = 2 * MEASURED * MEASURED * a.dim * SHARE / LISTS / 3600
    # There are as many lists as the root of the rows, and a row is compared with the centres of all: rows^1.5.
    building = 2 * MEASURED / INDEX / 3600 * larger**1.5
    for power in GROWTH:
        search = searching * larger**power
        clock = building / a.processors + max(search / cores, 2 * vectors / NETWORK / a.workers / 3600)
        ways.append(
            (f"search: indexes, work as rows^{power:g}", building + search, 0.0, clock, 2 * vectors / 1e12)
        )
    found = min(n, m)
    rescore, judge = n / RESCORE / 3600, (found / SCORE + found / FILTER) / 3600
    after = [
        ("rescore", rescore, 0.0, rescore / a.processors, 0.0),
        ("score and filter every line's best pair", judge, 0.0, judge / cores, 4 * found * a.bytes / 1e12),
    ]
    return before, ways, after


def report(a: argparse.Namespace) -> str:
    """Return both tables, in Markdown."""
    before, ways, after = stages(a)

    def cost(*parts: Stage) -> float:
        return sum(part[1] * a.processor_hour + part[2] * a.gpu_hour for part in parts)

    def row(name: str, *numbers: float) -> str:
        cells = ("" if not x else f"{x:,.0f}" if x >= 10 else f"{x:.2g}" for x in numbers)
        return f"| {name} | {' | '.join(cells)} |"

    head = "processor hours | GPU hours | hours by the clock"
    lines = [f"| stage | {head} | TB moved | cost |", "|---|---:|---:|---:|---:|---:|"]
    lines += [row(*stage, cost(stage)) for stage in (*before, *ways, *after)]
    lines += ["", f"| all of it, with | {head} | cost |", "|---|---:|---:|---:|---:|"]
    for way in ways:
        run = [*before, way, *after]
        lines.append(row(way[0], *(sum(part[i] for part in run) for i in (1, 2, 3)), cost(*run)))
    driver = 12 * K * (a.lines + a.other)
    lines += ["", f"The machine that runs the command holds {driver / 1e9:,.0f} GB of neighbours."]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default, about in (
        ("lines", 1e9, "lines of one side"),
        ("other", 1e9, "lines of the other"),
        ("dim", 480, "numbers of a vector"),
        ("bytes", 90, "bytes of a line, unpacked (assumed)"),
        ("workers", 64, "workers"),
        ("processors", 16, "processors of a worker"),
        ("gpus", 64, "GPUs, for the search by GPUs"),
        ("processor-hour", 0.04, "price"),
        ("gpu-hour", 3.0, "price"),
    ):
        p.add_argument(f"--{name}", type=float, default=default, help=f"{about} (default: {default:g})")
    return p


if __name__ == "__main__":
    print(report(parser().parse_args()))
