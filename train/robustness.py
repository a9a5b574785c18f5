"""What happens to an encoder's P@1 and scores when the source text is written badly.

Example:  python train/robustness.py queries.tsv.zst FOLDER-OF-THE-DISTRACTORS --model default

The queries of one side are changed, the pool of the other is as it was. A row of the table is a change: P@1 by cosine
in per cent for each direction, and the mean of cos(changed query, its translation) - cos(query, its translation). The
last part asks whether a translation is still told from a copy of it in which one thing is wrong: the share of queries
that are nearer to the true translation than to the copy.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np

from bitextmine.encoder import load_encoder
from bitextmine.evaluation.pools import find_distractors, read_queries
from bitextmine.files.lines import read_lines
from bitextmine.search.exact import search_one

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TYPO_SHARE = 0.02
CAPITALIZED = re.compile(r"(?<=[^.!?:\s] )[A-ZÀ-Ý][\w-]{2,}")


def no_accents(line: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", line) if not unicodedata.combining(c))


def no_punctuation(line: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in line).split())


def typos(line: str, rng: np.random.Generator) -> str:
    """Drop, double, replace or swap each character with probability TYPO_SHARE."""
    out, i = [], 0
    while i < len(line):
        if rng.random() >= TYPO_SHARE:
            out.append(line[i])
        else:
            kind = rng.integers(4)
            if kind == 1:
                out.append(line[i] * 2)
            elif kind == 2:
                out.append(LETTERS[rng.integers(26)])
            elif kind == 3:
                out.append(line[i + 1 : i + 2] + line[i])
                i += 1
        i += 1
    return "".join(out)


def first_half(line: str) -> str:
    words = line.split()
    return " ".join(words[: (len(words) + 1) // 2])


def second_half(line: str) -> str:
    words = line.split()
    return " ".join(words[len(words) // 2 :])


def other_numbers(line: str, rng: np.random.Generator) -> str:
    """Replace each run of digits by another of its length."""

    def another(found: re.Match[str]) -> str:
        while True:
            digits = "".join(str(rng.integers(10)) for _ in found[0])
            if digits != found[0]:
                return digits

    return re.sub(r"[0-9]+", another, line)


def other_names(lines: list[str], rng: np.random.Generator) -> Iterator[str]:
    """In each line one word that is capitalised inside a sentence becomes one of another line."""
    names = sorted({name for line in lines for name in CAPITALIZED.findall(line)})
    for line in lines:
        found = list(CAPITALIZED.finditer(line))
        if found:
            one = found[rng.integers(len(found))]
            others = [
                name for name in (names[rng.integers(len(names))] for _ in range(9)) if name not in line
            ]
            if others:
                line = line[: one.start()] + others[0] + line[one.end() :]
        yield line


CHANGES: dict[str, Callable[[str, np.random.Generator], str]] = {
    "as written": lambda line, rng: line,
    "UPPERCASE": lambda line, rng: line.upper(),
    "no accents": lambda line, rng: no_accents(line),
    "no punctuation": lambda line, rng: no_punctuation(line),
    f"typos ({TYPO_SHARE:.0%} of the characters)": typos,
    "first half only": lambda line, rng: first_half(line),
    "second half only": lambda line, rng: second_half(line),
    "other numbers": other_numbers,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("queries")
    parser.add_argument("distractors")
    parser.add_argument("--model", default="default")
    parser.add_argument("--pairs", default="en-fr,fr-en,de-en,es-en")
    args = parser.parse_args()
    encoder = load_encoder(args.model)
    queries = read_queries(args.queries)
    pairs = [tuple(pair.split("-")) for pair in args.pairs.split(",")]
    pools = {}
    for lang in {tgt for _, tgt in pairs}:
        path = find_distractors(args.distractors, lang)
        pools[lang] = encoder.encode(queries[lang] + (read_lines(path) if path else []))
    whole = {lang: encoder.encode(lines) for lang, lines in queries.items()}
    rows = np.arange(len(next(iter(queries.values()))))

    print(f"P@1 by cosine (change of the mean cosine), {len(rows):,} queries, model {encoder.hash}\n")
    print("| queries | " + " | ".join(f"{src} -> {tgt}" for src, tgt in pairs) + " |")
    print("|---|" + "---|" * len(pairs))
    for name, change in CHANGES.items():
        cells = []
        for src, tgt in pairs:
            rng = np.random.default_rng(1)
            lines = [change(line, rng) for line in queries[src]]
            chosen = rows
            if name == "other numbers":
                chosen = np.flatnonzero([a != b for a, b in zip(lines, queries[src], strict=True)])
            vectors = encoder.encode(lines)[chosen]
            _, ids = search_one(vectors, pools[tgt], 1)
            truth = whole[tgt][chosen]
            moved = (vectors * truth).sum(1).mean() - (whole[src][chosen] * truth).sum(1).mean()
            count = f" of {len(chosen)}" if len(chosen) < len(rows) else ""
            cells.append(f"{100 * (ids[:, 0] == chosen).mean():.2f}{count} ({moved:+.3f})")
        print(f"| {name} | " + " | ".join(cells) + " |")

    print("\n| the wrong copy has | " + " | ".join(f"{src} -> {tgt}" for src, tgt in pairs) + " |")
    print("|---|" + "---|" * len(pairs))
    for name in ("other numbers", "another name"):
        cells = []
        for src, tgt in pairs:
            rng = np.random.default_rng(2)
            if name == "other numbers":
                wrong = [other_numbers(line, rng) for line in queries[tgt]]
            else:
                wrong = list(other_names(queries[tgt], rng))
            chosen = np.flatnonzero([a != b for a, b in zip(wrong, queries[tgt], strict=True)])
            copies = encoder.encode([wrong[i] for i in chosen])
            true = (whole[src][chosen] * whole[tgt][chosen]).sum(1)
            false = (whole[src][chosen] * copies).sum(1)
            cells.append(
                f"{100 * (true > false).mean():.1f} of {len(chosen):,} ({(false - true).mean():+.3f})"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
