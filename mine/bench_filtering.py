"""How well columns and presets tell clean pairs from seven kinds of noise, and how fast they do it.

    python mine/bench_filtering.py noise DATA            tables for mine/filtering.md
    python mine/bench_filtering.py noise DATA --fit      the weights of the column `quality`, fitted anew
    python mine/bench_filtering.py speed DATA            rows per second and memory of score and filter
    python mine/bench_filtering.py seen                  the same of the table that finds duplicates, 100 million pairs

DATA is a folder of real text: train/*.tsv.zst (English, tab, another language) and bench/ (Europarl: a file of
queries in five languages, and mining.en-fr with its gold pairs).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bitextmine.files.lines import iter_lines
from bitextmine.scoring.rules import load_preset
from bitextmine.scoring.score import ScoreOptions, score

KINDS = ("shuffled", "similar", "truncated", "numbers", "language", "copied", "gibberish")
SOURCES = ("business", "devdocs", "docs", "tatoeba", "laws")
COLUMNS = "cosine,margin,length_ratio,numbers,copy,lang,longer,quality"
TARGETS = ("de", "es", "fr", "it")

# A pair, and the translations of its source into other languages.
Pair = tuple[str, str, tuple[str, ...]]


# --- clean pairs -----------------------------------------------------------------------------------------


def europarl(data: Path, lang: str) -> list[Pair]:
    """The queries in five languages, and for French the gold pairs of the mining benchmark: none was trained on."""
    rows = (line.split("\t") for line in iter_lines(data / "bench/retrieval/queries.tsv.zst"))
    header = next(rows)
    pairs: list[Pair] = []
    for row in rows:
        texts = dict(zip(header, row, strict=True))
        pairs.append((texts["en"], texts[lang], tuple(texts[other] for other in TARGETS if other != lang)))
    if lang == "fr":
        folder = data / "bench/mining.en-fr"
        en, fr = (list(iter_lines(folder / f"corpus.{side}.zst")) for side in ("en", "fr"))
        for line in iter_lines(folder / "gold.tsv"):
            a, b = map(int, line.split("\t"))
            pairs.append((en[a - 1], fr[b - 1], ()))
    return pairs


def other(data: Path, lang: str, each: int = 6000) -> list[Pair]:
    """Documentation, law, everyday sentences (an encoder may have been trained on them); as many of each source, those
    first whose source is there in other languages, too."""
    pairs: list[Pair] = []
    for source in SOURCES:
        own = data / f"train/{source}.en-{lang}.tsv.zst"
        if not own.exists():
            continue
        elsewhere: dict[str, list[str]] = {}
        for language in (other for other in TARGETS if other != lang):
            file = data / f"train/{source}.en-{language}.tsv.zst"
            for line in iter_lines(file) if file.exists() else ():
                en, text = line.split("\t")
                elsewhere.setdefault(en, []).append(text)
        seen: set[str] = set()
        found: list[Pair] = []
        for line in iter_lines(own):
            en, text = line.split("\t")
            if en != text and en not in seen:
                seen.add(en)
                found.append((en, text, tuple(elsewhere.get(en, ()))))
        random.Random(1).shuffle(found)
        found.sort(key=lambda pair: not pair[2])
        several, alone = found[: each // 2], [pair for pair in found[each // 2 :] if not pair[2]]
        pairs += several + (alone or found[each // 2 :])[: each // 2]
    random.Random(2).shuffle(pairs)
    return pairs


# --- noise -----------------------------------------------------------------------------------------------

Noise = Callable[[Sequence[Pair], random.Random], Iterator[tuple[str, str]]]


def shuffled(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """The target of another pair, at random."""
    for i, (src, tgt, _) in enumerate(pairs):
        j = i
        while j == i or pairs[j][1] == tgt:
            j = rng.randrange(len(pairs))
        yield src, pairs[j][1]


def similar(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """In place of the neighbouring sentence (the text at hand has no order): of all other targets the most similar one,
    by cosine of tf-idf over words, equal ones (above 0.95) left out."""
    from scipy import sparse

    vocabulary: dict[str, int] = {}
    at = [
        (i, vocabulary.setdefault(w, len(vocabulary))) for i, p in enumerate(pairs) for w in set(words(p[1]))
    ]
    row, column = np.array(at).T
    counts = sparse.csr_matrix((np.ones(len(at)), (row, column)), shape=(len(pairs), len(vocabulary)))
    weighted = counts @ sparse.diags(np.log(len(pairs) / np.asarray(counts.sum(0)).ravel()))
    norm = np.sqrt(np.asarray(weighted.multiply(weighted).sum(1)).ravel())
    unit = (sparse.diags(1 / np.maximum(norm, 1e-9)) @ weighted).tocsr()
    for start in range(0, len(pairs), 500):
        alike = (unit[start : start + 500] @ unit.T).toarray()
        alike[alike > 0.95] = -1
        for i, best in enumerate(alike.argmax(1)):
            yield pairs[start + i][0], pairs[best][1]


def truncated(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """One side cut after 30% to 70% of its words."""
    for src, tgt, _ in pairs:
        sides = [src, tgt]
        side = rng.randrange(2)
        parts = sides[side].split(" ")
        sides[side] = " ".join(parts[: max(1, round(len(parts) * rng.uniform(0.3, 0.7)))])
        yield sides[0], sides[1]


def numbers(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """One number of one side replaced by another of as many digits."""
    for src, tgt, _ in pairs:
        sides = [src, tgt]
        side = rng.randrange(2)
        found = rng.choice(list(re.finditer(r"\d+", sides[side])))
        old = new = found.group()
        while new == old or (len(new) > 1 and new[0] == "0"):
            new = "".join(rng.choice("0123456789") for _ in old)
        sides[side] = sides[side][: found.start()] + new + sides[side][found.end() :]
        yield sides[0], sides[1]


def language(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """A right translation, into another language."""
    for src, _, others in pairs:
        yield src, rng.choice(others)


def copied(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """The source as target; every other time in lower case, or with one word left out."""
    for i, (src, _, _) in enumerate(pairs):
        parts = src.split(" ")
        dropped = rng.randrange(len(parts))
        changed = [src, src.lower(), src, " ".join(parts[:dropped] + parts[dropped + 1 :]) or src][i % 4]
        yield src, changed


def gibberish(pairs: Sequence[Pair], rng: random.Random) -> Iterator[tuple[str, str]]:
    """What machines write: words of the language at random, random letters, a few words of the translation over and
    over; a third each, of the length of the translation."""
    vocabulary = [word for _, tgt, _ in pairs for word in tgt.split()]
    for i, (src, tgt, _) in enumerate(pairs):
        parts = tgt.split()
        length = max(3, len(parts))
        if i % 3 == 0:
            text = [rng.choice(vocabulary) for _ in range(length)]
        elif i % 3 == 1:
            text = [
                "".join(rng.choices("abcdefghijklmnopqrstuvwxyzé", k=rng.randint(1, 10)))
                for _ in range(length)
            ]
        else:
            at = rng.randrange(len(parts))
            text = list(itertools.islice(itertools.cycle(parts[at : at + rng.randint(1, 3)]), length))
        yield src, " ".join(text)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


NOISE: dict[str, Noise] = {
    function.__name__: function
    for function in (shuffled, similar, truncated, numbers, language, copied, gibberish)
}


def eligible(kind: str, pair: Pair) -> bool:
    """Whether a pair can be spoilt this way: digits to change, words to cut, another language to be had."""
    src, tgt, others = pair
    if kind == "truncated":
        return min(len(src.split()), len(tgt.split())) >= 8
    if kind == "numbers":
        return bool(re.search(r"\d", src) and re.search(r"\d", tgt))
    return bool(others) if kind == "language" else True


def stream(kind: str, pairs: Sequence[Pair], most: int) -> list[tuple[str, str, bool]]:
    """Clean pairs and as many noisy ones, each of a source of its own, in random order: (source, target, clean)."""
    rng = random.Random(3)
    chosen = [pair for pair in pairs if eligible(kind, pair)][: 2 * most]
    clean, spoilt = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
    rows = [(src, tgt, True) for src, tgt, _ in clean]
    rows += [(src, tgt, False) for src, tgt in NOISE[kind](spoilt, rng)]
    rng.shuffle(rows)
    return rows


# --- measurements ----------------------------------------------------------------------------------------


def scored(
    rows: Sequence[tuple[str, str, bool]], lang: str, model: str, folder: Path
) -> dict[str, np.ndarray]:
    """The columns of a stream, by `bitextmine score`."""
    plain, out = folder / "in.tsv", folder / "out.tsv"
    plain.write_text("".join(f"{src}\t{tgt}\n" for src, tgt, _ in rows), encoding="utf-8")
    options = ScoreOptions(columns=COLUMNS, src="en", tgt=lang, model=model, score_only=True)
    done = score(plain, out, options)
    cells = np.array([[float(cell) for cell in line.split("\t")] for line in iter_lines(out)])
    columns = dict(zip(done.columns, cells.T, strict=True))
    score(plain, out, ScoreOptions(columns="quality", model=model, score_only=True))
    columns["quality, languages not stated"] = np.array([float(line) for line in iter_lines(out)])
    columns["signature"] = np.array(done.signature)
    return columns


def area(score_: np.ndarray, clean: np.ndarray) -> float:
    """Area under the ROC curve: how often a clean pair scores higher than a noisy one, ties counting half."""
    from scipy.stats import rankdata

    rank = rankdata(score_)
    n = int(clean.sum())
    return float((rank[clean].sum() - n * (n + 1) / 2) / (n * (len(clean) - n)))


def standing(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Where a row stands on the scale of the presets: below 0 it fails `mild`, from 1 on it passes `strict`.

    With each threshold moving in a straight line from mild's through strict's and on, it is the last point at which the
    row meets all the rules; the ROC curve of this scale goes through both presets.
    """
    mild, strict = (
        {(rule.kind, rule.column): float(rule.value) for rule in load_preset(name).rules}
        for name in ("mild", "strict")
    )
    if mild.keys() != strict.keys():
        raise SystemExit("mild and strict have different rules")
    places = [(columns[column] - low) / (strict[kind, column] - low) for (kind, column), low in mild.items()]
    return np.min(places, axis=0)


def report_noise(arguments: argparse.Namespace) -> None:
    data = Path(arguments.data)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lang, (text, make) in itertools.product(
            arguments.langs.split(","), (("Europarl", europarl), ("other", other))
        ):
            pairs = make(data, lang)
            if text == "other":  # one half was fitted on
                pairs = pairs[len(pairs) // 2 :]
            random.Random(4).shuffle(pairs)
            for kind in KINDS:
                rows = stream(kind, pairs, arguments.pairs)
                if len(rows) < 200:
                    continue
                columns = scored(rows, lang, arguments.model, folder)
                clean = np.array([row[2] for row in rows])
                on_scale = standing(columns)
                results.append(
                    {
                        "text": f"{text} en-{lang}",
                        "noise": kind,
                        "pairs": len(rows) // 2,
                        "cosine": area(columns["cosine"], clean),
                        "margin": area(columns["margin"], clean),
                        "quality": area(columns["quality"], clean),
                        "not stated": area(columns["quality, languages not stated"], clean),
                        "presets": area(on_scale, clean),
                        "mild clean": float((on_scale[clean] >= 0).mean()),
                        "mild noise": float((on_scale[~clean] >= 0).mean()),
                        "strict clean": float((on_scale[clean] >= 1).mean()),
                        "strict noise": float((on_scale[~clean] >= 1).mean()),
                    }
                )
                print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    areas = ("cosine", "margin", "quality", "not stated", "presets")
    print(f"| text | noise | pairs | {' | '.join(areas)} | kept by mild: clean, noise | by strict |")
    print(f"|---|---|---:|{'---:|' * len(areas)}---:|---:|")
    for r in results:
        numbers_ = " | ".join(f"{r[name]:.3f}" for name in areas)
        kept = " | ".join(
            f"{100 * r[f'{p} clean']:.1f}%, {100 * r[f'{p} noise']:.1f}%" for p in ("mild", "strict")
        )
        print(f"| {r['text']} | {r['noise']} | {r['pairs']:,} | {numbers_} | {kept} |")
    print(f"\n`{columns['signature']}`")


def fit(arguments: argparse.Namespace) -> None:
    """Logistic regression on the half of the other text that report_noise leaves out, kinds of equal weight: with the
    languages stated, and without."""
    from bitextmine.languages.codes import usual_length
    from bitextmine.scoring.columns.lengths import length_deviation
    from bitextmine.scoring.columns.quality import COPIED, similarity

    kinds, inputs, labels, weights = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        for lang in arguments.langs.split(","):
            pairs = other(Path(arguments.data), lang)
            pairs = pairs[: len(pairs) // 2]
            for kind in KINDS:
                rows = stream(kind, pairs, arguments.pairs)
                if len(rows) < 200:
                    continue
                columns = scored(rows, lang, arguments.model, Path(name))
                clean = np.array([row[2] for row in rows], dtype=float)
                length = [length_deviation(src, tgt, usual_length("en", lang)) for src, tgt, _ in rows]
                inputs.append(
                    np.stack(
                        [
                            similarity(columns["cosine"], columns["margin"]),
                            np.array(length),
                            columns["numbers"],
                            np.maximum(0, columns["copy"] - COPIED),
                            np.minimum(1, 2 * columns["lang"]),
                        ],
                        axis=1,
                    )
                )
                kinds.append(kind)
                labels.append(clean)
                weights.append(np.full(len(rows), 1 / len(rows)))
    for with_languages in (True, False):
        used = [i for i, kind in enumerate(kinds) if with_languages or kind != "language"]
        x, y, w = (np.concatenate([part[i] for i in used]) for part in (inputs, labels, weights))
        names = ["similarity", "length", "numbers", "copy", "lang"][: 5 if with_languages else 4]
        print(json.dumps(dict(zip(["intercept", *names], regression(x[:, : len(names)], y, w), strict=True))))


def regression(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> list[float]:
    """Intercept and weights (d + 1) of a logistic regression of y (n,) in 0..1 on x (n, d), weighted by w (n,)."""
    from scipy.optimize import minimize

    def loss(b: np.ndarray) -> float:
        z = x @ b[1:] + b[0]
        return float((w * (np.logaddexp(0, z) - y * z)).sum() + 1e-3 * (b[1:] ** 2).sum())

    return minimize(loss, np.zeros(x.shape[1] + 1)).x.round(2).tolist()


def report_speed(arguments: argparse.Namespace) -> None:
    """Each command on 100,000 and on many more rows, as a process of its own: seconds by the clock and of processor
    time, rows per second of processor time (which other work on the machine changes little), peak memory."""
    program = [sys.executable, "-m", "bitextmine"]
    sources = ("docs", "business", "devdocs", "laws")
    files = [Path(arguments.data) / f"train/{s}.en-fr.tsv.zst" for s in sources]
    languages = ("--src", "en", "--tgt", "fr")
    print("| command | rows | seconds | of processor | rows per second of processor | MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, done, parquet = (folder / file for file in ("plain.tsv", "scored.tsv", "scored.parquet"))
        for rows in sorted({100_000, arguments.rows}):
            with plain.open("w", encoding="utf-8") as out:
                lines = itertools.chain.from_iterable(map(iter_lines, itertools.cycle(files)))
                for i, line in enumerate(itertools.islice(lines, rows)):
                    # A text that comes round again is made another one.
                    out.write(line if i < 600_000 else line.replace("\t", f" {i}\t") + f" {i}")
                    out.write("\n")
            commands: list[tuple[list[object], Path, Path | None]] = [
                (["score", "--columns", "cosine"], plain, None),
                (["score"], plain, done),
                (["score", *languages], plain, None),
                (["filter", "--max", "length_ratio=2.5", "--min", "shorter=3"], plain, None),
                (["filter", "--preset", "cheap"], plain, None),
                (["filter", "--duplicates", "exact"], plain, None),
                (["filter", "--duplicates", "near"], plain, None),
                (["filter", "--preset", "mild", "--duplicates", "none"], done, None),
                (["filter", "--preset", "mild"], done, None),
                (["filter", "--preset", "mild", "-o", parquet], done, None),
                (["filter", parquet, "--preset", "strict"], parquet, None),
            ]
            for words_, source, target in commands:
                label = " ".join(str(getattr(word, "name", word)) for word in words_)
                if arguments.only and not re.search(arguments.only, label):
                    continue
                seconds, usage = timed(
                    [*program, *map(str, words_)],
                    source,
                    target,
                    {**os.environ, "BITEXTMINE_MODEL": arguments.model},
                )
                processor = usage.ru_utime + usage.ru_stime
                print(
                    f"| {label} | {rows:,} | {seconds:.1f} | {processor:.1f} | {rows / processor:,.0f} "
                    f"| {usage.ru_maxrss / 1024:,.0f} |",
                    flush=True,
                )


def timed(
    command: Sequence[str], source: Path, target: Path | None, environment: dict[str, str]
) -> tuple[float, resource.struct_rusage]:
    """Run a command from a file to a file, or to nowhere: seconds, and what it used."""
    with source.open("rb") as stdin, (target or Path(os.devnull)).open("wb") as stdout:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, env=environment)
        message = child.stderr.read() if child.stderr else b""
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{command}: {message.decode()}")
    return seconds, usage


def report_seen(arguments: argparse.Namespace) -> None:
    """The table that finds duplicates, filled with distinct hashes and then asked for some of them again."""
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
        f"takes {seen.bytes >> 20:,} MiB, the process {peak():,.0f} MiB at its most; asked for the first 8,192 "
        f"again: {again:,} new"
    )


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    noise = commands.add_parser("noise")
    noise.add_argument("data")
    noise.add_argument("--model", default="default")
    noise.add_argument("--langs", default="fr", help="target languages, of en")
    noise.add_argument("--pairs", type=int, default=2000, help="clean ones and noisy ones, per kind")
    noise.add_argument("--fit", action="store_true")
    noise.set_defaults(run=lambda a: fit(a) if a.fit else report_noise(a))
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
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
