"""How well the presets and the column quality tell right pairs from seventeen kinds of noise, and how fast they do it.

    python mine/bench_filtering.py noise DATA --model world56 --langs pl,fi,ru      tables for mine/quality.md
    python mine/bench_filtering.py noise DATA --langs de,fr --rows 7000     by language, with more rows
    python mine/bench_filtering.py noise DATA --part scale                  the part that the scale is set by
    python mine/bench_filtering.py speed DATA            rows per second and memory of score and filter
    python mine/bench_filtering.py seen                  the same of the table that finds duplicates, 100 million pairs

DATA is a folder of real text: bench/ (NTREX, FLORES, Europarl, news, everyday sentences; no encoder was trained on it)
and train/*.tsv.zst. noise.py makes the noise, by other rules than those that fit_quality.py fits on.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from harness import bitextmine, parser, table
from noise import RULES, Row, Stream, Texts, noisy_rows

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.files.source import iter_lines
from bitextmine.scoring.filter import filter_rows
from bitextmine.scoring.rules import load_preset
from bitextmine.scoring.score import ScoreOptions, score

COLUMNS = "cosine,margin,length_ratio,numbers,copy,lang,quality"
FIRST = ("de", "es", "fr", "it")
MOST_OF_A_KIND = 4000  # pairs of a training file
SAME = 0.8  # cosine from which two sentences of a language count as one
# Kinds of text in bench/: a file for each language, or a table of both.
TESTS = {
    "news": ("ntrex/ntrex.{}.txt.zst", False),
    "wiki": ("flores/devtest.{}.txt.zst", False),
    "captions": ("sts/stsb.{}.dev.csv", False),
    "everyday": ("everyday20/everyday.en-{}.tsv.zst", True),
    "more everyday": ("everyday/queries.en-{}.tsv.zst", True),
    "parliament": ("retrieval/queries.tsv.zst", True),
    "older news": ("news/queries.tsv.zst", True),
}


# --- streams of right and spoilt pairs -------------------------------------------------------------------

# Remainders of the lines of the benchmarks in eighths: those to fit to, to set the scale by, and to report.
PARTS = {"fit": (0, 2, 4), "scale": (6,), "report": (1, 3, 5, 7)}
TRAINED = ", trained"  # ends the name of a kind of text that encoders were trained on


def kinds_of_text(data: Path, lang: str, part: str) -> dict[str, list[Texts]]:
    """Return pairs of English and a language by kind of text; `part` is one of PARTS.

    No encoder was trained on the benchmarks. Of training files, an eighth is kept for the report.
    """
    kinds: dict[str, list[Texts]] = {}
    for path in sorted(data.glob(f"train/*.en-{lang}.tsv.zst")):
        name = path.name.split(".")[0]
        if part != "scale" and name != "newsmt":
            rows = (line.split("\t") for line in iter_lines(path))  # in random order
            pairs = [(row[0], row[1]) for row in itertools.islice(rows, MOST_OF_A_KIND) if len(row) == 2]
            apart = len(pairs) // 8
            kinds[f"{name}{TRAINED}"] = pairs[apart:] if part == "fit" else pairs[:apart]
    tests: dict[str, list[Texts]] = {}
    for name, (path, is_table) in TESTS.items():
        files = [data / "bench" / path.format(code) for code in ("en", lang)]
        if is_table and files[1].exists():
            rows = [line.split("\t") for line in iter_lines(files[1])]
            if lang in rows[0]:
                columns = [rows[0].index(code) for code in ("en", lang)]
                tests[name] = [(row[columns[0]], row[columns[1]]) for row in rows[1:]]
        elif not is_table and all(file.exists() for file in files):
            sides = [list(iter_lines(file)) for file in files]
            if name == "captions":  # the first sentence of each row: the second one says nearly the same
                sides = [[row[0] for row in csv.reader(side)] for side in sides]
            tests[name] = list(zip(*sides, strict=True))
    if literature := [
        pair for gold in data.glob(f"bench/alignment/*.en-{lang}.gold") for pair in linked(gold)
    ]:
        tests["literature"] = literature
    for name, pairs in tests.items():
        kinds[name] = [pair for i, pair in enumerate(pairs) if i % 8 in PARTS[part]]
    return kinds


def linked(gold: Path) -> Iterator[Texts]:
    """Yield the sentences that a gold alignment links one to one."""
    name, langs, _ = gold.name.split(".")
    src, tgt = (list(iter_lines(gold.with_name(f"{name}.{lang}"))) for lang in langs.split("-"))
    for line in iter_lines(gold):
        left, right = (json.loads(numbers) for numbers in line.split(":")[:2])
        if len(left) == len(right) == 1:
            yield src[left[0]], tgt[right[0]]


def balanced(kinds: dict[str, list[Texts]], most: int) -> list[tuple[Texts, str]]:
    """Return at most so many pairs with their kinds: as many of each kind as there are, up to an equal share."""
    found: list[tuple[Texts, str]] = []
    for number, (kind, pairs) in enumerate(sorted(kinds.items(), key=lambda item: len(item[1]))):
        some = [pair for pair in pairs if all(map(str.strip, pair)) and pair[0] != pair[1]]
        found += [(pair, kind) for pair in some[: (most - len(found)) // (len(kinds) - number)]]
    return found


def neighbours(encoder: Encoder, pairs: Sequence[Texts], most: int = 3) -> list[list[int]]:
    """Return, for each source, the pairs with the most similar targets; not its own, nor those that say the same."""
    src, tgt = (encoder.encode([pair[side] for pair in pairs]).astype(np.float32) for side in range(2))
    found = []
    for start in range(0, len(src), 1024):
        own = slice(start, start + 1024)
        same = np.maximum(src[own] @ src.T, tgt[own] @ tgt.T) > SAME
        cosine = np.where(same, -np.inf, src[own] @ tgt.T)
        best = np.argsort(-cosine, axis=1)[:, :most]
        found += [[at for at in row if cosine[i, at] > -np.inf] for i, row in enumerate(best.tolist())]
    return found


def noisy_stream(
    data: Path, lang: str, part: str, encoder: Encoder, most: int = 1200
) -> tuple[list[Row], list[str]]:
    """Return rows of English with a language, half of them right, and the kind of text of each."""
    pairs, kinds = zip(*balanced(kinds_of_text(data, lang, part), most), strict=True)
    elsewhere = [
        text
        for code in (*FIRST, "pl", "ru")
        if code != lang
        for text in list(iter_lines(data / f"bench/ntrex/ntrex.{code}.txt.zst"))[PARTS[part][0] :: 24]
    ]
    rows = noisy_rows(Stream(pairs, ("en", lang), False, elsewhere, neighbours(encoder, pairs)))
    return rows, [kinds[row.at] for row in rows]


# --- measurements ----------------------------------------------------------------------------------------


def scored(rows: Sequence[Row], lang: str, encoder: Encoder, folder: Path) -> dict[str, np.ndarray]:
    """Return the columns of a stream, by `bitextmine score`, which leaves them in folder/scored.tsv."""
    plain, out = folder / "plain.tsv", folder / "scored.tsv"
    lines = [
        "src\ttgt\tnumber",
        *(f"{' '.join(r.src.split())}\t{' '.join(r.tgt.split())}\t{i}" for i, r in enumerate(rows)),
    ]
    plain.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = score(plain, out, ScoreOptions(columns=COLUMNS, src="en", tgt=lang, model=encoder))
    cells = [line.split("\t")[3:] for line in iter_lines(out)][1:]
    return dict(zip(done.columns, np.array(cells, dtype=np.float64).T, strict=True))


def area(values: np.ndarray, clean: np.ndarray) -> float:
    """Area under the ROC curve: how often a clean pair scores higher than a noisy one, ties counting half."""
    from scipy.stats import rankdata

    rank = rankdata(values)
    n = int(clean.sum())
    return float((rank[clean].sum() - n * (n + 1) / 2) / (n * (len(clean) - n)))


def kept_by(preset: str, folder: Path, count: int) -> np.ndarray:
    """Return flags (count,) of the rows of folder/scored.tsv that a preset keeps."""
    kept = folder / "kept.tsv"
    filter_rows(folder / "scored.tsv", kept, load_preset(preset))
    flags = np.zeros(count, dtype=bool)
    flags[[int(line.split("\t")[2]) for line in list(iter_lines(kept))[1:]]] = True
    return flags


def shares(kinds: np.ndarray, order: Iterable[str], kept: Sequence[np.ndarray]) -> Iterator[list[object]]:
    """Yield each kind with its rows and the shares that are kept."""
    for kind in order:
        of = kinds == kind
        yield [kind, int(of.sum()), *(f"{100 * flags[of].mean():.1f}%" for flags in kept)]


def by_language(every: dict[str, np.ndarray], lang: str) -> Iterator[tuple[str, str]]:
    """Yield each kind and the shares that the two presets keep in a language."""
    own = every["lang"] == lang
    kept = [every[preset][own] for preset in ("mild", "strict")]
    for kind, _, *cells in shares(every["noise"][own], np.unique(every["noise"][own]), kept):
        yield str(kind), " / ".join(map(str, cells))


def languages_of(arguments: argparse.Namespace, encoder: Encoder) -> list[str]:
    return (
        arguments.langs.split(",")
        if arguments.langs
        else [lang for lang in encoder.languages if lang != "en"]
    )


def report_noise(arguments: argparse.Namespace) -> None:
    """Print the rows that the presets keep, of each kind of noise, and right ones by kind of text and by language."""
    encoder = load_encoder(arguments.model, "cpu")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("noise", "text", "lang", "mild", "strict")}
    areas: dict[str, list[list[float]]] = {kind: [] for kind in RULES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lang in languages_of(arguments, encoder):
            rows, text = noisy_stream(Path(arguments.data), lang, arguments.part, encoder, arguments.rows)
            columns = scored(rows, lang, encoder, folder)
            noise = np.array([row.kind for row in rows])
            kept = [kept_by(preset, folder, len(rows)) for preset in ("mild", "strict")]
            for part, values in zip(parts.values(), (noise, text, [lang] * len(rows), *kept), strict=True):
                part.append(np.array(values))
            for kind in set(noise.tolist()) - {"good"}:
                chosen = (noise == "good") | (noise == kind)
                clean = noise[chosen] == "good"
                scores = (columns[name][chosen] for name in ("cosine", "margin", "quality"))
                areas[kind].append([area(values, clean) for values in scores])
    every = {name: np.concatenate(part) for name, part in parts.items()}
    both = [every["mild"], every["strict"]]
    means = {kind: [f"{x:.3f}" for x in np.mean(found, axis=0)] for kind, found in areas.items() if found}
    rows_of = shares(every["noise"], ("good", *means), both)
    header = ["kind", "rows", "kept by mild", "by strict", "area: cosine", "margin", "quality"]
    table(header, ([*row, *means.get(str(row[0]), [""] * 3)] for row in rows_of))
    good = every["noise"] == "good"
    for what in ("text", "lang"):
        print()
        of = every[what][good]
        table(
            [f"right pairs: {what}", "rows", "mild", "strict"],
            shares(of, np.unique(of), [k[good] for k in both]),
        )
    if arguments.langs:
        print()
        langs = arguments.langs.split(",")
        found = [dict(by_language(every, lang)) for lang in langs]
        table(
            ["kept by mild / strict", *langs], ([k, *(f.get(k, "") for f in found)] for k in ("good", *means))
        )


def report_speed(arguments: argparse.Namespace) -> None:
    """Print the speed of each command on 100,000 and on many more rows, each in a process of its own.

    The columns are seconds of the clock and of processor time, rows per second of processor time (other work on the
    machine changes it little) and peak memory.
    """
    sources = ("docs", "business", "devdocs", "laws")
    files = [Path(arguments.data) / f"train/{s}.en-fr.tsv.zst" for s in sources]
    score = ("score", "--model", arguments.model)

    def rows_of(folder: Path) -> Iterator[list[object]]:
        plain, done, parquet = (str(folder / file) for file in ("plain.tsv", "scored.tsv", "scored.parquet"))
        for rows in sorted({100_000, arguments.rows}):
            with open(plain, "w", encoding="utf-8") as out:
                lines = itertools.chain.from_iterable(map(iter_lines, itertools.cycle(files)))
                for i, line in enumerate(itertools.islice(lines, rows)):
                    # A text that comes round again is made another one.
                    out.write(line if i < 600_000 else line.replace("\t", f" {i}\t") + f" {i}")
                    out.write("\n")
            commands: list[tuple[tuple[str, ...], str, str]] = [
                ((*score, "--columns", "cosine"), plain, os.devnull),
                (score, plain, done),
                ((*score, "--src", "en", "--tgt", "fr"), plain, os.devnull),
                (("filter", "--max", "length_ratio=2.5", "--min", "shorter=3"), plain, os.devnull),
                (("filter", "--preset", "cheap"), plain, os.devnull),
                (("filter", "--duplicates", "exact"), plain, os.devnull),
                (("filter", "--duplicates", "near"), plain, os.devnull),
                (("filter", "--preset", "mild"), done, os.devnull),
                (("filter", "--preset", "mild"), done, parquet),
                (("filter", "--preset", "strict"), parquet, os.devnull),
            ]
            for words, source, target in commands:
                label = " ".join([*words, Path(target).suffix])
                if re.search(arguments.only, label):
                    cost, _ = bitextmine(*words, source, "-o", target)
                    yield [label, rows, cost.seconds, cost.cpu, round(rows / cost.cpu), cost.peak_mib]

    with tempfile.TemporaryDirectory() as name:
        header = ["command", "rows", "seconds", "CPU seconds", "rows per CPU second", "MiB"]
        table(header, rows_of(Path(name)), digits=1)


def report_seen(arguments: argparse.Namespace) -> None:
    """Measure the table that finds duplicates: fill it with distinct hashes, then look some of them up."""
    from bitextmine.scoring.seen import Seen

    rng = np.random.default_rng(1)
    seen = Seen()
    begin = time.process_time()
    new = 0
    for start in range(0, arguments.rows, 8192):
        new += int(
            seen.add(rng.integers(1, 1 << 63, min(8192, arguments.rows - start), dtype=np.uint64)).sum()
        )
    seconds = time.process_time() - begin
    again = int(seen.add(np.random.default_rng(1).integers(1, 1 << 63, 8192, dtype=np.uint64)).sum())
    print(
        f"{arguments.rows:,} hashes, {new:,} of them new, in {seconds:.0f} seconds of processor time; the table "
        f"takes {seen.bytes >> 20:,} MiB; asked for the first 8,192 "
        f"again: {again:,} new"
    )


def main() -> None:
    command = parser(__doc__)
    commands = command.add_subparsers(required=True)
    noise = commands.add_parser("noise")
    noise.add_argument("data")
    noise.add_argument("--model", default="default")
    noise.add_argument("--langs", help="target languages, of en (default: all of the encoder)")
    noise.add_argument("--rows", type=int, default=1200, help="of each language")
    noise.add_argument("--part", choices=PARTS, default="report", help="of the benchmarks")
    noise.set_defaults(run=report_noise)
    speed = commands.add_parser("speed")
    speed.add_argument("data")
    speed.add_argument("--model", default="default")
    speed.add_argument("--rows", type=int, default=2_000_000)
    speed.add_argument(
        "--only", default="", metavar="REGEX", help="some commands; they rest on those before them"
    )
    speed.set_defaults(run=report_speed)
    seen = commands.add_parser("seen")
    seen.add_argument("--rows", type=int, default=100_000_000)
    seen.set_defaults(run=report_seen)
    arguments = command.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
