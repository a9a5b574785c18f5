"""Dirty corpora: what do `mine` and its estimates make of them, with and without --clean?

    python mine/bench_dirty.py CORPUS.en CORPUS.fr GOLD.tsv OTHER.txt OTHER2.txt [--lines N] [--pairs N]

Out of two corpora with gold, and of text in two other languages, four dirty mixtures are made: copies of either side on
the other; junk and boilerplate, 200,000 lines of it; text in other languages, part of it the same on both sides; and
all of that where translations are rare. Each is mined by the real command, at the threshold that it chooses and at an
estimated precision of 95%. Prints a Markdown table: precision, estimated and true (a pair is right if it is gold), and
the share of the gold that is found.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bitextmine.files.corpora import corpus_language
from bitextmine.files.lines import read_lines

JUNK = (
    "x",
    "a b c",
    "lorem ipsum",
    "Lorem ipsum dolor sit amet",
    "-----",
    "*** *** ***",
    "1 2 3",
    "aaaaaaaaaaaaaaaa",
)
RUNS = (("--no-clean",), ("--clean",), ("--clean", "--threshold", "precision=0.95"))


@dataclass(frozen=True)
class Mixture:
    """Two dirty sides, and where the gold pairs are: line numbers from 1."""

    src: list[str]
    tgt: list[str]
    gold: set[tuple[int, int]]


def mix(pairs: list[tuple[str, str]], src: list[str], tgt: list[str], seed: int) -> Mixture:
    """The pairs and what has no partner, in random order."""
    rng = random.Random(seed)
    sides = [[pair[side] for pair in pairs] + more for side, more in ((0, src), (1, tgt))]
    orders = [rng.sample(range(len(side)), len(side)) for side in sides]
    place = [{old: new for new, old in enumerate(order, start=1)} for order in orders]
    mixed = [[side[i] for i in order] for side, order in zip(sides, orders, strict=True)]
    return Mixture(mixed[0], mixed[1], {(place[0][i], place[1][i]) for i in range(len(pairs))})


def mixtures(
    pairs: list[tuple[str, str]], src: list[str], tgt: list[str], others: list[list[str]], seed: int
) -> dict[str, Mixture]:
    """pairs: gold; src, tgt: lines without a partner; others: lines in other languages."""
    rng = random.Random(seed)
    tenth = (len(pairs) + len(src)) // 10
    copies = ([*src, *tgt[:tenth]], [*tgt, *src[: 2 * tenth]])
    pages = [f"Page {i} of {i + rng.randrange(900)}" for i in range(tenth)]
    junk = [[*(rng.choice(JUNK) for _ in range(200_000)), *pages] for _ in range(2)]
    both = others[0][:tenth]
    foreign = (others[0][tenth : 2 * tenth] + both, others[1][:tenth] + both)
    return {
        "copies of the other side": mix(pairs, *copies, seed),
        "200,000 lines of junk": mix(pairs, src + junk[0], tgt + junk[1], seed),
        "other languages": mix(pairs, src + foreign[0], tgt + foreign[1], seed),
        "all three, few pairs": mix(
            pairs[: len(pairs) // 10],
            copies[0] + junk[0] + foreign[0],
            copies[1] + junk[1] + foreign[1],
            seed,
        ),
        "clean": mix(pairs, src, tgt, seed),
    }


def mined(folder: Path, langs: list[str], mixture: Mixture, options: tuple[str, ...]) -> list[str]:
    """Cells of the table: pairs kept, precision estimated with its interval, and true; gold found."""
    command = [sys.executable, "-m", "bitextmine", "mine", "--ids", *options]
    subprocess.run(
        [*command, "--src", langs[0], "--tgt", langs[1], "-o", "mined.tsv"], check=True, cwd=folder
    )
    manifest = json.loads((folder / "mined.tsv.json").read_text(encoding="utf-8"))
    with open(folder / "mined.tsv", encoding="utf-8", newline="\n") as file:
        found = [tuple(map(int, line.split("\t")[1:3])) for line in file]
    right = sum(pair in mixture.gold for pair in found)
    low, high = manifest["null"]["precision_interval"]
    return [
        " ".join(options),
        f"{len(found):,}",
        f"{100 * manifest['null']['precision']:.1f} [{100 * low:.0f}, {100 * high:.0f}]",
        f"{100 * right / max(1, len(found)):.1f}",
        f"{100 * right / len(mixture.gold):.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs=2, metavar="CORPUS")
    parser.add_argument("gold", type=Path)
    parser.add_argument("others", nargs=2, metavar="OTHER", help="text in other languages")
    parser.add_argument("--lines", type=int, default=20_000, help="lines of a side before dirt")
    parser.add_argument("--pairs", type=int, default=4_000, help="gold pairs among them")
    parser.add_argument("--only", metavar="WORD", default="", help="mixtures whose names have it")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    langs = [corpus_language(path) for path in options.corpora]
    lines = [read_lines(path) for path in options.corpora]
    with open(options.gold, encoding="utf-8", newline="") as file:
        gold = [(int(source), int(target)) for source, target in csv.reader(file, delimiter="\t")]
    random.Random(options.seed).shuffle(gold)
    partnered = [{pair[side] for pair in gold} for side in (0, 1)]
    alone = [
        [line for number, line in enumerate(lines[side], start=1) if number not in partnered[side]]
        for side in (0, 1)
    ]
    pairs = [(lines[0][s - 1], lines[1][t - 1]) for s, t in gold[: options.pairs]]
    src, tgt = (some[: options.lines - len(pairs)] for some in alone)
    made = mixtures(pairs, src, tgt, [read_lines(path) for path in options.others], options.seed)
    print(
        "| mixture | lines | true pairs | run | pairs kept | precision estimated, % | true, % | recall, % |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, mixture in made.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for lang, side in zip(langs, (mixture.src, mixture.tgt), strict=True):
                text = "".join(f"{line}\n" for line in side)
                (Path(folder) / f"text.{lang}").write_text(text, encoding="utf-8", newline="\n")
            size = f"{len(mixture.src):,} x {len(mixture.tgt):,}"
            for run in RUNS:
                cells = mined(Path(folder), langs, mixture, run)
                print(f"| {' | '.join((name, size, f'{len(mixture.gold):,}', *cells))} |", flush=True)


if __name__ == "__main__":
    main()
