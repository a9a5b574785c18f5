"""Fit the prices of `bitextmine align` to documents aligned by hand, and report them cross-validated.

    python mine/fit_alignment.py FOLDER

FOLDER holds documents NAME.LANG with a gold alignment NAME.L1-L2.gold, as `bench_alignment.py real` reads them. An
alignment is a conditional random field whose potentials are the costs of alignment/costs.py: the prices that make the
gold likeliest are fitted by L-BFGS, once without each document, which is then aligned with them (all figures of the
table are of documents that had no part in the prices), and once with all, for the package. Where the gold has a link
that is too large for the search or crosses another one, any path through its sentences counts as right. Needs numba and
scipy; some minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numba
import numpy as np
from harness import parser, table
from scipy.optimize import minimize

from bitextmine.alignment.aligner import Aligner, around, centre_of, columns, missed_by_steps
from bitextmine.alignment.costs import Costs, Prices, level_of, of_steps
from bitextmine.alignment.evidence import PieceEvidence
from bitextmine.alignment.program import kinds
from bitextmine.alignment.windows import make_windows
from bitextmine.encoder import Encoder, load_encoder
from bitextmine.evaluation.alignment import AlignmentReport, Pair, read_alignments, score_alignments
from bitextmine.files.source import iter_lines

NAMES = {
    "vectors": ("far", "join", "length", "skip", "continued", "ending"),
    "pieces": ("far", "join", "length", "skip", "continued", "ending", "missed"),
}
STRENGTH = 0.5  # of the L2 penalty
NEAR = 3  # half the width of the band of steps, a little wider than that of the second search


@dataclass(frozen=True)
class Arcs:
    """The steps of a band, in the order of their first nodes: nodes `start`, `end` (arcs,), features (arcs, prices).

    right: the arcs of the gold.
    """

    start: np.ndarray
    end: np.ndarray
    features: np.ndarray
    right: np.ndarray
    nodes: int


@dataclass(frozen=True)
class Document:
    name: str
    gold: list[Pair]
    windows: list
    arcs: Arcs


def read_document(path: Path, encoder: Encoder, aligner: Aligner) -> Document:
    name, langs, _ = path.name.rsplit(".", 2)
    (gold,) = read_alignments(path)
    texts = [list(iter_lines(path.with_name(f"{name}.{lang}"))) for lang in langs.split("-")]
    windows = make_windows(encoder, texts, aligner.max_size - 1)
    return Document(name, gold, windows, arcs_of(windows, gold, aligner))


def arcs_of(windows: list, gold: list[Pair], aligner: Aligner) -> Arcs:
    """Return the steps of the band around the path that windows' vectors find, with the features of their prices."""
    src, tgt = windows
    n, m = len(src), len(tgt)
    costs = Costs(src, tgt, kinds(aligner.max_size))
    first = aligner.first(costs)
    level = level_of(first.path, of_steps(first.path, first.lattice, first.distances))
    band = around(centre_of(first.path), n, m, NEAR)
    distances = columns(first.lattice.band, band, first.distances)
    missed = missed_by_steps(aligner.evidence, src, tgt, costs, band)
    unit = Prices(far=0, join=0, length=0, skip=0)
    parts = [
        costs.lattice(
            band, np.nan_to_num(distances, posinf=0), replace(unit, **{name: 1.0}), level, missed
        ).cost
        for name in ("far", "join", "length", "continued", "ending", "missed")
    ]
    x, y = band.nodes(0, len(band.low))
    inside = (x >= 0) & (y >= 0) & (x <= n) & (y <= m)
    blocks, onesided = _gold(gold, n, m, aligner.max_size)
    links = {(min(s), min(t)): (len(s), len(t)) for s, t in gold if s and t}
    rows = []
    for k, (s, t) in enumerate(first.lattice.moves()):
        there = inside & (x + s <= n) & (y + t <= m)
        i, j = x[there], y[there]
        features = np.zeros((len(i), 7))
        if s and t:
            for column, part in zip((0, 1, 2, 4, 5, 6), parts, strict=True):
                features[:, column] = part[..., k][there]
            right = np.array([links.get(node) == (s, t) for node in zip(i.tolist(), j.tolist(), strict=True)])
        else:
            features[:, 3] = 1
            right = np.array([onesided[1 - s][node] for node in (i if s else j).tolist()])
        for x0, x1, y0, y1 in blocks:
            right |= (i >= x0) & (i + s <= x1) & (j >= y0) & (j + t <= y1)
        rows.append((i, j, i + s, j + t, features, right))
    i, j, i2, j2, features, right = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((i, i + j))
    start, end = i * (m + 1) + j, i2 * (m + 1) + j2
    return Arcs(start[order], end[order], features[order], right[order], (n + 1) * (m + 1))


def _gold(gold: list[Pair], n: int, m: int, largest: int) -> tuple[list[tuple[int, ...]], list[list[bool]]]:
    """Return the rectangles that any path may cross, and for each side the sentences without a partner."""
    blocks, alone, last = [], [[True] * n, [True] * m], (0, 0)
    for s, t in gold:
        if not s or not t:
            continue
        for side, numbers in zip(alone, (s, t), strict=True):
            for number in numbers:
                side[number] = False
        gaps = max(s) - min(s) + 1 > len(s) or max(t) - min(t) + 1 > len(t)
        crossing = min(s) < last[0] or min(t) < last[1]
        if crossing:
            sides = (*s, last[0] - 1), (*t, last[1] - 1)
            blocks.append(tuple(edge for side in sides for edge in (min(side), max(side) + 1)))
        elif gaps or len(s) + len(t) > largest:
            blocks.append((min(s), max(s) + 1, min(t), max(t) + 1))
        last = max(s) + 1, max(t) + 1
    return blocks, alone


@numba.njit(cache=True)
def marginals(start, end, cost, nodes):
    """Return the log partition function, and the probability of each arc."""
    ahead, behind = np.full(nodes, -np.inf), np.full(nodes, -np.inf)
    ahead[0] = behind[nodes - 1] = 0
    for e in range(len(start)):
        ahead[end[e]] = np.logaddexp(ahead[end[e]], ahead[start[e]] - cost[e])
    for e in range(len(start) - 1, -1, -1):
        behind[start[e]] = np.logaddexp(behind[start[e]], behind[end[e]] - cost[e])
    total = ahead[nodes - 1]
    return total, np.exp(ahead[start] + behind[end] - cost - total)


def fit(documents: list[Document], begin: np.ndarray) -> np.ndarray:
    """Return the first prices, as many as there are to begin with, that make the gold of the documents likeliest."""

    def loss(prices: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = STRENGTH * prices @ prices / 2, STRENGTH * prices
        for arcs in (document.arcs for document in documents):
            for sign, used in ((1, slice(None)), (-1, arcs.right)):
                features = arcs.features[used, : len(prices)]
                total, share = marginals(arcs.start[used], arcs.end[used], features @ prices, arcs.nodes)
                value += sign * total
                gradient = gradient - sign * (features.T @ share)
        return value, gradient

    return minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x


def main() -> None:
    command = parser(__doc__)
    command.add_argument("folder", type=Path)
    encoder = load_encoder("europe5")
    aligner, paths = (
        Aligner(evidence=PieceEvidence.of(encoder)),
        sorted(command.parse_args().folder.glob("*.gold")),
    )
    documents = [read_document(path, encoder, aligner) for path in paths]
    for kind, names in NAMES.items():
        print(f"\n{kind}\n")
        table(["left out", "strict / lax F1", *names], rows(kind, names, documents, aligner))


def rows(
    kind: str, names: Sequence[str], documents: list[Document], aligner: Aligner
) -> Iterator[list[object]]:
    """Yield F1 of each document with the prices of the others, and of all, with those prices."""
    found: list[list[Pair]] = []
    every = fit(documents, np.array([3.0, 3.0, 4.0, 6.0, 1.0, 1.0, 0.4])[: len(names)])
    for document in documents:
        prices = fit([other for other in documents if other is not document], every)
        chosen = Prices(**dict(zip(names, prices.tolist(), strict=True)))
        evidence = aligner.evidence if kind == "pieces" else None
        links = replace(aligner, evidence=evidence, **{kind: chosen}).align(*document.windows)
        found.append([(link.src, link.tgt) for link in links])
        yield [document.name, f1(score_alignments(found[-1:], [document.gold])), *prices.tolist()]
    report = score_alignments(found, [document.gold for document in documents])
    yield ["each with the prices of the others; prices of all", f1(report), *every.tolist()]


def f1(report: AlignmentReport) -> str:
    return f"{100 * report.strict.f1:.1f} / {100 * report.lax.f1:.1f}"


if __name__ == "__main__":
    main()
