"""Strict and lax precision, recall and F1 of alignments against gold, as Vecalign counts them (Thompson, Koehn 2019).

A found link is strictly correct if the gold has the same one, and laxly if it shares a source sentence with a gold link
and a target sentence with a gold link of that source sentence. Precision is over all found links, one-sided ones too;
recall is over the gold links that have both sides.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.report import RESAMPLES, SEED, FileName, Report, bootstrap, percent
from bitextmine.files.source import Source
from bitextmine.signature import signature

Pair = tuple[tuple[int, ...], tuple[int, ...]]

# Numbers have up to 18 digits, which fit in 64 bits.
_LIST = r"\[((?![^\]]*\d{19})[\d,\s]*)\]"
_VECALIGN = re.compile(rf"\s*{_LIST}\s*:\s*{_LIST}\s*(:.*)?")
_NUMBERS = re.compile(r"(\d{1,18}(,\d{1,18})*)?")


@dataclass(frozen=True)
class Shares:
    """Precision, recall and F1 from 0 to 1, with the 95% bootstrap interval of F1 (links resampled)."""

    precision: float
    recall: float
    f1: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class AlignmentReport(Report):
    """F1 of alignments, and the number of document pairs and of links, one-sided ones too."""

    kind: ClassVar[str] = "alignment evaluation"

    strict: Shares
    lax: Shares
    documents: int
    found: int
    gold: int

    def to_table(self) -> str:
        """Return percentages, aligned for a terminal."""
        return self._table(
            ["", "precision", "recall", "F1", "low", "high"],
            [
                [name, *percent(s.precision, s.recall, s.f1, s.low, s.high)]
                for name, s in (("strict", self.strict), ("lax", self.lax))
            ],
            f"{counted(self.found, 'link')}, {self.gold:,} in the gold; low and high: 95% interval of F1",
        )


def score_alignments(found: Sequence[Iterable[Pair]], gold: Sequence[Iterable[Pair]]) -> AlignmentReport:
    """Compare alignments with the gold of the same documents, counts summed over the documents.

    A link is (source sentences, target sentences), with numbers of the same origin in both; links of two empty sides
    and repeated links do not count.
    """
    test = [{pair for pair in pairs if pair[0] or pair[1]} for pairs in found]
    true = [{pair for pair in pairs if pair[0] or pair[1]} for pairs in gold]
    both_ways = [
        (_counts(t, g), _counts(_two_sided(g), _two_sided(t))) for t, g in zip(test, true, strict=True)
    ]
    hits, wanted = map(np.concatenate, zip((np.zeros((0, 3), np.int64),) * 2, *both_ways, strict=True))
    shares = []
    for column in (0, 1):
        both = [hits[:, [column, 2]], wanted[:, [column, 2]]]
        p, r = (float(part[:, 0].sum() / max(1, len(part))) for part in both)
        f1 = float(_f1([part.sum(axis=0, keepdims=True) for part in both])[0])
        low, high = bootstrap(both, _f1)
        shares.append(Shares(p, r, f1, low, high))
    notes: tuple[str, ...] = ()
    if len(hits) and len(wanted) and not hits[:, 1].any():
        notes = ("no link shares a sentence with the gold: are these alignments of the same documents?",)
    return AlignmentReport(
        *(shares[0], shares[1], len(found), len(hits), sum(map(len, true))),
        signature=signature(task="alignment", documents=len(found), seed=SEED, resamples=RESAMPLES),
        notes=notes,
    )


def _two_sided(pairs: Iterable[Pair]) -> set[Pair]:
    return {pair for pair in pairs if pair[0] and pair[1]}


def _counts(test: set[Pair], gold: set[Pair]) -> NDArray[np.int64]:
    """Return (links, 3) int64 for the links of `test`: 1 if strictly correct, 1 if laxly, and 1."""
    partners: dict[int, set[int]] = defaultdict(set)
    for src, tgt in gold:
        for i in src:
            partners[i].update(tgt)
    rows = []
    for pair in sorted(test):
        strict = pair in gold
        lax = strict or any(not partners[i].isdisjoint(pair[1]) for i in pair[0] if i in partners)
        rows.append((strict, lax, 1))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _f1(sums: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    p, r = (part[:, 0] / np.maximum(1, part[:, 1]) for part in sums)
    return np.asarray(2 * p * r / np.where(p + r > 0, p + r, 1))


def read_alignments(path: FileName) -> list[list[Pair]]:
    """Read the links of each document in a file, as numbers of sentences from 0.

    A file has Vecalign's format ([0, 1]:[2], a cost may follow), with blank lines between documents, or is the TSV of
    'align --ids' (score, source lines, target lines from 1, ...). There is at least one document, perhaps empty.
    BitextmineError names a malformed line.
    """
    source = Source.of(path)
    documents: list[list[Pair]] = [[]]
    for number, line in enumerate(source.lines(), 1):
        pairs = documents[-1]
        if not line.strip():
            if pairs:
                documents.append([])
            continue
        if match := _VECALIGN.fullmatch(line):
            pairs.append((_numbers(match[1], 0), _numbers(match[2], 0)))
            continue
        cells = line.split("\t")
        if len(cells) == 6:
            raise BitextmineError(
                f"{source}: line {number}: six columns, as of several documents; score the alignment of one at a time"
            )
        if len(cells) < 3 or not (_NUMBERS.fullmatch(cells[1]) and _NUMBERS.fullmatch(cells[2])):
            raise BitextmineError(
                f"{source}: line {number}: {line[:60]!r} is no link; expected [0, 1]:[2] (sentences from 0), or the "
                "output of 'align --ids'"
            )
        pairs.append((_numbers(cells[1], 1), _numbers(cells[2], 1)))
    return documents if documents[-1] or len(documents) == 1 else documents[:-1]


def _numbers(text: str, first: int) -> tuple[int, ...]:
    return tuple(int(i) - first for i in text.replace(",", " ").split())


def evaluate_alignment(found: Sequence[FileName], gold: Sequence[FileName]) -> AlignmentReport:
    """Score alignments in files (`read_alignments`), each against its gold."""
    if len(found) != len(gold):
        raise UsageError(
            f"{len(found)} alignments and {len(gold)} --gold; give one gold for each, in the same order"
        )
    sides = [[Source.of(path) for path in paths] for paths in (found, gold)]
    if sum(file.is_standard for files in sides for file in files) > 1:
        raise UsageError("only one of the files can be standard input")
    test: list[list[Pair]] = []
    true: list[list[Pair]] = []
    for alignment, standard in zip(*sides, strict=True):
        documents, right = read_alignments(alignment), read_alignments(standard)
        if not any(map(_two_sided, right)):
            raise BitextmineError(f"{standard}: no two-sided link; is this the gold?")
        if len(documents) != len(right):
            raise BitextmineError(
                f"{alignment}: {len(documents)} documents, with blank lines between them, and "
                f"{standard} has {len(right)}; give the same documents in the same order"
            )
        test += documents
        true += right
    return score_alignments(test, true)
