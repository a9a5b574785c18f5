"""Fit the prices of `bitextmine align` to documents aligned by hand, and report them cross-validated.

    python mine/fit_alignment.py FOLDER

FOLDER holds documents NAME.LANG with a gold alignment NAME.L1-L2.gold, as `bench_alignment.py real` reads them. An
alignment is a conditional random field whose potentials are the costs of alignment/costs.py: the prices that make the
gold likeliest are fitted by L-BFGS, once without each document, which is then aligned with them (all figures of the
table are of documents that had no part in the prices), and once with all, for the package: `VECTORS` and `PIECES` of
alignment/aligner.py. Where the gold has a link that is too large for the search or crosses another one, any path
through its sentences counts as right. Needs numba and scipy; some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from bench_alignment import SIZES, read_gold, scores
from harness import parser, table
from scipy.optimize import minimize

from bitextmine.alignment import aligner
from bitextmine.alignment.aligner import Aligner, around, centre_of, columns, missed_by_steps
from bitextmine.alignment.costs import Costs, Prices, level_of, of_steps
from bitextmine.alignment.evidence import PieceEvidence
from bitextmine.alignment.lattice import kinds
from bitextmine.alignment.windows import make_windows
from bitextmine.encoder import load_encoder
from bitextmine.evaluation.alignment import Pair

try:
    import numba
except ImportError:
    sys.exit("mine/fit_alignment.py needs numba: pip install numba")

NAMES = ("far", "join", "length", "skip", "continued", "ending", "missed")  # the last one with pieces only
BEGIN = np.array([3.0, 3.0, 4.0, 6.0, 1.0, 1.0, 0.4])
STRENGTH = 0.5  # of the L2 penalty
NEAR = 3  # half the width of the band of steps, a little wider than that of the second search


@dataclass(frozen=True)
class Document:
    """A document, and the steps of a band around its path, in the order of their first nodes.

    Steps lead from the nodes `start` to `end` (steps,) and have features (steps, prices); `right` tells those of the
    gold.
    """

    name: str
    gold: list[Pair]
    windows: list
    start: np.ndarray
    end: np.ndarray
    features: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, name: str, gold: list[Pair], windows: list, align: Aligner) -> Document:
        src, tgt = windows
        n, m = len(src), len(tgt)
        costs = Costs(src, tgt, kinds(align.max_size))
        first = align.first(costs)
        level = level_of(first.path, of_steps(first.path, first.lattice, first.distances))
        band = around(centre_of(first.path), n, m, NEAR)
        distances = np.nan_to_num(columns(first.lattice.band, band, first.distances), posinf=0)
        missed = missed_by_steps(align.evidence, src, tgt, costs, band)
        free = Prices(far=0, join=0, length=0, skip=0)
        x, y = (nodes[..., None] for nodes in band.nodes(0, len(band.low)))
        s, t = np.array(first.lattice.moves()).T
        there = (x >= 0) & (y >= 0) & (x + s <= n) & (y + t <= m)
        features = np.zeros((*there.shape, len(NAMES)))
        for column, price in enumerate(NAMES):
            cost = costs.lattice(band, distances, replace(free, **{price: 1.0}), level, missed).cost
            features[..., : len(costs.steps), column] = cost
        features[..., len(costs.steps) :, NAMES.index("skip")] = 1
        x, y, s, t = (np.broadcast_to(part, there.shape)[there] for part in (x, y, s, t))
        order = np.lexsort((x, x + y))
        x, y, s, t = x[order], y[order], s[order], t[order]
        right = in_gold(gold, align.max_size, x, y, s, t)
        return cls(
            name, gold, windows, x * (m + 1) + y, (x + s) * (m + 1) + y + t, features[there][order], right
        )


def in_gold(gold: list[Pair], largest: int, *steps: np.ndarray) -> np.ndarray:
    """Return whether each step (from sentences x and y on, s and t of them) is one of the gold."""
    linked = [(src, tgt) for src, tgt in gold if src and tgt]
    links = {(min(src), min(tgt), len(src), len(tgt)) for src, tgt in linked}
    partners = [{number for numbers in side for number in numbers} for side in zip(*linked, strict=True)]
    right = np.array(
        [
            (x not in partners[0] if t == 0 else y not in partners[1])
            if s * t == 0
            else (x, y, s, t) in links
            for x, y, s, t in zip(*(part.tolist() for part in steps), strict=True)
        ]
    )
    x, y, s, t = steps
    last = (0, 0)
    for sides in linked:
        if any(min(side) < end for side, end in zip(sides, last, strict=True)):  # crosses the one before
            block = [(*side, end - 1) for side, end in zip(sides, last, strict=True)]
        else:
            block = list(sides)
        last = max(sides[0]) + 1, max(sides[1]) + 1
        gaps = any(max(side) - min(side) + 1 > len(side) for side in sides)
        if block != list(sides) or gaps or sum(map(len, sides)) > largest:
            (x0, x1), (y0, y1) = ((min(side), max(side) + 1) for side in block)
            right |= (x >= x0) & (x + s <= x1) & (y >= y0) & (y + t <= y1)
    return right


@numba.njit(cache=True)
def marginals(start, end, cost):
    """Return the log partition function, and the probability of each step."""
    ahead, behind = np.full(end.max() + 1, -np.inf), np.full(end.max() + 1, -np.inf)
    ahead[0] = behind[-1] = 0
    for e in range(len(start)):
        ahead[end[e]] = np.logaddexp(ahead[end[e]], ahead[start[e]] - cost[e])
    for e in range(len(start) - 1, -1, -1):
        behind[start[e]] = np.logaddexp(behind[start[e]], behind[end[e]] - cost[e])
    return ahead[-1], np.exp(ahead[start] + behind[end] - cost - ahead[-1])


def fit(documents: list[Document], begin: np.ndarray) -> np.ndarray:
    """Return the first prices, as many as there are to begin with, that make the gold of the documents likeliest."""

    def loss(prices: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = STRENGTH * prices @ prices / 2, STRENGTH * prices
        for document in documents:
            for sign, used in ((1, slice(None)), (-1, document.right)):
                features = document.features[used, : len(prices)]
                total, share = marginals(document.start[used], document.end[used], features @ prices)
                value += sign * total
                gradient = gradient - sign * (features.T @ share)
        return value, gradient

    return minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x


def main() -> None:
    command = parser(__doc__)
    command.add_argument("folder", type=Path)
    folder = command.parse_args().folder
    encoder = load_encoder("europe5")
    evidence = PieceEvidence.of(encoder)
    documents = [
        Document.of(
            name, made.gold, make_windows(encoder, [made.src, made.tgt], SIZES), Aligner(evidence=evidence)
        )
        for name, made in read_gold(folder)
    ]
    for constant, names, align in (
        ("VECTORS", NAMES[:-1], Aligner()),
        ("PIECES", NAMES, Aligner(evidence=evidence)),
    ):
        print(f"\n{constant}\n")
        shipped = getattr(aligner, constant)
        table(["left out", "strict / lax F1", *names], rows(constant, names, documents, align))
        setattr(aligner, constant, shipped)


def rows(
    constant: str, names: Sequence[str], documents: list[Document], align: Aligner
) -> Iterator[list[object]]:
    """Yield F1 of each document with the prices of the others, and of all, with those prices."""
    found: list[list[Pair]] = []
    every = fit(documents, BEGIN[: len(names)])
    for document in documents:
        prices = fit([other for other in documents if other is not document], every)
        setattr(aligner, constant, Prices(**dict(zip(names, prices.tolist(), strict=True))))
        found.append([(link.src, link.tgt) for link in align.align(*document.windows)])
        yield [document.name, scores(found[-1:], [document.gold]), *prices.tolist()]
    report = scores(found, [document.gold for document in documents])
    yield ["each with the prices of the others; prices of all", report, *every.tolist()]


if __name__ == "__main__":
    main()
