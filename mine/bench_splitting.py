"""How well do libraries find the ends of sentences? Sentences of ours, joined to paragraphs and split again.

    python mine/bench_splitting.py NAME.LANG[.zst]...

Each file holds one sentence per line. Runs of five lines become paragraphs; lines without closing punctuation
(headlines) are left out. A boundary counts as found if as many letters precede it as in the original, spaces aside.
Every second paragraph is measured; choices were made on the others. Prints a Markdown table: F1 of the boundaries
inside paragraphs, in percent, and megabytes of text per second of CPU time. Libraries that are not installed are left
out.
"""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from harness import parser, table

from bitextmine.documents.sentences import sentences
from bitextmine.files.source import Location, iter_lines

CLOSING = set(".!?…。！？।؟\"'”’»“‘)")
SENTENCES = 5  # of a paragraph
Splitter = Callable[[str, str], list[str]]


def splitter(name: str, library: Any) -> Splitter:
    """Return a function of a text and its language that returns its sentences."""
    if name == "sentencex":
        return lambda text, lang: list(library.segment(lang, text))
    if name == "blingfire":
        return lambda text, lang: library.text_to_sentences(text).split("\n")

    @functools.cache
    def segmenter(lang: str) -> Any:
        known = lang if lang in library.languages.LANGUAGE_CODES else "en"
        return library.Segmenter(known, clean=False)

    return lambda text, lang: list(segmenter(lang).segment(text))


def paragraphs(lines: Iterator[str]) -> list[list[str]]:
    kept = [line.strip() for line in lines if line.strip() and line.strip()[-1] in CLOSING]
    runs = [kept[i : i + SENTENCES] for i in range(0, len(kept) - SENTENCES + 1, SENTENCES)]
    return runs[1::2]


def ends(parts: list[str]) -> set[int]:
    """Numbers of letters before each inner boundary."""
    found = [*accumulate(len("".join(part.split())) for part in parts)]
    return {*found} - {0, *found[-1:]}


def measure(split: Splitter, runs: list[list[str]], lang: str, joiner: str) -> tuple[float, float]:
    texts = [joiner.join(run) for run in runs]
    start = time.process_time()
    outputs = [split(text, lang) for text in texts]
    seconds = time.process_time() - start
    both = [(ends(run), ends(output)) for run, output in zip(runs, outputs, strict=True)]
    right, of_both = (
        sum(len(gold & found) for gold, found in both),
        sum(len(gold) + len(found) for gold, found in both),
    )
    return 200 * right / max(1, of_both), sum(len(text.encode()) for text in texts) / 1e6 / max(seconds, 1e-9)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", nargs="+", metavar="FILE")
    args = command.parse_args()
    splitters: dict[str, Splitter] = {"bitextmine": sentences}
    for name in ("sentencex", "blingfire", "pysbd"):
        if importlib.util.find_spec(name):
            splitters[name] = splitter(name, importlib.import_module(name))
    measured: list[list[tuple[float, float]]] = []

    def rows() -> Iterator[list[object]]:
        for file in args.files:
            stem = Location.of(file).stem
            lang = stem.suffix[1:] if stem.suffix != ".txt" else Path(stem.stem).suffix[1:]
            runs = paragraphs(iter_lines(file))
            joiner = "" if lang in ("zh", "ja", "th") else " "
            measured.append([measure(split, runs, lang, joiner) for split in splitters.values()])
            yield [f"{stem.name} ({len(runs):,})", *(f1 for f1, _ in measured[-1])]
        for name, means in zip(("mean", "MB/s"), np.mean(measured, axis=0).T.tolist(), strict=True):
            yield [name, *means]

    table(["text", *splitters], rows(), digits=1)


if __name__ == "__main__":
    main()
