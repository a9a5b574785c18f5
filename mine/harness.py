"""Arguments, timing and tables of the scripts in train/, index/ and mine/."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of the script, as it is laid out."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


@dataclass(frozen=True)
class Cost:
    """Wall and processor time in seconds; of a child process also the peak resident memory in MiB."""

    seconds: float
    cpu: float
    peak_mib: float = 0.0


def timed(run: Callable[[], object]) -> Cost:
    begin, cpu = time.perf_counter(), time.process_time()
    run()
    return Cost(time.perf_counter() - begin, time.process_time() - cpu)


def alternate(runs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[Cost]]:
    """Run everything in turn, ``repeats`` times, so that other work on the machine disturbs all alike."""
    costs: dict[str, list[Cost]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            costs[name].append(timed(run))
    return costs


def middle(costs: Iterable[Cost]) -> Cost:
    """Return the medians."""
    columns = zip(*((c.seconds, c.cpu, c.peak_mib) for c in costs), strict=True)
    return Cost(*(median(column) for column in columns))


def child(command: Sequence[str | os.PathLike[str]], folder: Path | None = None) -> tuple[Cost, str]:
    """Run a command; return its cost and its standard output. Exit with its messages if it fails."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        for file in (out, err):
            file.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{err.read()}")
        return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), out.read()


def bitextmine(*arguments: str | os.PathLike[str], folder: Path | None = None) -> tuple[Cost, str]:
    """Run a command of bitextmine."""
    return child([sys.executable, "-m", "bitextmine", *arguments], folder)


def processor() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.machine())


def table(header: Sequence[str], rows: Iterable[Sequence[object]], digits: int = 2) -> list[Sequence[object]]:
    """Print a Markdown table, each row as soon as it is there, and return the rows.

    Numbers get thousands separators, floats ``digits`` decimals, None an empty cell.
    """

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:,.{digits}f}"
        return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)

    shown = []
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header), flush=True)
    for row in rows:
        print("| " + " | ".join(map(cell, row)) + " |", flush=True)
        shown.append(row)
    return shown
