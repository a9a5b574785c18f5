"""A million by a million through `bitextmine index --type auto`: time, recall, memory, and what 100 million would take.

Example:  python index/bench_million.py --rows 1000000
          python index/bench_million.py corpus.en corpus.fr --work folder

Without files: made-up vectors whose directions weigh i**-0.5, as those of an encoder do more or less, half of them with
a partner (cosine about 0.8) planted on the other side. With two texts: embedded by --model first. Everything is done
with all the rows and with a quarter of them; the growth of the processor time between the two is carried on to 100
million. Commands run as processes of their own; exact search of everything is carried over from a block of rows, in
proportion.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _child import bitextmine

from bitextmine.embeddings.store import Manifest, open_embedding
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.run import Run

_CHUNK = 1 << 16
_EXACT_ROWS = 1 << 13


def store(path: Path, rows: int, dim: int, chunks: object, name: str) -> None:
    identity = {"corpus": path.stem, "text_sha256": f"{name}-{rows}-{dim}", "model": name, "model_hash": name}
    with EmbeddingWriter(path, rows, dim, identity) as writer:
        for start, chunk in chunks:  # type: ignore[attr-defined]
            if start >= writer.resume_row:
                writer.write(start, chunk)
        writer.finish(Manifest(lang=path.stem[-2:], **identity))  # type: ignore[arg-type]


def made_up(folder: Path, rows: int, dim: int, seed: int) -> tuple[Path, Path]:
    """x.xx.npy and y.yy.npy: rows 0 to rows / 2 of y are the partners of the same rows of x."""
    weight = (np.arange(1, dim + 1) ** -0.5).astype(np.float32)

    def normal(chunk: int, which: int) -> np.ndarray:
        rng = np.random.default_rng((seed, chunk, which))
        return rng.standard_normal((min(_CHUNK, rows - chunk * _CHUNK), dim), dtype=np.float32) * weight

    def unit(v: np.ndarray) -> np.ndarray:
        return v / np.linalg.norm(v, axis=1, keepdims=True)

    def side(second: bool) -> object:
        for chunk in range(-(-rows // _CHUNK)):
            x = normal(chunk, 0)
            if second:
                own = normal(chunk, 1)
                paired = np.arange(chunk * _CHUNK, chunk * _CHUNK + len(x)) < rows // 2
                x = np.where(paired[:, None], 0.8 * x + 0.6 * own, own)
            yield chunk * _CHUNK, unit(x)

    files = folder / "x.xx.npy", folder / "y.yy.npy"
    for file, second in zip(files, (False, True), strict=True):
        if not file.exists():
            store(file, rows, dim, side(second), "planted")
    return files


def head(npy: Path, rows: int, folder: Path) -> Path:
    """Write the first rows of an embedding as an embedding."""
    vectors, manifest = open_embedding(npy)
    out = folder / npy.name
    if not out.exists():
        chunks = ((at, vectors[at : min(at + _CHUNK, rows)]) for at in range(0, rows, _CHUNK))
        store(out, rows, vectors.shape[1], chunks, manifest.model or "head")
    return out


def search(files: list[Path], k: int) -> None:
    """In a process of its own: both directions through the indexes; prints what it found as JSON."""
    from bitextmine.indexing.both import Indexed, search_both_indexed
    from bitextmine.indexing.file import index_paths, load_index
    from bitextmine.search.exact import search_both

    (x, _), (y, of_y) = map(open_embedding, files)
    sides = [Indexed(v, load_index(index_paths(f)[0])) for v, f in zip((x, y), files, strict=True)]
    begin, begin_cpu = time.perf_counter(), time.process_time()
    found, how = search_both_indexed(*sides, k, Run())
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    peak = peak_mib()
    few = np.ascontiguousarray(x[:_EXACT_ROWS])
    begin_cpu, begin = time.process_time(), time.perf_counter()
    search_both(few, y, k)
    exact_cpu, exact = time.process_time() - begin_cpu, time.perf_counter() - begin
    facts = {"seconds": seconds, "cpu": cpu, "peak_mib": peak, "how": how}
    facts |= {"exact_seconds": exact * len(x) / len(few), "exact_cpu": exact_cpu * len(x) / len(few)}
    if of_y.model == "planted":
        paired = np.arange(len(x) // 2)
        facts["planted"] = float((found.fwd_id[paired, 0] == paired).mean())
    print(json.dumps(facts))


def peak_mib() -> tuple[float, float]:
    """Return the peak resident memory of this process, and its anonymous memory now, in MiB."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(int(lines[name].split()[0]) / 1024 for name in ("VmHWM", "RssAnon"))  # type: ignore[return-value]


def one_size(files: list[Path], args: argparse.Namespace) -> dict[str, float]:
    rows = open_embedding(files[0])[1].rows
    others, dim = open_embedding(files[1])[1].rows, open_embedding(files[0])[1].dim
    print(f"\n## {rows:,} x {others:,}, d = {dim}, k = {args.k}", flush=True)
    total = build = 0.0
    for file in files:
        cost = bitextmine(["index", str(file), "--type", args.type, "--force"], file.parent)
        facts = json.loads(Path(f"{file.with_suffix('.faiss')}.json").read_text())
        size = facts["bytes"]
        print(
            f"index {file.name}: {facts['factory']}, {cost.seconds:.0f} s ({cost.processor_seconds:.0f} s of processor "
            f"time, {facts['measured']['build_seconds']:.0f} s of the clock's in building), peak "
            f"{cost.peak_mib:,.0f} MiB, {size / facts['distinct_rows']:.0f} bytes per vector"
        )
        recall = facts["recall"]
        print(
            f"  alone: {facts['effort']}, {100 * recall['at_1']:.2f}% of the nearest among its own rows",
            flush=True,
        )
        build += cost.processor_seconds
    done = subprocess.run(
        [sys.executable, __file__, "--only-search", *map(str, files), "-k", str(args.k)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    total = build + found["cpu"]
    print(
        f"search, both directions: {found['seconds']:.0f} s ({found['cpu']:.0f} s of processor time), peak "
        f"{found['peak_mib'][0]:,.0f} MiB, {found['peak_mib'][1]:,.0f} without pages of files\n  {found['how']}"
    )
    if "planted" in found:
        print(f"  {100 * found['planted']:.2f}% of the planted pairs come first")
    print(
        f"exact search of the same: {found['exact_seconds']:.0f} s ({found['exact_cpu']:.0f} s of processor time)\n"
        f"processor time, exact to indexed: {found['exact_cpu'] / found['cpu']:.1f} searching, "
        f"{found['exact_cpu'] / total:.1f} with the indexes built first",
        flush=True,
    )
    return {"rows": rows, "build": build, "search": found["cpu"], "exact": found["exact_cpu"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="*", type=Path, help="two texts or two .npy (default: made-up vectors)"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="of made-up vectors")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("-k", "--k", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--type", default="auto")
    parser.add_argument("--model", default="default")
    parser.add_argument(
        "--work", type=Path, help="keep vectors and indexes here (default: a folder that vanishes)"
    )
    parser.add_argument("--only-search", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only_search:
        search(args.files, args.k)
        return
    if len(args.files) not in (0, 2):
        parser.error("give two files, or none")
    with tempfile.TemporaryDirectory() as name:
        folder = args.work or Path(name)
        (folder / "quarter").mkdir(parents=True, exist_ok=True)
        files = list(args.files) or list(made_up(folder, args.rows, args.dim, args.seed))
        for at, file in enumerate(files):
            if file.suffix != ".npy":
                files[at] = folder / f"{file.name}.npy"
                cost = bitextmine(
                    ["embed", str(file.resolve()), "--out", str(files[at]), "--model", args.model], folder
                )
                print(
                    f"embed {file.name}: {cost.seconds:.0f} s ({cost.processor_seconds:.0f} s of processor time)"
                )
        files = [file.resolve() for file in files]
        quarter = [head(file, open_embedding(file)[1].rows // 4, folder / "quarter") for file in files]
        sizes = [one_size(each, args) for each in (files, quarter)]
    print(f"\n## carried on to 100,000,000 x 100,000,000 ({os.cpu_count()} cores)")
    for part in ("build", "search", "exact"):
        many, few = sizes
        power = math.log(many[part] / few[part]) / math.log(many["rows"] / few["rows"])
        power = 2.0 if part == "exact" else power
        hours = many[part] * (1e8 / many["rows"]) ** power / 3600
        print(f"{part}: grows as rows^{power:.2f}: {hours:,.0f} hours of processor time")


if __name__ == "__main__":
    main()
