"""Time and memory of embed and mine on a Ray cluster of one-processor nodes on this machine, against the plain commands
with one thread.

Example:  python index/bench_distributed.py corpus.en.zst corpus.fr.zst --lines 200000 --workers 1,2

Each way embeds both corpora, mines them, scores and filters the pairs, in a folder of its own, and must end in the same
bytes. Ray is started before and stopped after; a command's time includes connecting to it and starting its workers. The
peak is the highest resident memory of each process, mapped files included, looked at ten times a second; a raylet's has
the pages of its object store (plasma) that it touched.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from _nodes import started

from bitextmine.files.corpus import corpus_language
from bitextmine.files.lines import iter_lines

STORE = 256 << 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("src", type=Path, help="one sentence per line, plain or .gz, .xz, .zst")
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--lines", type=int, metavar="N", help="only so many from the start of each")
    parser.add_argument("--workers", default="1,2", metavar="N,...", help="nodes of one processor each")
    parser.add_argument("--model", default="default", help="name or folder")
    parser.add_argument("--rows", type=int, metavar="N", help="--ray-rows")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory() as name:
        plain = prepare(Path(name, "plain"), args)
        show("plain, one thread", plain, [], args)
        for workers in map(int, args.workers.split(",")):
            folder = prepare(Path(name, f"ray-{workers}"), args)
            with started(workers, STORE) as nodes:
                options = ["--ray", nodes.address, *(["--ray-rows", str(args.rows)] if args.rows else [])]
                show(f"--ray, {workers} worker(s)", folder, options, args)
            differ = [
                file.name
                for file in plain.iterdir()
                if file.read_bytes() != (folder / file.name).read_bytes()
            ]
            print(f"  differ from the plain commands': {', '.join(differ) or 'none'}", flush=True)


def prepare(folder: Path, args: argparse.Namespace) -> Path:
    folder.mkdir()
    for corpus in (args.src, args.tgt):
        path = folder / f"corpus.{corpus_language(corpus)}"
        with path.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"{line}\n" for line in itertools.islice(iter_lines(corpus), args.lines))
    return folder


def show(what: str, folder: Path, options: list[str], args: argparse.Namespace) -> None:
    langs = [corpus_language(corpus) for corpus in (args.src, args.tgt)]
    model = str(Path(args.model).resolve()) if Path(args.model).exists() else args.model
    print(what, flush=True)
    for command in (
        ["embed", *(f"corpus.{lang}" for lang in langs)],
        ["mine", "--src", langs[0], "--tgt", langs[1], "--search", "exact", "-o", "pairs.tsv"],
        ["score", "pairs.tsv", "-o", "scored.tsv"],
        ["filter", "scored.tsv", "--duplicates", "near", "-o", "kept.tsv", "--rejected", "rejected.tsv"],
    ):
        more = options if command[0] in ("embed", "mine") else options[:2]
        more = [*more, "--model", model] if command[0] != "filter" else more
        seconds, peaks, said = run([*command, *more], folder)
        memory = ", ".join(
            f"{role} {' '.join(f'{peak:,}' for peak in of)}" for role, of in sorted(peaks.items())
        )
        print(f"  {command[0]:6}{seconds:8.1f} s   peak MiB: {memory}", flush=True)
        for line in said.splitlines():
            if " by " in line and "task" in line:
                print(f"    {line.removeprefix('bitextmine: ')}", flush=True)


def run(arguments: list[str], folder: Path) -> tuple[float, dict[str, list[int]], str]:
    """Seconds, the peak of each process in MiB by what it is, and what the command said."""
    peaks: dict[int, tuple[str, int]] = {}
    over = threading.Event()
    watch = threading.Thread(target=look, args=(peaks, over))
    watch.start()
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bitextmine", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begin
    over.set()
    watch.join()
    if done.returncode:
        sys.exit(f"bitextmine {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    found: dict[str, list[int]] = {}
    for role, peak in peaks.values():
        found.setdefault(role, []).append(peak >> 10)
    return seconds, found, done.stderr


def look(peaks: dict[int, tuple[str, int]], over: threading.Event) -> None:
    """Notes the peak memory of all processes below this one until it is over."""
    while not over.wait(0.1):
        parents: dict[int, int] = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        for pid in parents:
            above = pid
            while above in parents and above != os.getpid():
                above = parents[above]
            if above == os.getpid() and pid != above:
                with contextlib.suppress(OSError, StopIteration):
                    role = role_of(Path(f"/proc/{pid}/cmdline").read_bytes())
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
                    if role is not None:
                        peaks[pid] = role, max(peak, peaks.get(pid, ("", 0))[1])


def role_of(command: bytes) -> str | None:
    """Return the role of a process; None unless it is Ray's or the command."""
    for mark, role in (
        (b"ray::Worker", "worker"),
        (b"ray::", "idle"),  # a worker of Ray's that runs nothing of this
        (b"raylet/raylet", "raylet"),
        (b"gcs_server", "GCS"),
        (b"dashboard", "agent"),
        (b"runtime_env/agent", "agent"),
        (b"default_worker", "idle"),
        (b"log_monitor", "agent"),
        (b"bitextmine", "command"),
    ):
        if mark in command:
            return role
    return None


if __name__ == "__main__":
    main()
