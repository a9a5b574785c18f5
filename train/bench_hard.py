"""Hard negatives on FLORES: does an encoder tell a sentence from one with another number, another name, or a negation?

    python train/bench_hard.py --data FOLDER --model world56
    python train/bench_hard.py --data FOLDER --model world56 --second use=PYTHON --only de,es,fr

FOLDER holds flores/devtest.XX.txt[.zst]. Of each English sentence up to three variants are made by rule:

    number    one of its numbers, in digits, becomes another of as many digits
    name      one capitalised word, not the first, becomes one of another sentence
    negation  the first "not" goes, or the first auxiliary verb gets one

Each sentence of another language is looked up among all originals and all variants, by cosine. The error is the share
for which the original is not the nearest; a column per kind counts the sentences that take a variant of that kind for
the translation, of those that have one. No rule of these is used in training.

--second adds the errors by the cosines of a second encoder, and by the sum of both, each in standard deviations. It is
what --model takes, or a package in the environment of another Python (mine/peers.py).
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bitextmine.encoder import load_encoder

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from bench_public import NAMES, parallel, units
from harness import parser, table
from peers import peer_encoder

KINDS = ("number", "name", "negation")
NUMBER = re.compile(r"(?<![\w.,])\d+(?![\w]|[.,]\d)")
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
NOT_NAMES = re.compile(
    "January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|Wednesday|"
    "Thursday|Friday|Saturday|Sunday|The|This|That|These|Those|But|And|They|There|When|While|However"
)
NEGATED = re.compile(r"\b(?:(can)not|(\w+)n[’']t|(\w+) not)\b")
AUXILIARY = re.compile(
    r"\b(is|are|was|were|will|would|can|could|should|may|might|must|has been|have been|had been)\b(?! not)"
)


def variants(lines: list[str]) -> list[tuple[str, int, str]]:
    """Return the kind, the line and the text of each variant."""
    rng = random.Random(1)
    names = sorted({one[0] for line in lines for one in names_in(line)})
    made = []
    for i, line in enumerate(lines):
        texts = other_number(line, rng), other_name(line, names, rng), other_sense(line)
        made += [(kind, i, text) for kind, text in zip(KINDS, texts, strict=True) if text != line]
    return made


def other_number(line: str, rng: random.Random) -> str:
    found = list(NUMBER.finditer(line))
    if not found:
        return line
    one = rng.choice(found)
    old, least = int(one[0]), 10 ** (len(one[0]) - 1) if len(one[0]) > 1 else 2
    century = old // 100 * 100  # years stay years of theirs
    choices = range(century, century + 100) if len(one[0]) == 4 else range(least, least * 10)
    while (new := rng.choice(choices)) == old:
        pass
    return f"{line[: one.start()]}{new}{line[one.end() :]}"


def names_in(line: str) -> list[re.Match[str]]:
    return [one for one in NAME.finditer(line) if not NOT_NAMES.fullmatch(one[0])]


def other_name(line: str, names: list[str], rng: random.Random) -> str:
    found = names_in(line)
    if not found:
        return line
    one = rng.choice(found)
    while (new := rng.choice(names)) in line:
        pass
    return f"{line[: one.start()]}{new}{line[one.end() :]}"


def other_sense(line: str) -> str:
    if NEGATED.search(line):
        return NEGATED.sub(
            lambda m: {"wo": "will", "ca": "can"}.get(m[2] or "", m[1] or m[2] or m[3]), line, count=1
        )
    return AUXILIARY.sub(negated, line, count=1)


def negated(found: re.Match[str]) -> str:
    first, *rest = found[0].split(" ")
    return " ".join(["cannot" if first == "can" else f"{first} not", *rest])


def errors(cosines: np.ndarray, made: list[tuple[str, int, str]]) -> list[float]:
    """Return the error in per cent, and per kind the share of lines with a variant that take it.

    cosines: (n, n + variants), those of the originals first.
    """
    first, count = cosines.argmax(axis=1), len(cosines)
    found = [100 * float((first != np.arange(count)).mean())]
    for kind in KINDS:
        rows = [(i, count + n) for n, (its, i, _) in enumerate(made) if its == kind]
        found.append(100 * float(np.mean([first[i] == n for i, n in rows])))
    return found


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--data", type=Path, required=True, help="folder of the benchmarks")
    command.add_argument("--model", default="default", help="encoder, as for the other commands (default)")
    command.add_argument("--second", metavar="NAME[=PYTHON]", help="second encoder")
    command.add_argument("--only", metavar="LANG,...", help="these languages")
    args = command.parse_args()
    wanted = [args.model, *([peer_encoder(args.second)[1]] if args.second else [])]
    encoders = [load_encoder(encoder) for encoder in wanted]
    sides = parallel(args.data, "FLORES")
    made = variants(sides["en"])
    pool = [*sides["en"], *(text for *_, text in made)]
    counts = ", ".join(f"{sum(its == kind for its, *_ in made)} {kind}" for kind in KINDS)
    print(f"{len(sides['en'])} sentences, variants: {counts}\n")
    pools = [units(encoder, pool) for encoder in encoders]

    def rows() -> Iterator[list[object]]:
        found = {}
        for lang in filter(sides.__contains__, args.only.split(",") if args.only else NAMES):
            both = zip(encoders, pools, strict=True)
            cosines = [units(encoder, sides[lang]) @ rows.T for encoder, rows in both]
            found[lang] = errors(cosines[0], made)
            if args.second:
                total = sum(of_one / of_one.std() for of_one in cosines)
                found[lang] += [errors(cosines[1], made)[0], errors(total, made)[0]]
            yield [lang, *found[lang]]
        for name, some in (("de es fr it", {"de", "es", "fr", "it"}), ("mean", found.keys())):
            if some <= found.keys():
                yield [name, *np.mean([found[lang] for lang in some], axis=0).tolist()]

    table(["language", "error", *KINDS, *(["second", "both"] if args.second else [])], rows(), digits=1)


if __name__ == "__main__":
    main()
