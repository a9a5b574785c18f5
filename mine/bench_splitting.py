"""How well do libraries find the ends of sentences? Sentences of ours, joined to paragraphs and split again.

    python mine/bench_splitting.py NAME.LANG[.zst]... [--half 0|1]

Each file holds one sentence per line. Runs of lines become paragraphs; lines without closing punctuation (headlines)
are left out. A boundary counts as found if as many letters precede it as in the original, spaces aside. Every second
paragraph (--half) is measured, so that a choice and its report rest on different text. Prints a Markdown table: F1 of
the boundaries inside paragraphs, in percent, and megabytes of text per second of CPU time. Libraries that are not
installed are left out.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from harness import parser, table

from bitextmine.files.source import Location, iter_lines

CLOSING = set(".!?…。！？।؟\"'”’»“‘)")
Splitter = Callable[[str, str], list[str]]


def splitter(name: str) -> Splitter:
    """Return a function of a text and its language that returns its sentences."""
    if name == "bitextmine":
        from bitextmine.documents.sentences import sentences

        return sentences
    library = importlib.import_module(name)
    if name == "sentencex":
        return lambda text, lang: list(library.segment(lang, text))
    if name == "blingfire":
        return lambda text, lang: library.text_to_sentences(text).split("\n")

    @functools.cache
    def segmenter(lang: str) -> Any:
        known = lang if lang in library.languages.LANGUAGE_CODES else "en"
        return library.Segmenter(known, clean=False)

    return lambda text, lang: list(segmenter(lang).segment(text))


LIBRARIES = "bitextmine", "sentencex", "blingfire", "pysbd"


def paragraphs(lines: list[str], most: int, half: int) -> Iterator[list[str]]:
    kept = [line.strip() for line in lines if line.strip() and line.strip()[-1] in CLOSING]
    runs = [kept[i : i + most] for i in range(0, len(kept) - most + 1, most)]
    yield from runs[half::2]


def ends(parts: list[str]) -> set[int]:
    """Numbers of letters before each inner boundary."""
    found, size = set(), 0
    for part in parts:
        size += len("".join(part.split()))
        found.add(size)
    return found - {0, size}


def measure(split: Splitter, runs: list[list[str]], lang: str, joiner: str) -> tuple[float, float]:
    right = guessed = true = size = 0
    start = time.process_time()
    outputs = []
    for run in runs:
        text = joiner.join(run)
        size += len(text.encode())
        outputs.append(split(text, lang))
    seconds = time.process_time() - start
    for run, output in zip(runs, outputs, strict=True):
        gold, found = ends(run), ends(output)
        right, guessed, true = right + len(gold & found), guessed + len(found), true + len(gold)
    return 200 * right / max(1, guessed + true), size / 1e6 / max(seconds, 1e-9)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", nargs="+", metavar="FILE")
    command.add_argument("--half", type=int, choices=(0, 1), default=1)
    command.add_argument("--sentences", type=int, default=5, help="in a paragraph (5)")
    command.add_argument("--only", nargs="+", choices=LIBRARIES, default=LIBRARIES)
    args = command.parse_args()
    names = [name for name in args.only if importlib.util.find_spec(name)]
    splitters = [splitter(name) for name in names]
    scores: list[list[float]] = []
    speeds: list[list[float]] = []

    def rows() -> Iterator[list[object]]:
        for file in args.files:
            stem = Location.of(file).stem
            lang = stem.suffix[1:] if stem.suffix != ".txt" else Path(stem.stem).suffix[1:]
            joiner = "" if lang in ("zh", "ja", "th") else " "
            runs = list(paragraphs(list(iter_lines(file)), args.sentences, args.half))
            columns = zip(*(measure(split, runs, lang, joiner) for split in splitters), strict=True)
            scores.append(list(next(columns)))
            speeds.append(list(next(columns)))
            yield [f"{stem.name} ({len(runs):,})", *scores[-1]]
        for name, columns in (("mean", scores), ("MB/s", speeds)):
            yield [name, *(mean(column) for column in zip(*columns, strict=True))]

    table(["text", *names], rows(), digits=1)


if __name__ == "__main__":
    main()
