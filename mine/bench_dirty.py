"""Measure the default threshold, the estimated precision and the scores of `mine` where the truth is known.

    python mine/bench_dirty.py DATA [--only WORD] [--seed N] [--mine "--threshold precision=0.95"]

DATA is a folder of benchmarks: mining.en-fr (corpora and gold), news, everyday, ntrex, flores, sts, documents,
alignment and retrieval (sentences in several languages), and train (pairs and plain text). Makes these corpora:

    benchmark  the corpora of mining.en-fr as they are
    KINDS      eighteen mixtures of two or three kinds of text; 60% of 2,000, 15% of 6,000, 3% of 12,000
               and 60 of 1,700 lines a side translated, with markup, boilerplate, untranslated copies, other languages;
               half of them to choose rules on, the others to report
    NTREX      its news in eight pairs of languages, half of the lines translated

Mines each with the real command and prints a Markdown table: pairs kept, precision and recall as estimated and in
truth, F1 in percent, the F1 of the best threshold, the expected calibration error of scores above -4, in percent
(bins of 0.1), and what chance alone makes of it (mean of twenty draws from the stated probabilities). A pair is right
if gold has it, or if it joins variants of the sentences of a gold pair. The last lines count the runs in which the
truth is in its interval, and the precision within 2 points, measured and by chance.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
import random
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from bench_filtering import linked
from harness import bitextmine, parser, table

from bitextmine.evaluation.pools import read_queries
from bitextmine.files.source import iter_lines
from bitextmine.mining.calibration import probability
from bitextmine.mining.dedup import line_key

BOILERPLATE = (
    "Home | About us | Contact | Privacy policy | Terms of use",
    "© {year} All rights reserved.",
    "Read more »",
    "{n} comments",
    "Posted on {year}-{month}-{day} by admin",
    "Share on Facebook Share on Twitter",
    "Page {n} of {m}",
    "Version {month}.{day}.{n} released",
    "Copyright © {year} Example Inc. Powered by WordPress",
    "Skip to main content",
    "Log in or register to post comments",
)
# Of these mixtures: lines a side, and how many of them are translated.
SIZES = {"60%": (2000, 1200), "15%": (6000, 900), "3%": (12_000, 360), "60 lines": (1700, 60)}
# Languages and kinds of text: sources of pairs; sources of untranslated lines of either side.
KINDS = {
    "en-de news, captions": ("news sts", "articles europarl", "articles mono"),
    "de-fr books, captions": ("books sts", "articles europarl", "articles mono"),
    "en-es news, wiki": ("news flores", "articles europarl", "articles mono"),
    "de-es news, captions, wiki": ("news sts flores", "articles europarl", "articles mono"),
    "de-fr law, news": ("law news", "articles europarl", "articles mono"),
    "fr-it law, captions": ("law sts", "articles europarl", "mono"),
    "en-pl news, wiki, everyday": ("ntrex flores everyday", "articles europarl", "mono"),
    "en-pt wiki, everyday, news": ("flores everyday ntrex", "articles europarl", "mono"),
    "en-nl manuals, news, everyday": ("manuals ntrex everyday", "manuals", "games"),
    "en-sv everyday, manuals, news": ("everyday manuals ntrex", "games", "manuals"),
    "en-tr everyday, news, wiki": ("everyday ntrex flores", "articles europarl", "mono"),
    "en-hu news, everyday": ("ntrex everyday", "articles europarl", "mono"),
    "en-ko news, wiki": ("ntrex flores", "articles europarl", "mono"),
    "en-ar news, wiki": ("ntrex flores", "articles europarl", "mono"),
    "ar-fr news, wiki": ("ntrex flores", "mono", "mono"),
    "zh-ja news, wiki": ("ntrex flores", "mono", "mono"),
    "de-ru news, wiki": ("ntrex flores", "mono", "mono"),
    "en-sw news, wiki": ("ntrex flores", "articles europarl", "mono"),
}
# The languages of europe5.
FIVE = {"de", "en", "es", "fr", "it"}
NTREX = ("en-zh", "en-ja", "en-ar", "en-hi", "en-sw", "zh-ja", "en-pl", "en-ru")


Side = list[tuple[str, int]]  # lines, and the numbers of their pairs (or -1)
Sides = tuple[Side, Side]


def mixed(pairs: list[tuple[str, str]], alone: Sequence[list[str]], rng: random.Random) -> Sides:
    """Put pairs and lines without a partner in random order."""
    src, tgt = (
        [(pair[side], i) for i, pair in enumerate(pairs)] + [(line, -1) for line in alone[side]]
        for side in (0, 1)
    )
    rng.shuffle(src)
    rng.shuffle(tgt)
    return src, tgt


class Data:
    """The benchmark folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file, whatever its compression."""
        paths = (path for path in self.folder.glob(f"{name}*") if path.suffix not in (".npy", ".json"))
        return list(iter_lines(next(paths)))

    def training(self, name: str, lang: str) -> list[tuple[str, str]]:
        """Return pairs of a training file."""
        rows = (line.split("\t") for line in self.lines(f"train/{name}.en-{lang}.tsv"))
        return [(row[0], row[1]) for row in rows if len(row) > 1]

    def pairs(self, kind: str, langs: tuple[str, str]) -> list[tuple[str, str]]:
        """Return pairs of a kind of text."""
        src, tgt = langs
        if kind in ("news", "law", "everyday"):
            name = {"news": "news/queries", "law": "documents/swisslaw"}.get(kind, f"everyday*/*.en-{tgt}")
            sentences = read_queries(next(self.folder.glob(f"bench/{name}*")))
            return list(zip(sentences[src], sentences[tgt], strict=True))
        if kind == "sts":  # the first sentence of each row: the second one says nearly the same
            sides = (csv.reader(self.lines(f"bench/sts/stsb.{lang}.dev.csv")) for lang in langs)
            return [(src_row[0], tgt_row[0]) for src_row, tgt_row in zip(*sides, strict=True)]
        if kind == "books":
            golds = self.folder.glob(f"bench/alignment/*.{src}-{tgt}.gold")
            return [pair for gold in golds for pair in linked(gold)]
        if kind == "manuals":
            return self.training("manuals", tgt)[:3000]
        name = {"ntrex": "ntrex/ntrex", "flores": "flores/devtest"}[kind]
        return list(zip(*(self.lines(f"bench/{name}.{lang}.txt") for lang in langs), strict=True))

    def alone(self, kind: str, langs: tuple[str, str], side: int) -> list[str]:
        """Return lines of a kind whose translations are not among those of the other side."""
        lang = langs[side]
        if kind == "articles":  # their order is the same in all languages
            lines = self.lines(f"bench/news/distractors.{lang}.txt")
            return lines[3800:] if side else lines[:3700]
        if kind == "europarl":
            return self.lines(f"bench/retrieval/distractors.{lang}.txt")[:8000]
        if kind == "mono":
            return self.lines(f"train/mono.{lang}.txt")
        pairs = self.training(kind, langs[1])[3000:]
        return [pair[side] for pair in (pairs[len(pairs) // 2 :] if side else pairs[: len(pairs) // 2])]


def benchmark(data: Data, seed: int) -> Sides:
    """Return the mining benchmark, in other order."""
    folder = "bench/mining.en-fr"
    lines = [data.lines(f"{folder}/corpus.{lang}") for lang in ("en", "fr")]
    gold = [[int(number) - 1 for number in row.split("\t")] for row in data.lines(f"{folder}/gold.tsv")]
    known = [set(numbers) for numbers in zip(*gold, strict=True)]
    alone = [
        [line for i, line in enumerate(side) if i not in some]
        for side, some in zip(lines, known, strict=True)
    ]
    return mixed([(lines[0][i], lines[1][j]) for i, j in gold], alone, random.Random(seed))


def mixture(data: Data, kind: str, size: str, seed: int) -> Sides:
    """Return a mixture of KINDS and SIZES."""
    pair, _, name = kind.partition(" ")
    src, tgt = pair.split("-")
    langs, (sources, *others) = (src, tgt), (names.split() for names in KINDS[kind])
    lines, wanted = SIZES[size]
    rng = random.Random(f"{name or pair} {size} {seed}")
    seen: set[str] = set()

    def new(*texts: str) -> bool:
        keys = {line_key(text, "near") for text in texts}
        fresh = len(keys) == len(texts) and "" not in keys and not keys & seen
        seen.update(keys)
        return fresh

    pairs: list[tuple[str, str]] = []
    alone: list[list[str]] = [[], []]
    for number, source in enumerate(sources):
        some = [pair for pair in data.pairs(source, langs) if new(*pair)]
        rng.shuffle(some)
        take = (wanted - len(pairs)) // (len(sources) - number)
        pairs += some[:take]
        for side in (0, 1):
            alone[side] += [pair[side] for pair in some[take + side :: 2]]
    copies = int(0.04 * lines)
    for side, kinds in enumerate(others):
        more = [line for kind in kinds for line in data.alone(kind, langs, side) if new(line)]
        rng.shuffle(more)
        alone[side] += more
    for side in alone:
        rng.shuffle(side)
    sides = []
    for side in (0, 1):
        foreign = data.lines(f"train/mono.{('nl', 'ro')[side]}.txt")
        dirt = [*boilerplate(int(0.05 * lines), rng), *rng.sample(foreign, copies), *alone[1 - side][:copies]]
        own = [(pair[side], i) for i, pair in enumerate(pairs)]
        own += [(line, -1) for line in alone[side][copies : copies + lines - len(own) - len(dirt)]]
        sides.append([*((dressed(line, rng), i) for line, i in own), *((line, -1) for line in dirt)])
    for lines in sides:
        rng.shuffle(lines)
    return sides[0], sides[1]


def half_translated(data: Data, pair: str, seed: int) -> Sides:
    """Return NTREX, half of its sentences on both sides, the others on one."""
    src, tgt = pair.split("-")
    rows = list(dict.fromkeys(data.pairs("ntrex", (src, tgt))))
    random.Random(seed).shuffle(rows)
    half = len(rows) // 2
    alone = [row[0] for row in rows[half::2]], [row[1] for row in rows[half + 1 :: 2]]
    return mixed(rows[:half], alone, random.Random(seed))


def boilerplate(count: int, rng: random.Random) -> Iterator[str]:
    """Yield lines as the frames of pages repeat them."""
    for _ in range(count):
        line = rng.choice(BOILERPLATE)
        n, m, year = rng.randrange(300), rng.randrange(900), rng.randrange(1999, 2026)
        yield line.format(n=n, m=m, year=year, month=rng.randrange(1, 13), day=rng.randrange(1, 29))


def dressed(line: str, rng: random.Random) -> str:
    """Return a line as a crawler finds it: a share of 0.2 with markup, half as many in other case."""
    chance = rng.random()
    if chance < 0.2:
        tag = rng.choice(("p", "li", "span", "h2", "td"))
        marked = line.replace(" ", "&nbsp;", 1).replace("'", "&#39;")
        return f"<{tag}>{line}</{tag}>" if chance < 0.14 else marked
    return line.upper() if chance < 0.25 else line.lower() if chance < 0.3 else line


def corpora(word: str) -> Iterator[tuple[str, tuple[str, str], Callable[[Data, int], Sides]]]:
    """Yield the names that have the word, their languages, and what makes them."""
    every = {"benchmark": ("en-fr", benchmark)}
    for number, kind in enumerate(KINDS):
        use = "report" if number % 2 else "choose"
        for size in SIZES:
            every[f"{use}: {kind}, {size}"] = kind[:5], functools.partial(mixture, kind=kind, size=size)
    for pair in NTREX:
        every[f"NTREX {pair}"] = pair, functools.partial(half_translated, pair=pair)
    for name, (pair, make) in every.items():
        if word in name:
            yield name, pair.split("-"), make


def mined(
    folder: Path, langs: list[str], sides: Sides, options: list[str]
) -> tuple[np.ndarray, np.ndarray, dict]:
    """Return scores, a mask of the right pairs (best first), and the manifest of the real command."""
    src, tgt = langs
    bitextmine("mine", "--ids", *options, "--src", src, "--tgt", tgt, "-o", "mined.tsv", folder=folder)
    rows = [line.split("\t")[:3] for line in iter_lines(folder / "mined.tsv")]
    partners = [(sides[0][int(i) - 1][1], sides[1][int(j) - 1][1]) for _, i, j in rows]
    right = np.array([i == j >= 0 for i, j in partners], dtype=bool)
    manifest = json.loads((folder / "mined.tsv.json").read_text(encoding="utf-8"))
    return np.array([float(row[0]) for row in rows]), right, manifest


def calibration_error(p: np.ndarray, true: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error (Naeini et al. 2015) of probabilities p (n,); 0 for none.

    It is the gap between the mean of p and the share of true pairs, averaged over bins of equal width and weighted
    by their size.
    """
    where = np.minimum((p * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(where, p, bins) - np.bincount(where, true.astype(np.float64), bins)
    return float(np.abs(gaps).sum() / max(1, len(p)))


def f1(correct: int, kept: int, gold: int) -> float:
    """Return F1 in percent."""
    return 200 * correct / max(1, kept + gold)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("data", type=Path)
    command.add_argument("--only", metavar="WORD", default="", help="corpora whose names have it")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--mine", default="", help="options of mine")
    args = command.parse_args()
    inside: dict[str, list[float]] = {"precision": [], "recall": [], "near": [], "by chance": []}
    estimates = ("precision: estimated", "true", "recall: estimated", "true")
    header = ["corpora", "lines", "true pairs", "kept", *estimates, "F1", "best", "ECE", "by chance"]
    table(header, rows(args, inside), digits=1)
    for what in ("precision", "recall"):
        print(f"\nThe {what} is within its interval in {sum(inside[what])} of {len(inside[what])}.")
    near, best = (sum(inside[what]) for what in ("near", "by chance"))
    print(f"\nThe precision is within 2 points in {near}; of perfectly calibrated scores, in {best:.1f}.")


def rows(args: argparse.Namespace, inside: dict[str, list[float]]) -> Iterator[list[object]]:
    """Mine each corpus; yield its row of the table, and note whether the truth is within the intervals."""
    for name, langs, make in corpora(args.only):
        sides = make(Data(args.data), seed=args.seed)
        options = ["--model", "europe5" if FIVE.issuperset(langs) else "world56", *shlex.split(args.mine)]
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            for lang, side in zip(langs, sides, strict=True):
                text = "".join(f"{line}\n" for line, _ in side)
                (folder / f"text.{lang}").write_text(text, "utf-8", newline="\n")
            score, true, _ = mined(folder, langs, sides, [*options, "--threshold", "none"])
            kept, correct, manifest = mined(folder, langs, sides, options)
        gold = sum(i >= 0 for _, i in sides[0])
        hits, likely = int(correct.sum()), score > -4
        best = max((f1(right, at, gold) for at, right in enumerate(np.cumsum(true), 1)), default=0.0)
        figures: list[object] = []
        for what, share in (("precision", hits / max(1, len(kept))), ("recall", hits / gold)):
            low, high = manifest["estimate"][f"{what}_interval"]
            inside[what].append(low - 5e-4 <= share <= high + 5e-4)
            figures += [
                f"{100 * manifest['estimate'][what]:.1f} [{100 * low:.0f}, {100 * high:.0f}]",
                100 * share,
            ]
        p, rng = probability(kept), np.random.default_rng(args.seed)
        inside["near"].append(abs(manifest["estimate"]["precision"] - hits / max(1, len(kept))) <= 0.02)
        draws = rng.random((1000, len(p))) < p
        inside["by chance"].append(float((np.abs(draws.mean(axis=1) - p.mean()) <= 0.02).mean()))
        p, rng = probability(score[likely]), np.random.default_rng(args.seed)
        errors = [calibration_error(p, true[likely])]
        errors.append(float(np.mean([calibration_error(p, rng.random(len(p)) < p) for _ in range(20)])))
        lines = f"{len(sides[0]):,} x {len(sides[1]):,}"
        yield [
            name,
            lines,
            gold,
            len(kept),
            *figures,
            f1(hits, len(kept), gold),
            float(best),
            *(100 * error for error in errors),
        ]


if __name__ == "__main__":
    main()
