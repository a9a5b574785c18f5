"""The tables of multi-stage distillation (Ding et al. 2022) at a small scale; what is finished is not done again.

Example:  python train/bench_distillation.py --data CORPORA --bench BENCH --teacher MINILM --large SUM --out OUT
          python train/bench_distillation.py ... --out OUT --table
          python train/bench_distillation.py ... --device cuda --scale 50 --lines 1000000 --batch-tokens 65536

Every cell is a recipe (OUT/CELL/recipe.toml; of sums settings.json, beside the recipe europe5) that goes through
`bitextmine train`, in a process of its own. Students have the four stages of [distil]: one assistant serves all, and
cells that differ in contrast alone share the stages before it. The assistant starts from a sum of pieces (--large): its
piece vectors, turned towards the teacher's space, and layers that do nothing yet. Results go to OUT/distillation.tsv
(--results), a line per cell, cosines and hits to OUT/CELL/measured.npz; --table prints them in Markdown, with the
intervals of differences.

--large is what the recipe europe5 makes without a teacher, uncut: `bitextmine train europe5 --set teacher.model=""
--set 'train.objective={contrastive = 1.0}' --set reduce.dim=0 --set reduce.order_columns=0
--set reduce.norm_power=1`. --small is the same cut to 256 numbers: reduce.dim=256, reduce.order_columns=48.

--data holds the corpora of the recipe europe5; --bench sts/stsb.LANG.dev.csv, everyday/ and news/queries*.tsv.zst. What
every stage is taught is --scale times TAUGHT. Half A of the STS pairs are the even rows (from 0), half B the odd ones.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

LANGUAGES = ("en", "de", "es", "fr", "it")
# Of students: short sentences, the kind that STS has, as many of each pair of languages.
STUDIED = {
    "de": ["tatoeba"],
    "es": ["tatoeba", "tatoeba-pivot"],
    "fr": ["tatoeba"],
    "it": ["tatoeba", "tatoeba-pivot"],
}
# Of sums, which are trained on all that europe5 is: where the teacher reads.
CORPORA = ("tatoeba", "games", "web-guides")
SHAPE = {"layers": 6, "dim": 384, "heads": 6, "ffn": 768, "max_pieces": 128}
SILENT = 2  # dimensions that hold a constant and no text, in a model that starts from a sum
TAUGHT = (
    ("assistant", 20_000),
    ("pieces", 4_000),
    ("student", 6_000),
    ("contrast", 5_000),
)  # pairs, stages 1 to 4
SAMPLE, ROUNDS = 100, 3  # sentences that speed is measured on, how often
RESAMPLES = 2000


@dataclasses.dataclass(frozen=True)
class Cell:
    """A model to train. bottleneck, own (layers with weights), depth (layers gone through), contrast: of students.

    base: the cell whose first stages it shares, or which must be there before it.
    settings: recipe keys, of a cell that is no student.
    """

    name: str
    group: str
    bottleneck: int = 0
    own: int = SHAPE["layers"]
    depth: int = SHAPE["layers"]
    contrast: str = "soft"
    base: str = ""
    settings: dict[str, Any] | None = None


def cells(args: argparse.Namespace) -> list[Cell]:
    """In the order in which they are worth having."""
    # A worker that waits for a base works on nothing, so that what waits for none comes between.
    found = [
        Cell("assistant", "assistant"),
        *sums(args),
        Cell("b128-ru3", "student", 128, 3, base="assistant"),
    ]
    for name, bottleneck, own, depth, contrast, base in (
        ("b128-ru3-none", 128, 3, 6, "none", "b128-ru3"),
        ("b128-3layers", 128, 3, 3, "soft", "b128-ru3"),
        ("ball-ru3", 0, 3, 6, "soft", "b128-ru3"),
        ("b128-ru6", 128, 6, 6, "soft", "b128-ru3"),
        ("b128-ru3-bool", 128, 3, 6, "bool", "b128-ru3"),
        ("b128-ru3-ce", 128, 3, 6, "ce", "b128-ru3"),
        ("b128-ru1", 128, 1, 6, "soft", "b128-ru3"),
        ("b256-ru3", 256, 3, 6, "soft", "b128-ru3"),
        ("ball-ru6", 0, 6, 6, "soft", "b128-ru3"),
        ("b128-ru2", 128, 2, 6, "soft", "b128-ru3"),
        ("b128-3layers-none", 128, 3, 3, "none", "b128-3layers"),
        ("b128-1layer", 128, 1, 1, "soft", "b128-ru3"),
        ("b232-1layer", 232, 1, 1, "soft", "b128-ru3"),  # less than half of the assistant's parameters
    ):
        found.append(Cell(name, "student", bottleneck, own, depth, contrast, base))
    return found


def sums(args: argparse.Namespace) -> list[Cell]:
    """Sums of pieces, trained on as europe5 is: alone, and with a teacher beside."""
    if not args.small:
        return []
    minilm = {"teacher.model": args.teacher, "teacher.languages": ["en"], "teacher.lines": args.lines}
    minilm["teacher.corpora"] = [f"{name}.en-{lang}.tsv.zst" for name in CORPORA for lang in LANGUAGES[1:]]
    large = {"teacher.model": args.large, "teacher.lines": 5 * args.lines}
    loss = {"contrastive": 1.0, "structure": args.structure}
    made = []
    for name, start, settings in (
        ("sum256-minilm", args.small, {**minilm, "train.objective": loss}),
        ("sum256-large", args.small, {**large, "train.objective": loss}),
        ("sum256-alone", args.small, {}),
        ("sum648-minilm", args.large, {**minilm, "train.objective": loss}),
    ):
        made.append(Cell(name, "sum", settings={"model.start_from": start, **settings}))
    return made


def sampled(args: argparse.Namespace) -> list[Path]:
    """OUT/pairs/pairs.en-LANG.tsv: the pairs that students are taught, a sample by hash."""
    from bitextmine.training.recipe import load_recipe
    from bitextmine.training.teacher import chosen_lines

    made = []
    for lang, names in STUDIED.items():
        path = args.out / "pairs" / f"pairs.en-{lang}.tsv"
        made.append(path)
        if path.exists():
            continue
        recipe = load_recipe(None, pairs=[f"{name}.en-{lang}.tsv.zst" for name in names], folder=args.data)
        each = args.lines // len(STUDIED) // len(names)
        lines = [line for corpus in recipe.data.corpora for line in chosen_lines(recipe, corpus, each)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line.src}\t{line.tgt}\n" for line in lines), encoding="utf-8")
    return made


# --- recipes ------------------------------------------------------------------------------------------------


def recipe_text(changes: dict[str, Any], corpora: Sequence[str]) -> str:
    """Return a recipe in TOML."""
    tables: dict[str, list[str]] = {"data": []}
    for key, value in changes.items():
        table, _, name = key.partition(".")
        tables.setdefault(table, []).append(f"{name} = {_toml(value)}")
    listed = [
        f"    {{ pairs = {json.dumps(name)}, langs = {json.dumps(name.split('.')[1].split('-'))} }},"
        for name in corpora
    ]
    if listed:
        tables["data"] += ["corpora = [", *listed, "]"]
    return "\n".join(f"[{table}]\n" + "\n".join(lines) + "\n" for table, lines in tables.items() if lines)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {number}" for key, number in value.items()) + " }"
    return json.dumps(value)


def student_recipe(cell: Cell, args: argparse.Namespace) -> str:
    """Of the assistant, and of students."""
    taught = {name: pairs * args.scale / args.lines for name, pairs in TAUGHT}
    if cell.group == "assistant":
        assistant, epochs = args.out / "start", [taught["assistant"], 0, 0, 0]
    elif cell.bottleneck or cell.own < SHAPE["layers"]:
        assistant = args.out / "assistant"
        epochs = [0, taught["pieces"], taught["student"], taught["contrast"]]
    else:  # the assistant itself, which has nothing to learn of itself
        assistant, epochs = args.out / "assistant", [0, 0, 0, taught["contrast"]]
    changes: dict[str, Any] = {
        "model.bottleneck": cell.bottleneck,
        "model.recurrent": cell.own if cell.own < cell.depth else 0,
        "model.dropout": 0.0,
        "model.storage": "float32",
        "train.batch": args.batch,
        "train.batch_tokens": args.batch_tokens,
        "train.autocast": args.autocast,
        "train.piece_dropout": 0.05,
        "train.learning_rate": args.learning_rate,
        "train.embedding_learning_rate": args.embedding_learning_rate,
        "train.warmup": 0.1,
        "data.valid_pairs": 0,
        "train.checkpoint_seconds": 300.0,
        "teacher.model": args.teacher,
        "teacher.languages": ["en"],
        "teacher.lines": args.lines,
        "teacher.batch": args.batch,
        "distil.epochs": epochs,
        "distil.assistant": str(assistant.absolute()),
        "distil.contrast": cell.contrast,
        "distil.layers": cell.depth if cell.depth < SHAPE["layers"] else 0,
        **data_settings(args),
    }
    return recipe_text(changes, [path.name for path in sampled(args)])


def data_settings(args: argparse.Namespace) -> dict[str, Any]:
    return {"data.cache": str(args.cache.absolute())}


# Without what the recipe europe5 does at its end, so that a cell has of a teacher what it says.
UNTAUGHT: dict[str, Any] = {
    "train.objective": {"contrastive": 1.0},
    "reduce.order_weight": 0.6,
    "reduce.norm_power": 1.0,
    "teacher.model": "",
    "teacher.epochs": 0.0,
    "teacher.languages": [],
    "teacher.corpora": [],
}


def sum_settings(cell: Cell, args: argparse.Namespace) -> dict[str, Any]:
    """Return the changes to the recipe europe5: its start, length and final dimensions."""
    from bitextmine.encoder.folder import read_folder, resolve

    assert cell.settings is not None
    config, _ = read_folder(resolve(cell.settings["model.start_from"]))
    shape = {"dim": config.dim, "order_columns": config.order_columns, "length_share": config.length_share}
    cut = {} if config.dim > 480 else {"reduce.dim": 0, "reduce.order_columns": 0}
    return {
        **{f"model.{key}": value for key, value in shape.items()},
        **({"model.order_weight": config.order_weight} if config.order_columns else {}),
        **cut,
        "train.steps": args.sum_steps,
        "train.embedding_learning_rate": 2e-3,
        "train.piece_splits_end": 1.0,
        **UNTAUGHT,
        "teacher.batch": 2048,
        **data_settings(args),
        **cell.settings,
    }


# --- the start ----------------------------------------------------------------------------------------------


def make_start(args: argparse.Namespace) -> None:
    """Write an assistant that computes the sum of the pieces of a sentence to OUT/start.

    Of the numbers of a state the first two are a constant, 2 sqrt(dim) long, and the rest, which add up to 0, a
    piece's vector: what layer norms divide by depends little on the piece then, so that the mean over the pieces keeps
    the lengths of their vectors. The layers' last matrices are zero. The pieces' vectors are turned (the orthogonal
    map nearest to it) to where the teacher has the sentences.
    """
    import torch

    from bitextmine.encoder import load_encoder
    from bitextmine.encoder.config import EncoderConfig
    from bitextmine.encoder.folder import TOKENIZER, WEIGHTS, read_folder, save_folder
    from bitextmine.encoder.model import SentenceModel
    from bitextmine.encoder.tokenizer import Tokenizer
    from bitextmine.encoder.weights import piece_vectors, read_weights
    from bitextmine.files.lines import iter_lines

    if (args.out / "start" / "config.json").exists():
        return
    large = Path(args.large)
    config, _ = read_folder(large)
    tokenizer = Tokenizer(large / TOKENIZER)
    pieces = piece_vectors(dict(read_weights(config, large / WEIGHTS)))[: config.vocab_size]
    teacher, dim = load_encoder(args.teacher, args.device), SHAPE["dim"]
    if teacher.dim != dim:
        sys.exit(f"{args.teacher}: {teacher.dim} dimensions; SHAPE has {dim}")
    room = np.eye(dim, dim - SILENT, -SILENT) - np.pad(
        np.full((dim - SILENT, dim - SILENT), 1 / (dim - SILENT)), ((SILENT, 0), (0, 0))
    )
    room = np.linalg.svd(room, full_matrices=False)[0][:, : dim - SILENT - 1]  # (dim, those that are free)
    sides: tuple[list[str], list[str]] = ([], [])
    for path in sampled(args):
        lines = [line.split("\t") for _, line in zip(range(1000), iter_lines(path), strict=False)]
        for side, texts in enumerate(sides):
            texts.extend(columns[side] for columns in lines)
    wanted = np.asarray(teacher.encode(sides[0]), dtype=np.float64) @ room
    products = np.zeros((pieces.shape[1], room.shape[1]))
    squares, count = 0.0, 0
    for texts in sides:
        cut, _ = tokenizer.encode(texts)
        sentences = np.add.reduceat(
            np.vstack([pieces[cut.ids], np.zeros(pieces.shape[1], np.float32)]), cut.offsets[:-1]
        )
        sentences[cut.lengths == 0] = 0
        products += (
            sentences / np.maximum(np.linalg.norm(sentences, axis=1, keepdims=True), 1e-9)
        ).T @ wanted
        squares, count = squares + float(np.square(pieces[cut.ids]).sum()), count + len(cut.ids)
    left, _, right = np.linalg.svd(products, full_matrices=False)
    vectors = pieces @ (left @ right) @ room.T
    torch.manual_seed(1)
    made = EncoderConfig(config.vocab_size, dropout=0.0, languages=tuple(sorted(LANGUAGES)), **SHAPE)
    model = SentenceModel(made)
    with torch.no_grad():
        model.embedding.weight.copy_(torch.from_numpy(vectors * np.sqrt(dim * count / squares)))
        model.positions.weight.zero_()
        model.positions.weight[:, 0], model.positions.weight[:, 1] = (2 * dim) ** 0.5, -((2 * dim) ** 0.5)
        for layer in model.layers:
            for part in (layer.out, layer.down):
                part.weight.zero_()
                part.bias.zero_()
            layer.attention_norm.weight[:SILENT] = layer.ffn_norm.weight[:SILENT] = 0
        model.norm.weight[:SILENT] = 0
    save_folder(args.out / "start", model, large / TOKENIZER, dtype="float32")


# --- a cell -------------------------------------------------------------------------------------------------


def run_cell(cell: Cell, args: argparse.Namespace) -> dict[str, Any]:
    """Trains a cell and measures it: its row of the results."""
    from bitextmine.run import Run
    from bitextmine.training.recipe import load_recipe
    from bitextmine.training.trainer import train

    folder = args.out / cell.name
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    if cell.group == "sum":
        settings = sum_settings(cell, args)
        (folder / "settings.json").write_text(json.dumps(settings, indent=1))
        recipe = load_recipe("europe5", settings, folder=args.data)
    else:
        share_stages(cell, args)
        (folder / "recipe.toml").write_text(student_recipe(cell, args), encoding="utf-8")
        recipe = load_recipe(folder / "recipe.toml", folder=args.out / "pairs")
    train(recipe, folder, Run(device=args.device))
    seconds = time.monotonic() - begin
    return {
        "cell": cell.name,
        "group": cell.group,
        "bottleneck": cell.bottleneck or "all",
        "own layers": cell.own if cell.group != "sum" else 0,
        "depth": cell.depth if cell.group != "sum" else 0,
        "contrast": cell.contrast if cell.group == "student" else "",
        "taught": " ".join(taught_pairs(folder, args)),
        "seconds": round(seconds),
        **measure(
            folder,
            folder / "measured.npz",
            args,
            args.large if cell.group == "sum" else args.out / "assistant",
        ),
    }


def share_stages(cell: Cell, args: argparse.Namespace) -> None:
    """Copy the finished stages of the cell that differs only in contrast."""
    base = next((other for other in cells(args) if other.name == cell.base), None)
    stages = args.out / cell.name / "work" / "stages"
    if base is None or base.group != "student" or stages.exists():
        return
    if (base.bottleneck, base.own, base.depth) == (cell.bottleneck, cell.own, cell.depth):
        shutil.copytree(
            args.out / base.name / "work" / "stages", stages, ignore=shutil.ignore_patterns("checkpoint.pt")
        )


def taught_pairs(folder: Path, args: argparse.Namespace) -> list[str]:
    """Return the number of pairs of each stage, as NAME=PAIRS."""
    logs = [*sorted(folder.glob("work/stages/*/log.jsonl")), folder / "log.jsonl"]
    said = []
    for log in logs:
        steps = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["step"]
        batch = json.loads((log.parent / "recipe.json").read_text(encoding="utf-8"))
        batch = batch["train" if "embedding" in batch["train"]["objective"] else "teacher"]["batch"]
        name = log.parent.name if log.parent != folder else "last"
        said.append(f"{name}={steps * batch}")
    return said


def measure(model: Path | str, out: Path, args: argparse.Namespace, reference: Path | str) -> dict[str, Any]:
    """STS and P@1, sizes, and speed beside ``reference``; cosines and hits go to ``out``."""
    from bitextmine.encoder import load_encoder
    from bitextmine.evaluation.pools import read_queries

    encoder = load_encoder(model, args.device)
    arrays = sts_cosines(encoder, args.bench / "sts")
    for path in [
        *sorted((args.bench / "everyday").glob("queries.*")),
        args.bench / "news" / "queries.tsv.zst",
    ]:
        arrays |= hits(encoder, read_queries(path), path.parent.name, args.rows)
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, **arrays)
    row: dict[str, Any] = {}
    for kind in ("within", "across"):
        for half in ("", "A", "B"):
            middle, low, high = interval(sts_draws(arrays, kind, half))
            row[f"{kind} {half}".strip()] = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
    for name in ("everyday", "news"):
        middle, low, high = interval(hit_draws(arrays, name))
        row[f"P@1 {name}"] = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
    row["STS"] = " ".join(f"{key}={value:.1f}" for key, value in by_language(arrays).items())
    row["embedding"], row["encoder"] = parameters(model)
    row["rate"], row["ratio"] = speed(encoder, load_encoder(reference, args.device), args)
    row["hash"] = encoder.hash
    return row


def sts_cosines(encoder: Any, folder: Path) -> dict[str, np.ndarray]:
    """As `evaluate sts` has them: sts/LANG, and sts/en-LANG with English first sentences; sts/gold."""
    from bitextmine.evaluation.sts import read_gold_pairs

    sets = {lang: read_gold_pairs(folder / f"stsb.{lang}.dev.csv") for lang in LANGUAGES}
    lines = sorted({line for one in sets.values() for side in (one.first, one.second) for line in side})
    place = {line: i for i, line in enumerate(lines)}
    vectors = encoder.encode(lines).astype(np.float64)

    def cosines(first: list[str], second: list[str]) -> np.ndarray:
        a, b = (vectors[[place[line] for line in side]] for side in (first, second))
        return np.einsum("ij,ij->i", a, b)

    found = {"sts/gold": sets["en"].gold}
    for lang, one in sets.items():
        found[f"sts/{lang}"] = cosines(one.first, one.second)
        if lang != "en":
            found[f"sts/en-{lang}"] = cosines(sets["en"].first, one.second)
    return found


def hits(encoder: Any, sentences: dict[str, list[str]], name: str, rows: int) -> dict[str, np.ndarray]:
    """hits/NAME/SRC-TGT: whether the nearest of the first ``rows`` sentences in the other language translates it."""
    texts = {lang: side[:rows] for lang, side in sentences.items()}
    vectors = {lang: encoder.encode(side) for lang, side in texts.items()}
    found = {}
    for lang in texts:
        for src, tgt in (("en", lang), (lang, "en")) if lang != "en" else ():
            nearest = (vectors[src] @ vectors[tgt].T).argmax(axis=1)
            right = [texts[tgt][i] == line for i, line in zip(nearest, texts[tgt], strict=True)]
            found[f"hits/{name}/{src}-{tgt}"] = np.array(right)
    return found


def parameters(model: Path | str) -> tuple[int, int]:
    """In the embedding (pieces, positions and what brings them to the layers), and in the layers."""
    from bitextmine.encoder.folder import WEIGHTS, read_folder, resolve
    from bitextmine.encoder.weights import read_weights

    folder = resolve(model)
    if (folder / "modules.json").exists():
        from safetensors.numpy import load_file

        sizes = {name: array.size for name, array in load_file(folder / WEIGHTS).items()}
    else:
        config, _ = read_folder(folder)
        if not config.layers:
            return config.rows * config.piece_dim, 0
        sizes = {name: array.size for name, array in read_weights(config, folder / WEIGHTS).items()}
    layers = sum(
        size for name, size in sizes.items() if "layer" in name.lower() and "embeddings." not in name
    )
    return sum(sizes.values()) - layers, layers


def speed(encoder: Any, reference: Any, args: argparse.Namespace) -> tuple[int, float]:
    """Sentences a second of processor time, one thread (on a GPU of time), and how many times those of the other
    encoder, both measured in turns: medians."""
    import torch

    from bitextmine.evaluation.pools import read_queries

    clock = time.process_time if args.device == "cpu" else time.monotonic
    lines = read_queries(args.bench / "news" / "queries.tsv.zst")["fr"][:SAMPLE]
    sides = [encoder, reference]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    taken: list[list[float]] = [[], []]
    for turn in range(ROUNDS + 1):
        for side, times in zip(sides, taken, strict=True):
            begin, again = clock(), 0
            while clock() < begin + 0.2:  # a sum is too fast for the clock
                side.encode(lines)
                again += 1
            if turn:  # the first is a warm-up
                times.append((clock() - begin) / again)
    torch.set_num_threads(threads)
    own, others = (float(np.median(times)) for times in taken)
    return round(SAMPLE / own), round(others / own, 2)


# --- figures ------------------------------------------------------------------------------------------------


def part(values: np.ndarray, half: str) -> np.ndarray:
    return values if not half else values[0 if half == "A" else 1 :: 2]


def sts_names(kind: str) -> list[str]:
    others = [lang for lang in LANGUAGES if lang != "en"]
    return (
        [f"sts/{lang}" for lang in LANGUAGES] if kind == "within" else [f"sts/en-{lang}" for lang in others]
    )


def sts_draws(arrays: Any, kind: str, half: str = "") -> np.ndarray:
    """(1 + RESAMPLES,): the mean of Spearman's correlations x 100 as it is, then of pairs drawn anew, the same places
    in whatever model."""
    from bitextmine.evaluation.sts import redrawn, spearman

    gold = part(arrays["sts/gold"], half)
    columns = [(part(arrays[name], half), gold) for name in sts_names(kind)]
    here = np.mean([spearman(x, y) for x, y in columns])
    return 100 * np.concatenate([[here], redrawn(columns, RESAMPLES, 1).mean(axis=0)])


def hit_draws(arrays: Any, name: str) -> np.ndarray:
    """(1 + RESAMPLES,): the mean P@1 of all directions as it is, then of rows drawn anew, for each file its own."""
    rng = np.random.default_rng(1)
    directions = [key for key in arrays if key.startswith(f"hits/{name}/")]
    total = np.zeros(1 + RESAMPLES)
    for lang in LANGUAGES[1:]:
        both = [arrays[key].astype(float) for key in directions if lang in key.rpartition("/")[2].split("-")]
        each = np.mean(both, axis=0)
        drawn = each[rng.integers(0, len(each), (RESAMPLES, len(each)))].mean(axis=1)
        total += np.concatenate([[each.mean()], drawn])
    return 100 * total / len(LANGUAGES[1:])


def interval(draws: np.ndarray) -> tuple[float, float, float]:
    """Return the value and the middle 95% of the draws."""
    low, high = np.quantile(draws[1:], [0.025, 0.975])
    return float(draws[0]), float(low), float(high)


def by_language(arrays: Any) -> dict[str, float]:
    from bitextmine.evaluation.sts import spearman

    names = [*sts_names("within"), *sts_names("across")]
    return {name.removeprefix("sts/"): 100 * spearman(arrays[name], arrays["sts/gold"]) for name in names}


# What is compared with what: the paper's findings.
COMPARED = [
    ("b128-ru3", "assistant", "the student and the assistant"),
    ("ball-ru6", "assistant", "the assistant after stage 4"),
    ("b128-ru3", "ball-ru6", "the student and that"),
    ("ball-ru3", "ball-ru6", "half the layers' weights"),
    ("b128-ru6", "ball-ru6", "a third of the embedding"),
    ("b256-ru3", "b128-ru3", "b = 256 for 128"),
    ("ball-ru3", "b128-ru3", "no bottleneck for 128"),
    ("b128-ru1", "b128-ru3", "RU of 1 layer for 3"),
    ("b128-ru2", "b128-ru3", "RU of 2 layers for 3"),
    ("b128-ru6", "b128-ru3", "all 6 layers for 3"),
    ("b128-3layers", "b128-ru3", "without recurrence: 3 layers for 3 layers twice"),
    ("b128-1layer", "b128-ru1", "without recurrence: 1 layer for 1 layer six times"),
    ("b232-1layer", "assistant", "less than half of the parameters, and the assistant"),
    ("b128-ru3-none", "b128-ru3", "without MCL"),
    ("b128-3layers-none", "b128-ru3", "without both"),
    ("b128-ru3-bool", "b128-ru3", "Bool for MCL"),
    ("b128-ru3-ce", "b128-ru3", "CE for MCL"),
    ("b128-ru3-bool", "b128-ru3-none", "Bool for none"),
    ("b128-ru3-ce", "b128-ru3-none", "CE for none"),
    ("sum256-minilm", "small", "256 dimensions taught by the teacher"),
    ("sum256-large", "small", "256 numbers taught by 648"),
    ("sum256-alone", "small", "trained further without a teacher"),
    ("sum256-minilm", "sum256-alone", "the share of the teacher"),
    ("sum256-minilm", "large", "the taught one and 648 dimensions"),
    ("sum256-large", "large", "taught by 648 numbers, beside them"),
    ("sum648-minilm", "europe5", "648 numbers taught, cut to 480, beside the same not taught"),
    ("sum256-minilm", "europe5", "256 dimensions taught, and 480 not taught"),
]


def print_tables(args: argparse.Namespace) -> None:
    """Students with layers, then sums of pieces: figures, and differences."""
    if not args.results.exists():
        sys.exit(f"{args.results}: no such file: no cell is finished")
    with args.results.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if missing := [row["cell"] for row in rows if not (args.out / row["cell"] / "measured.npz").exists()]:
        sys.exit(
            f"{args.out}: has no measured.npz of {', '.join(missing)}: --out is where these were measured"
        )
    for row in rows:
        row["b"] = row["bottleneck"]
        row["layers"] = f"{row['own layers']} of {row['depth']}"
        for key in ("embedding", "encoder"):
            row[key] = f"{int(row[key]) / 1e6:.2f} M"
        row["rate"] = f"{int(row['rate']):,}"
    drawn = {row["cell"]: all_draws(args.out / row["cell"] / "measured.npz", args.half) for row in rows}
    order = [cell.name for cell in cells(args)]
    rows.sort(key=lambda row: order.index(row["cell"]) if row["cell"] in order else -1)
    common = ["embedding", *[f"{kind} {args.half}".strip() for kind in ("within", "across")]]
    common += ["P@1 everyday", "P@1 news", "rate", "ratio"]
    for groups, more in (
        (("assistant", "student"), ["cell", "b", "layers", "contrast", "encoder"]),
        (("as it is", "sum"), ["cell"]),
    ):
        keys = more + common
        shown = [row for row in rows if row["group"] in groups]
        print("| " + " | ".join(keys) + " |\n|" + "---|" * len(keys))
        for row in shown:
            print("| " + " | ".join(row[key] for key in keys) + " |")
        names = {row["cell"] for row in shown}
        print("\n| | within | across | P@1 everyday | P@1 news |\n|---|---|---|---|---|")
        for one, other, said in COMPARED:
            if {one, other} <= names:
                found = [difference(a, b) for a, b in zip(drawn[one], drawn[other], strict=True)]
                print(f"| {said} (`{one}` - `{other}`) | " + " | ".join(found) + " |")
        print()


def all_draws(measured: Path, half: str) -> list[np.ndarray]:
    """Of what the tables of differences have."""
    arrays = dict(np.load(measured))
    return [
        *[sts_draws(arrays, kind, half) for kind in ("within", "across")],
        *[hit_draws(arrays, name) for name in ("everyday", "news")],
    ]


def difference(a: np.ndarray, b: np.ndarray) -> str:
    middle, low, high = interval(a - b)
    return f"{middle:+.2f} [{low:+.2f}, {high:+.2f}]"


# --- all of it ----------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--bench", type=Path, required=True, help="folder of the benchmarks")
    parser.add_argument("--teacher", required=True, help="all-MiniLM-L6-v2: a folder, or its name on the hub")
    parser.add_argument("--large", required=True, help="a sum of pieces: europe5 untaught and uncut")
    parser.add_argument(
        "--small", help="a smaller sum of pieces, to be taught; without it there are no such cells"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for all that is made")
    parser.add_argument(
        "--results", type=Path, help="lines of cells that are finished (OUT/distillation.tsv)"
    )
    parser.add_argument("--cache", type=Path, help="tokenised corpora and teachers' vectors (OUT/cache)")
    parser.add_argument("--cells", help="those of these names, between commas, in this order")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="times the pairs that each stage is taught (1)"
    )
    parser.add_argument("--lines", type=int, default=40_000, help="pairs that the teacher reads (40,000)")
    parser.add_argument("--batch", type=int, default=128, help="pairs a step (128)")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="pieces at once (4096)")
    parser.add_argument("--autocast", default="bfloat16", help="precision in the layers (bfloat16)")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of the layers (1e-3)")
    parser.add_argument("--embedding-learning-rate", type=float, default=2e-3, help="of the pieces (2e-3)")
    parser.add_argument("--sum-steps", type=int, default=300, help="of the sums, 4096 pairs each (300)")
    parser.add_argument("--structure", type=float, default=20.0, help="weight of structure in the sums (20)")
    parser.add_argument("--rows", type=int, default=500, help="of each file that P@1 is measured on (500)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, sharing the processors (2)")
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME=MODEL", help="measured as they are")
    parser.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--half", choices=("A", "B"), default="", help="STS of that half in the tables")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.cache = args.cache or args.out / "cache"
    args.results = args.results or args.out / "distillation.tsv"
    if args.table:
        print_tables(args)
    elif args.one:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        print(json.dumps(one_row(args.one, args)))
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        run_all(args)


def one_row(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one row, in a process of its own."""
    models = dict(pair.split("=", 1) for pair in args.models)
    if name in models:
        return {
            "cell": name,
            "group": "as it is",
            **measure(models[name], args.out / name / "measured.npz", args, args.large),
        }
    if name == "assistant":
        make_start(args)
    return run_cell(next(cell for cell in cells(args) if cell.name == name), args)


def run_all(args: argparse.Namespace) -> None:
    wanted = cells(args)
    asked = args.cells.split(",") if args.cells else [cell.name for cell in wanted]
    if unknown := set(asked) - {cell.name for cell in wanted}:
        sys.exit(f"--cells {min(unknown)}: there are {', '.join(cell.name for cell in wanted)}")
    names = [next(cell for cell in wanted if cell.name == name) for name in asked]
    names += [Cell(pair.partition("=")[0], "as it is") for pair in args.models]
    done = finished(args.results)
    ready = {cell.name: threading.Event() for cell in names if cell.name not in done}
    writing = threading.Lock()

    def run(cell: Cell, threads: int) -> None:
        if cell.base in ready:
            ready[cell.base].wait()
        said = args.out / f"{cell.name}.log"
        begin = time.monotonic()
        with said.open("a", encoding="utf-8") as log:
            found = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--one", cell.name],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            )
        if found.returncode:
            print(f"{cell.name}: failed: see {said}", file=sys.stderr)
        else:
            with writing:
                append(args.results, json.loads(found.stdout.splitlines()[-1]))
            print(f"{cell.name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        ready[cell.name].set()

    threads = max(1, (os.cpu_count() or 1) // args.jobs)
    with ThreadPoolExecutor(args.jobs) as pool:
        for future in [pool.submit(run, cell, threads) for cell in names if cell.name in ready]:
            future.result()


FIELDS = ["cell", "group", "bottleneck", "own layers", "depth", "contrast", "taught", "seconds"]
FIELDS += [f"{kind} {half}".strip() for kind in ("within", "across") for half in ("", "A", "B")]
FIELDS += ["P@1 everyday", "P@1 news", "STS", "embedding", "encoder", "rate", "ratio", "hash"]


def finished(results: Path) -> set[str]:
    if not results.exists():
        return set()
    with results.open(encoding="utf-8", newline="") as file:
        return {row["cell"] for row in csv.DictReader(file, delimiter="\t")}


def append(results: Path, row: dict[str, Any]) -> None:
    new = not results.exists()
    with results.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, delimiter="\t", lineterminator="\n", restval="")
        if new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    main()
