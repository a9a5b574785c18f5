"""How well do libraries find the ends of sentences? Sentences of ours, joined to paragraphs and split again.

    python mine/bench_splitting.py NAME.LANG[.zst]... [--half 0|1] [--sentences 5] [--only NAME]

Each file holds one sentence per line. Runs of lines become paragraphs; lines without closing punctuation (headlines)
are left out. A boundary counts as found if as many letters precede it as in the original, spaces aside. Every second
paragraph (--half) is measured, so that a choice and its report rest on different text. Prints a Markdown table: F1 of
the boundaries inside paragraphs, in percent, and megabytes of text per second of CPU time. Libraries that are not
installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bitextmine.files.lines import read_lines
from bitextmine.files.streams import strip_compression

CLOSING = set(".!?…。！？।؟\"'”’»“‘)")
Splitter = Callable[[str, str], list[str]]


def ours(text: str, lang: str) -> list[str]:
    from bitextmine.documents.sentences import sentences

    return sentences(text, lang)


def sentencex(text: str, lang: str) -> list[str]:
    import sentencex as library

    return list(library.segment(lang, text))


def blingfire(text: str, lang: str) -> list[str]:
    import blingfire as library

    return list(library.text_to_sentences(text).split("\n"))


def pysbd(text: str, lang: str) -> list[str]:
    import pysbd as library

    known = library.languages.LANGUAGE_CODES
    made = _PYSBD.setdefault(lang, library.Segmenter(lang if lang in known else "en", clean=False))
    return list(made.segment(text))


_PYSBD: dict = {}
LIBRARIES: dict[str, Splitter] = {
    "bitextmine": ours,
    "sentencex": sentencex,
    "blingfire": blingfire,
    "pysbd": pysbd,
}


def paragraphs(lines: list[str], most: int, half: int, joiner: str) -> Iterator[list[str]]:
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
        gold, mine = ends(run), ends(output)
        right, guessed, true = right + len(gold & mine), guessed + len(mine), true + len(gold)
    return 200 * right / max(1, guessed + true), size / 1e6 / max(seconds, 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--half", type=int, choices=(0, 1), default=1)
    parser.add_argument("--sentences", type=int, default=5, help="in a paragraph")
    parser.add_argument("--only", nargs="+", choices=list(LIBRARIES), default=list(LIBRARIES))
    parser.add_argument("--show", metavar="LIBRARY", help="print its errors instead")
    options = parser.parse_args()
    names = [name for name in options.only if importlib.util.find_spec(name)]
    print("| text |", " | ".join(names), "|")
    print("|---|" + "---|" * len(names))
    speeds: dict[str, list[float]] = {name: [] for name in names}
    scores: dict[str, list[float]] = {name: [] for name in names}
    for file in options.files:
        stem = strip_compression(Path(file))
        lang = stem.suffix[1:] if stem.suffix != ".txt" else Path(stem.stem).suffix[1:]
        joiner = "" if lang in ("zh", "ja", "th") else " "
        runs = list(paragraphs(read_lines(file), options.sentences, options.half, joiner))
        if options.show:
            show(LIBRARIES[options.show], runs, lang, joiner)
            continue
        cells = []
        for name in names:
            f1, speed = measure(LIBRARIES[name], runs, lang, joiner)
            speeds[name].append(speed)
            scores[name].append(f1)
            cells.append(f"{f1:.1f}")
        print(f"| {stem.name} ({len(runs)}) |", " | ".join(cells), "|", flush=True)
    if not options.show:
        many = len(options.files)
        print("| mean |", " | ".join(f"{sum(scores[name]) / many:.1f}" for name in names), "|")
        print("| MB/s |", " | ".join(f"{sum(speeds[name]) / many:.1f}" for name in names), "|")


def show(split: Splitter, runs: list[list[str]], lang: str, joiner: str) -> None:
    for run in runs:
        gold = ends(run)
        size = 0
        found = split(joiner.join(run), lang)
        inner = ends(found)
        for before, after in itertools.pairwise(found):
            size += len("".join(before.split()))
            if size not in gold:
                print(lang, "WRONG ", before[-40:], "||", after[:40])
        size = 0
        for before, after in itertools.pairwise(run):
            size += len("".join(before.split()))
            if size not in inner:
                print(lang, "MISSED", before[-40:], "||", after[:40])


if __name__ == "__main__":
    main()
