"""Measure the default threshold, the estimated precision and the scores of `mine` where the truth is known.

    python mine/bench_dirty.py DATA [--only WORD] [--seed N] [--mine "--threshold precision=0.95"]

DATA is a folder of benchmarks: mining.en-fr (corpora and gold), news, everyday, ntrex, flores, sts, documents,
alignment and retrieval (sentences in several languages), and train (pairs and plain text). Makes these corpora, half of
them to choose rules on, the others to report:

    benchmark  the corpora of mining.en-fr as they are
    KINDS      eighteen mixtures of two or three kinds of text; 60% of 2,000, 15% of 6,000, 3% of 12,000
               and 60 of 1,700 lines a side translated, with markup, boilerplate, untranslated copies, other languages
    NTREX      its news in eight pairs of languages, half of the lines translated
    crawl      30,000 lines a side from ten sources, 3,000 of them translated, with boilerplate, other languages, HTML,
               copies, list marks and changed case

Mines each with the real command and prints a Markdown table: pairs kept, precision and recall as estimated and in
truth, F1 in percent, the F1 of the best threshold, and the expected calibration error of scores above -4, in percent
(bins of 0.1). A pair is right if gold has it, or if it joins variants of the sentences of a gold pair. A last line
counts how often the truth is within the interval.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench_filtering import linked
from harness import parser, table

from bitextmine.evaluation.pools import read_queries
from bitextmine.files.source import iter_lines
from bitextmine.mining.calibration import calibration_error, probability
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
OTHER_LANGUAGES = {"de": ("fr", "es"), "fr": ("de", "it"), "es": ("it", "fr"), "it": ("es", "de")}
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
TRAINING = ("games", "apps", "devdocs", "business")


@dataclass(frozen=True)
class Mixture:
    """Two sides, and for each line the number of the sentence that it says (-1: no translation on the other side)."""

    langs: tuple[str, str]
    src: list[str]
    tgt: list[str]
    meaning: tuple[np.ndarray, np.ndarray]

    @property
    def pairs(self) -> int:
        """Return the number of translated sentences."""
        return len(set(self.meaning[0][self.meaning[0] >= 0].tolist()))


def mix(
    langs: tuple[str, str], pairs: list[tuple[str, str]], src: list[str], tgt: list[str], seed: int
) -> Mixture:
    """Put pairs and lines without a partner in random order."""
    rng = random.Random(seed)
    sides = [
        [(pair[side], i) for i, pair in enumerate(pairs)] + [(line, -1) for line in alone]
        for side, alone in ((0, src), (1, tgt))
    ]
    return shuffled(langs, sides, rng)


def shuffled(langs: tuple[str, str], sides: list[list[tuple[str, int]]], rng: random.Random) -> Mixture:
    """Put the lines of both sides in random order."""
    for side in sides:
        rng.shuffle(side)
    src, tgt = ([line for line, _ in side] for side in sides)
    left, right = (np.array([meaning for _, meaning in side]) for side in sides)
    return Mixture(langs, src, tgt, (left, right))


class Data:
    """The benchmark folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def table(self, name: str, lang: str) -> list[tuple[str, str]]:
        """Return the English and foreign sentences of a table with a header."""
        sentences = read_queries(next(self.folder.glob(f"bench/{name}")))
        return list(zip(sentences["en"], sentences[lang], strict=True))

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file, whatever its compression."""
        return list(
            iter_lines(
                next(path for path in self.folder.glob(f"{name}*") if path.suffix not in (".npy", ".json"))
            )
        )

    def training(self, name: str, lang: str) -> list[tuple[str, str]]:
        """Return pairs of a training file."""
        rows = (line.split("\t") for line in self.lines(f"train/{name}.en-{lang}.tsv"))
        return [(row[0], row[1]) for row in rows if len(row) > 1]

    def pairs(self, kind: str, langs: tuple[str, str]) -> list[tuple[str, str]]:
        """Return pairs of a kind of text."""
        src, tgt = langs
        if kind in ("news", "law", "everyday"):
            name = {"news": "news/queries", "law": "documents/swisslaw", "everyday": f"everyday*/*.en-{tgt}"}[
                kind
            ]
            sentences = read_queries(next(self.folder.glob(f"bench/{name}*")))
            return list(zip(sentences[src], sentences[tgt], strict=True))
        if kind == "sts":  # the first sentence of each row: the second one says nearly the same
            sides = [
                [row[0] for row in csv.reader(self.lines(f"bench/sts/stsb.{lang}.dev.csv"))] for lang in langs
            ]
            return list(zip(*sides, strict=True))
        if kind == "books":
            return [
                pair
                for gold in self.folder.glob(f"bench/alignment/*.{src}-{tgt}.gold")
                for pair in linked(gold)
            ]
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


def benchmark(data: Data, seed: int) -> Mixture:
    """Return the mining benchmark, in other order."""
    folder = "bench/mining.en-fr"
    lines = [data.lines(f"{folder}/corpus.{lang}") for lang in ("en", "fr")]
    gold = [[int(number) - 1 for number in row.split("\t")] for row in data.lines(f"{folder}/gold.tsv")]
    src, tgt = (
        np.delete(np.array(side, dtype=object), [pair[i] for pair in gold]).tolist()
        for i, side in enumerate(lines)
    )
    return mix(("en", "fr"), [(lines[0][i], lines[1][j]) for i, j in gold], src, tgt, seed)


def mixture(data: Data, kind: str, size: str, seed: int) -> Mixture:
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
        sides.append(
            [(_dressed(line, rng, 0.2), meaning) for line, meaning in own] + [(line, -1) for line in dirt]
        )
    return shuffled(langs, sides, rng)


def half_translated(data: Data, pair: str, seed: int) -> Mixture:
    """Return NTREX, half of its sentences on both sides, the others on one."""
    src, tgt = pair.split("-")
    rows = list(dict.fromkeys(data.pairs("ntrex", (src, tgt))))
    random.Random(seed).shuffle(rows)
    half = len(rows) // 2
    alone = [row[0] for row in rows[half::2]], [row[1] for row in rows[half + 1 :: 2]]
    return mix((src, tgt), rows[:half], *alone, seed)


def boilerplate(count: int, rng: random.Random) -> Iterator[str]:
    """Yield lines as the frames of pages repeat them."""
    for _ in range(count):
        yield rng.choice(BOILERPLATE).format(
            n=rng.randrange(300),
            m=rng.randrange(900),
            year=rng.randrange(1999, 2026),
            month=rng.randrange(1, 13),
            day=rng.randrange(1, 29),
        )


def crawl(data: Data, lang: str, seed: int) -> Mixture:
    """Return 30,000 lines a side from many sources, 3,000 of them translated."""
    rng = random.Random(seed)
    sources = [
        data.table("news/queries.tsv*", lang),
        data.table(f"everyday/queries.en-{lang}.tsv*", lang),
        *(
            list(zip(*(data.lines(f"bench/{name}.{one}.txt") for one in ("en", lang)), strict=True))
            for name in ("ntrex/ntrex", "flores/devtest")
        ),
        *(
            data.training(name, lang)
            for name in TRAINING
            if list(data.folder.glob(f"train/{name}.en-{lang}.tsv*"))
        ),
    ]
    sizes = [600, 900, 300, 200, *[250] * (len(sources) - 4)]
    pairs: list[tuple[str, str]] = []
    alone: list[list[str]] = [[], []]
    for some, size in zip(sources, sizes, strict=True):
        distinct = {
            line_key(pair[1], "near"): pair for pair in {line_key(p[0], "near"): p for p in some}.values()
        }
        some = list(distinct.values())
        rng.shuffle(some)
        pairs += some[:size]
        for side in (0, 1):  # a sentence stays on one side
            alone[side] += [pair[side] for pair in some[size + side : 14_000 + size : 2]]
    for side in (0, 1):
        rng.shuffle(alone[side])
    dirt = [list(_dirt(data, lang, side, alone, pairs, rng)) for side in (0, 1)]
    sides = []
    for side in (0, 1):
        own = [(pair[side], i) for i, pair in enumerate(pairs)] + dirt[side]
        own += [(line, -1) for line in alone[side][: 30_000 - len(own)]]
        sides.append([(_dressed(line, rng), meaning) for line, meaning in own])
    return shuffled(("en", lang), sides, rng)


def _dirt(
    data: Data, lang: str, side: int, alone: list[list[str]], pairs: list[tuple[str, str]], rng: random.Random
) -> Iterator[tuple[str, int]]:
    """Yield a quarter of a side: boilerplate, copies of the other side, variants of its own lines, other languages."""
    for line in boilerplate(2500, rng):
        yield line, -1
    for line in rng.sample(alone[1 - side][-8000:], 1500):
        yield line, -1
    for line in rng.sample(alone[side][:10_000], 1000):
        yield _marked(line, rng), -1
    for i in rng.sample(range(len(pairs)), 150):
        yield _marked(pairs[i][side], rng), i
    for other in OTHER_LANGUAGES[lang]:
        for line in rng.sample(data.lines(f"bench/retrieval/distractors.{other}"), 1000):
            yield line, -1


def _marked(line: str, rng: random.Random) -> str:
    """Return a variant of a line: with a list mark, a number, other case or markup."""
    ways: list[Callable[[str], str]] = [
        lambda s: f"  - {s}",
        lambda s: f"{rng.randrange(1, 40)}. {s}",
        lambda s: f"* {s}",
        str.upper,
        str.lower,
        lambda s: f"<li>{s}</li>",
        lambda s: f'<a href="/p{rng.randrange(999)}">{s}</a>',
    ]
    return rng.choice(ways)(line)


def _dressed(line: str, rng: random.Random, markup: float = 0.1) -> str:
    """Return a line as a crawler finds it: a share of `markup` with markup, half as many in other case."""
    chance = rng.random() * 0.1 / markup
    if chance < 0.1:
        tag = rng.choice(("p", "li", "span", "h2", "td"))
        return (
            f"<{tag}>{line}</{tag}>"
            if chance < 0.07
            else line.replace(" ", "&nbsp;", 1).replace("'", "&#39;")
        )
    return line.upper() if chance < 0.125 else line.lower() if chance < 0.15 else line


# To choose rules on, and to report.
CORPORA: dict[str, Callable[[Data, int], Mixture]] = {
    "choose: crawl en-de": lambda data, seed: crawl(data, "de", seed),
    "choose: crawl en-it": lambda data, seed: crawl(data, "it", seed),
    "benchmark": benchmark,
    "crawl en-fr": lambda data, seed: crawl(data, "fr", seed),
    "crawl en-es": lambda data, seed: crawl(data, "es", seed),
    **{
        f"{'report' if number % 2 else 'choose'}: {kind}, {size}": (
            lambda data, seed, kind=kind, size=size: mixture(data, kind, size, seed)
        )
        for number, kind in enumerate(KINDS)
        for size in SIZES
    },
    **{f"NTREX {pair}": (lambda data, seed, pair=pair: half_translated(data, pair, seed)) for pair in NTREX},
}


def right(mixture: Mixture, src: np.ndarray, tgt: np.ndarray) -> np.ndarray:
    """Return a mask of the pairs (line numbers from 0, best first) that are right, each sentence once."""
    left, same = mixture.meaning[0][src], mixture.meaning[1][tgt]
    return (left >= 0) & (left == same)


def mined(folder: Path, mixture: Mixture, options: list[str]) -> tuple[np.ndarray, np.ndarray, dict]:
    """Return scores, a mask of the right pairs, and the manifest of the real command."""
    command = [sys.executable, "-m", "bitextmine", "mine", "--ids", *options]
    command += ["--src", mixture.langs[0], "--tgt", mixture.langs[1], "-o", "mined.tsv"]
    subprocess.run(command, check=True, cwd=folder, stderr=subprocess.DEVNULL)
    rows = [line.split("\t")[:3] for line in list(iter_lines(folder / "mined.tsv"))]
    numbers = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 2) - 1
    manifest = json.loads((folder / "mined.tsv.json").read_text(encoding="utf-8"))
    return np.array([float(row[0]) for row in rows]), right(mixture, numbers[:, 0], numbers[:, 1]), manifest


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
    estimates = ("precision: estimated", "true", "recall: estimated", "true")
    inside: dict[str, list[bool]] = {"precision": [], "recall": []}
    header = ["corpora", "lines", "true pairs", "kept", *estimates, "F1", "best", "ECE"]
    table(header, rows(args, inside))
    for what, runs in inside.items():
        print(f"\nThe {what} is within its interval in {sum(runs)} of {len(runs)}.")


def rows(args: argparse.Namespace, inside: dict[str, list[bool]]) -> Iterator[list[object]]:
    """Mine each corpus; yield its row of the table, and note whether the truth is within the intervals."""
    for name, make in CORPORA.items():
        if args.only not in name:
            continue
        mixture = make(Data(args.data), args.seed)
        encoder = "europe5" if set(mixture.langs) <= FIVE else "world56"
        options = ["--model", encoder, *shlex.split(args.mine)]
        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            for lang, side in zip(mixture.langs, (mixture.src, mixture.tgt), strict=True):
                text = "".join(f"{line}\n" for line in side)
                (folder / f"text.{lang}").write_text(text, "utf-8", newline="\n")
            score, true, _ = mined(folder, mixture, [*options, "--threshold", "none"])
            kept, correct, manifest = mined(folder, mixture, options)
        gold, hits, likely = mixture.pairs, int(correct.sum()), score > -4
        best = max((f1(right, at, gold) for at, right in enumerate(np.cumsum(true), 1)), default=0.0)
        figures = []
        for what, share in (("precision", hits / max(1, len(kept))), ("recall", hits / gold)):
            low, high = manifest["estimate"][f"{what}_interval"]
            inside[what].append(low - 5e-4 <= share <= high + 5e-4)
            stated = f"{100 * manifest['estimate'][what]:.1f} [{100 * low:.0f}, {100 * high:.0f}]"
            figures += [stated, f"{100 * share:.1f}"]
        error = 100 * calibration_error(probability(score[likely]), true[likely])
        shares = (f1(hits, len(kept), gold), best, error)
        lines = f"{len(mixture.src):,} x {len(mixture.tgt):,}"
        yield [name, lines, gold, len(kept), *figures, *(f"{share:.1f}" for share in shares)]


if __name__ == "__main__":
    main()
