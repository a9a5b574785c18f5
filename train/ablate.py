"""Trains and measures every cell of the ablation grid; what is finished is skipped, so that it can be run bit by bit.

Example: python train/ablate.py --data FOLDER --bench FOLDER --out ablation --pairs 25600 --pool 20000
         python train/ablate.py --out ablation --table

A cell is a recipe (OUT/SETTING/CELL/recipe.toml) that goes through `bitextmine train` and `bitextmine evaluate
retrieval`, each cell in a process of its own, of which time and peak memory are noted. All cells share one vocabulary
and one token cache. OUT/results.jsonl gets a line per training and per evaluation; `--table` prints them in Markdown.

--data holds NAME.en-fr.tsv.zst, --bench queries.tsv.zst and distractors.LANG.txt.zst.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import re
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CORPORA = {
    "without": ["laws", "business", "devdocs", "docs", "tatoeba"],
    "with": ["europarl", "laws", "business", "devdocs", "docs", "tatoeba"],
}
VOCABULARY_PIECES = 8_000
MEMORY = "memory, 2 layers"  # a group of which only time and memory are measured

# What all cells have in common, but for what they change: small enough for two cores with other work to do.
COMMON: dict[str, Any] = {
    "model.dim": 64,
    "model.layers": 2,
    "model.heads": 4,
    "model.ffn": 128,
    "model.dropout": 0.0,
    "model.max_pieces": 64,
    "train.batch": 64,
    "train.batch_tokens": 4096,
    "train.warmup": 0.1,
    "train.valid_every": 1_000_000,
    "train.checkpoint_seconds": 3600.0,
    "data.valid_pairs": 200,
    "data.deduplicate": False,
    "data.language_filter": False,
}

# Learning rates of the piece vectors and of the layers.
GENERATIVE = {"train.embedding_learning_rate": 2e-2, "train.learning_rate": 1e-3}
CONTRASTIVE = {"train.embedding_learning_rate": 6e-3, "train.learning_rate": 1e-3}


@dataclasses.dataclass(frozen=True)
class Cell:
    """changes: recipe keys; share: of the pairs that --pairs gives to each cell."""

    group: str
    name: str
    changes: dict[str, Any]
    share: float = 1.0


def objective(*parts: str) -> dict[str, float]:
    """Return the weights of the paper (Eq. 7): 2 for align and sim, 1 for the rest."""
    return {part: 2.0 if part in ("align", "sim") else 1.0 for part in parts}


def grid() -> list[Cell]:
    """Return the cells, the most useful first."""
    best = {"train.objective": objective("contrastive"), **CONTRASTIVE}
    still = {"train.embedding_learning_rate": 1e-9, "train.learning_rate": 1e-9, "train.steps": 1}
    combinations = [
        ("smlm",),
        ("xtr",),
        ("ugt",),
        ("ugt", "align"),
        ("ugt", "align", "sim"),
        ("contrastive", "ugt"),
        ("mlm",),
        ("mlm", "xtr"),
    ]
    cells = []
    # Without layers a pair costs a hundredth, and the generative objectives can be given what they need.
    for layers, times in ((0, 4.0), (2, 1.0)):
        group = f"objectives, {layers} layers"
        cells.append(Cell(group, "untrained", {**best, **still, "model.layers": layers}))
        cells.append(Cell(group, "contrastive", {**best, "model.layers": layers}, times))
        for parts in combinations:
            if layers or "mlm" not in parts:
                rates = CONTRASTIVE if parts[0] == "contrastive" else GENERATIVE
                changes = {"train.objective": objective(*parts), **rates, "model.layers": layers}
                cells.append(Cell(group, "+".join(parts), changes, times))
    for n in (0, 1, 4):  # 2 layers are among the objectives
        cells.append(Cell("layers", f"{n} layers", {**best, "model.layers": n}))
    cells.append(Cell("dimension", "d 128", {**best, "model.dim": 128, "model.ffn": 256}))
    for d in (64, 128, 256, 512):
        changes = {**best, "model.layers": 0, "model.dim": d, "train.batch": 512}
        cells.append(Cell("dimension, 0 layers", f"d {d}", changes, 16.0))
    # Batches of thousands need more pairs for as many steps.
    for n in (128, 512, 2048, 8192):
        changes = {**best, "model.layers": 0, "model.dim": 128, "train.batch": n}
        cells.append(Cell("batch, 0 layers", f"batch {n:,}", changes, 16.0))
    for n in (128, 512, 2048, 8192):
        for recompute in (False, True):
            name = f"batch {n:,}, {'cached gradients' if recompute else 'plain'}"
            changes = {**best, "train.batch": n, "train.steps": 1, "train.recompute": recompute}
            cells.append(Cell(MEMORY, name, changes))
    return cells


def recipe_text(setting: str, changes: dict[str, Any]) -> str:
    """Return a recipe in TOML."""
    tables: dict[str, list[str]] = {}
    for key, value in changes.items():
        table, _, name = key.partition(".")
        if isinstance(value, dict):
            shown = "{ " + ", ".join(f"{k} = {v}" for k, v in value.items()) + " }"
        else:
            shown = json.dumps(value)
        tables.setdefault(table, []).append(f"{name} = {shown}")
    text = "".join(f"[{table}]\n" + "\n".join(lines) + "\n\n" for table, lines in tables.items())
    for corpus in CORPORA[setting]:
        text += f'[[data.corpora]]\npairs = "{corpus}.en-fr.tsv.zst"\nlangs = ["en", "fr"]\n\n'
    return text


def train_cell(folder: Path, data: Path) -> dict[str, Any]:
    """Trains the recipe in ``folder`` into it."""
    import torch

    from bitextmine.training.recipe import load_recipe
    from bitextmine.training.trainer import train

    torch.set_num_threads(1)
    begin, cpu = time.monotonic(), time.process_time()
    train(load_recipe(folder / "recipe.toml", folder=data), folder)
    last = json.loads((folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    return {
        "seconds": round(time.monotonic() - begin, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "steps": last["step"],
        "loss": last["loss"],
        "held_out": last.get("p_at_1", {}).get("mean"),
    }


def evaluate_cell(folder: Path, bench: Path, pools: Path) -> dict[str, Any]:
    """P@1 of the model in ``folder``."""
    import torch

    from bitextmine.evaluation.retrieval import evaluate_retrieval

    torch.set_num_threads(1)
    begin, cpu = time.monotonic(), time.process_time()
    queries = bench / "queries.tsv.zst"
    report = evaluate_retrieval(
        queries=queries, distractors=pools, pairs="en-fr,fr-en", model=str(folder), device="cpu"
    )
    return {
        "seconds": round(time.monotonic() - begin, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "signature": report.signature,
        "results": [dataclasses.asdict(result) for result in report.results],
    }


def apart(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Runs ``work`` in a process of its own, which imported the libraries beforehand, for its peak memory."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bitextmine.training.trainer", "bitextmine.evaluation.retrieval"])
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def make_vocabulary(out: Path, data: Path) -> None:
    """OUT/tokenizer.model, of the text without Europarl, so that both settings can share it."""
    if (out / "tokenizer.model").exists():
        return
    changes = {
        "vocabulary.size": VOCABULARY_PIECES,
        "vocabulary.lines_per_language": 60_000,
        "model.dim": 8,
        "model.layers": 0,
        "train.steps": 1,
        "train.batch": 128,
        "data.cache": str((out / "vocabulary/cache").resolve()),
        **{key: COMMON[key] for key in ("data.deduplicate", "data.language_filter")},
    }
    start_folder(out / "vocabulary", recipe_text("without", changes))
    apart(train_cell, out / "vocabulary", data)
    (out / "tokenizer.model").write_bytes((out / "vocabulary/tokenizer.model").read_bytes())


def start_folder(folder: Path, recipe: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")


def make_pools(out: Path, bench: Path, size: int) -> Path:
    """Write distractors, evenly spaced over those of ``bench``, for pools of ``size`` with the queries."""
    from bitextmine.files.lines import iter_lines

    queries = sum(1 for _ in iter_lines(bench / "queries.tsv.zst", "strict")) - 1
    folder = out / f"pools-{size}"
    folder.mkdir(parents=True, exist_ok=True)
    for lang in ("en", "fr"):
        path = folder / f"distractors.{lang}.txt"
        if not path.exists():
            lines = list(iter_lines(bench / f"distractors.{lang}.txt.zst", "strict"))
            wanted = min(len(lines), size - queries)
            kept = [lines[i * len(lines) // wanted] for i in range(wanted)]
            path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
    return folder


def run(arguments: argparse.Namespace) -> None:
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.jsonl"
    make_vocabulary(out, arguments.data)
    pools = make_pools(out, arguments.bench, arguments.pool)
    for setting in arguments.settings.split(","):
        for cell in grid():
            if not re.search(arguments.cells, f"{cell.group}: {cell.name}"):
                continue
            pairs = round(arguments.pairs * cell.share)
            base = {
                "vocabulary.tokenizer": str((out / "tokenizer.model").resolve()),
                "data.cache": str((out / "cache").resolve()),
                **COMMON,
            }
            changes = {**base, **cell.changes}
            changes.setdefault("train.steps", max(1, round(pairs / changes["train.batch"])))
            text = recipe_text(setting, changes)
            identity = {"setting": setting, "group": cell.group, "cell": cell.name}
            folder = out / setting / re.sub(r"[^a-z0-9.]+", "-", f"{cell.group} {cell.name}".lower())
            done = [
                x
                for x in read(results)
                if {key: x[key] for key in identity} == identity and x["recipe"] == text
            ]
            if not any(x["what"] == "train" for x in done):
                start_folder(folder, text)
                found = apart(train_cell, folder, arguments.data)
                pairs = found["steps"] * changes["train.batch"]
                write(results, {"what": "train", **identity, "pairs": pairs, **found, "recipe": text})
            measured = cell.group == MEMORY or any(
                x["what"] == "evaluate" and x["pool"] == arguments.pool for x in done
            )
            if not measured:
                found = apart(evaluate_cell, folder, arguments.bench, pools)
                write(
                    results, {"what": "evaluate", **identity, "pool": arguments.pool, **found, "recipe": text}
                )


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, entry: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    shown = {key: value for key, value in entry.items() if key not in ("recipe", "results", "signature")}
    scores = [
        f"{r['src']}-{r['tgt']} {r['measure']} {100 * r['p_at_1']:.2f}" for r in entry.get("results", [])
    ]
    print(shown, *scores, flush=True)


def table(results: list[dict[str, Any]]) -> str:
    """Markdown, a table per setting and group, in the order of the results."""
    trained: dict[tuple[str, str, str], list[str]] = {}
    cells: dict[tuple[str, str], list[list[str]]] = {}
    for entry in results:
        group = (entry["setting"], entry["group"])
        if entry["what"] == "train":
            row = [
                entry["cell"],
                f"{entry['pairs']:,}",
                f"{entry['cpu_seconds']:.0f}",
                f"{entry['peak_mib']:,}",
                "-" if entry["held_out"] is None else f"{entry['held_out']:.1f}",
            ]
            trained[*group, entry["cell"]] = row
            if entry["group"] == MEMORY:
                cells.setdefault(group, []).append([*row, *["-"] * 5])
        else:
            scores = ["-"] * 4
            for r in entry["results"]:
                measure = r["measure"].split("-")[0]
                if measure in ("cosine", "ratio"):
                    share, low, high = (100 * r[key] for key in ("p_at_1", "low", "high"))
                    scores[2 * (r["src"] == "fr") + (measure == "ratio")] = (
                        f"{share:.1f} [{low:.1f}, {high:.1f}]"
                    )
            row = [*trained[*group, entry["cell"]], f"{entry['pool']:,}", *scores]
            cells.setdefault(group, []).append(row)
    heads = [
        "",
        "pairs seen",
        "CPU s",
        "peak MiB",
        "held out",
        "pool",
        "en-fr cosine",
        "en-fr ratio",
        "fr-en cosine",
        "fr-en ratio",
    ]
    text = ""
    for (setting, group), rows in cells.items():
        text += (
            f"\n{group}, {setting} Europarl\n\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|\n"
        )
        text += "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the training text")
    parser.add_argument("--bench", type=Path, help="folder of queries and distractors")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", default="without,with", help="with, without Europarl, or both")
    parser.add_argument("--cells", default="", help="regular expression on 'group: cell'")
    parser.add_argument("--pairs", type=int, default=25_600, help="pairs that a cell is trained on")
    parser.add_argument("--pool", type=int, default=200_000, help="sentences in each language's pool")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(read(arguments.out / "results.jsonl")))
    else:
        # Leave by the way that ends the cell's process too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        run(arguments)


if __name__ == "__main__":
    main()
