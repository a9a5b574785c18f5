"""The dynamic program against an oracle, compiled against NumPy, banded against whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.alignment.aligner import LOWEST, Aligner
from bitextmine.alignment.costs import Costs, Prices
from bitextmine.alignment.evidence import REACH, PieceEvidence, missed_names
from bitextmine.alignment.lattice import Band, Lattice, cheapest, kinds, marginals
from bitextmine.alignment.windows import Form, Windows
from bitextmine.compiled import library
from bitextmine.encoder.pieces import Pieces

from . import oracle


def side(rng, rows, noise, sizes, lengths=None):
    lengths = rng.integers(20, 200, len(rows)) if lengths is None else lengths
    rows = rows + noise * rng.normal(size=rows.shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    windows = Windows(rows.astype(np.float32), sizes, lengths)
    ending = rng.choice(3, size=len(rows), p=(0.1, 0.8, 0.1)).astype(np.int8)
    nothing = Pieces.from_lists([[]] * len(rows))
    windows.form = Form(rng.random(len(rows)) < 0.2, np.zeros(len(rows), dtype=bool), ending, nothing)
    return windows


def made(seed, n, drop=0.1, noise=0.3, dim=64, sizes=5):
    """Two sides of about n sentences, from each of which some are left out, and the numbers of those that are in."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    kept = [np.flatnonzero(rng.random(n) >= drop) for _ in range(2)]
    lengths = rng.integers(20, 200, n)
    return (*(side(rng, rows[k], noise / dim**0.5, sizes, lengths[k]) for k in kept), *kept)


def steps_of(path):
    return np.stack([path.x[:-1], np.diff(path.x), path.y[:-1], np.diff(path.y)], axis=1).tolist()


PRICES = Prices(far=2.0, join=0.5, length=1.5, skip=2.5, continued=0.4, ending=0.3)


@pytest.mark.parametrize("largest", [2, 3, 4, 6])
@pytest.mark.parametrize("seed", range(4))
def test_the_way_is_the_cheapest_there_is(seed, largest):
    src, tgt, *_ = made(seed, 4 + 2 * seed, drop=0.3)
    if not len(src) or not len(tgt):
        pytest.skip("empty")
    costs = Costs(src, tgt, kinds(largest))
    band = Band.full(len(src), len(tgt))
    path = cheapest(costs.lattice(band, costs.distances(band), PRICES, 0.4))
    best = oracle.least(src, tgt, largest, PRICES, 0.4)
    assert oracle.total(src, tgt, steps_of(path), PRICES, 0.4) == pytest.approx(best, rel=1e-4, abs=1e-4)
    assert all(s + t <= largest for _, s, _, t in steps_of(path))


@pytest.mark.skipif(library("alignment") is None, reason="not compiled")
@pytest.mark.parametrize("largest", [2, 6])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 9), (40, 7), (130, 120), (300, 2)])
def test_compiled_and_not_agree_to_the_bit(lengths, largest):
    rng = np.random.default_rng(3)
    n, m = lengths
    src, tgt = (side(rng, rng.normal(size=(size, 8)), 0, 5) for size in lengths)
    costs = Costs(src, tgt, kinds(largest))
    centre = np.round(np.linspace(0, m, n + m + 1)).astype(np.int64)
    for band in (Band.full(n, m), Band(n, m, centre - 6, 13)):
        lattice = costs.lattice(band, costs.distances(band), PRICES, 0.9)
        fast, slow = (cheapest(lattice, compiled=c) for c in (True, False))
        assert np.array_equal(fast.x, slow.x) and np.array_equal(fast.y, slow.y)
        assert fast.on_edge == slow.on_edge


@pytest.mark.parametrize(("n", "m", "largest"), [(4, 3, 3), (1, 5, 4), (3, 3, 6), (2, 2, 2)])
def test_how_likely_each_step_is(n, m, largest):
    """In the band of all nodes, and in one that leaves some out: prices there are infinite."""
    rng, steps = np.random.default_rng(n), kinds(largest)
    narrow = Band(
        n, m, np.clip(np.round(np.arange(n + m + 1) * m / (n + m)).astype(np.int64) - 1, -1, m - 1), 3
    )
    for band in (Band.full(n, m), narrow):
        x, y = band.nodes(0, n + m + 1)
        cost = 3 * rng.random((*x.shape, len(steps))).astype(np.float32)
        for k, (s, t) in enumerate(steps):
            cost[(x < 0) | (y < 0) | (x + s > n) | (y + t > m), k] = np.inf
        lattice = Lattice(band, steps, cost, 1.5)
        nodes = {(int(i), int(j)): at for at in np.ndindex(x.shape) for i, j in [(x[at], y[at])]}

        def price(step, nodes=nodes, lattice=lattice):
            i, s, j, t = step
            if (i, j) not in nodes or (i + s, j + t) not in nodes:
                return np.inf
            return lattice.cost[nodes[i, j]][steps.index((s, t))] if s and t else lattice.skip

        expected = oracle.marginals(n, m, lattice.moves(), price)
        found = marginals(lattice)
        for (i, j), at in nodes.items():
            for k, (s, t) in enumerate(steps):
                assert found[at][k] == pytest.approx(expected.get((i, s, j, t), 0), abs=1e-6)


class Rows:
    """A network of made-up vectors of pieces."""

    def __init__(self, rng, count):
        self.rows = rng.integers(-127, 128, (count, 16)).astype(np.int8)
        self.norms = rng.random(count).astype(np.float32) + 0.2

    def piece_rows(self):
        return self.rows, self.norms


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_missed_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    network = Rows(rng, 40)
    pieces = [
        Pieces.from_lists([rng.integers(0, 40, rng.integers(0, 9)).tolist() for _ in range(count)])
        for count in (12, 15)
    ]
    evidence = PieceEvidence(network)
    sides = [evidence.side(part) for part in pieces]
    # Each sentence with consecutive ones of the other document, not all of them.
    pairs = np.array([(i, j) for i in range(12) for j in range(15) if abs(i - j) < 6])
    found = evidence.missed(*pieces, pairs, 4)
    unit = network.rows / np.linalg.norm(network.rows, axis=1, keepdims=True)
    for own, other, columns, table in (
        (sides[0], sides[1], pairs, found[0]),
        (sides[1], sides[0], pairs[:, ::-1], found[1]),
    ):
        for (i, j), row in zip(columns.tolist(), table.tolist(), strict=True):
            partners = {b for a, b in columns.tolist() if a == i}
            ids = own.pieces.ids[slice(*own.pieces.offsets[i : i + 2])]
            best = np.zeros((len(ids), len(other.pieces)))
            for b in partners:
                there = other.pieces.ids[slice(*other.pieces.offsets[b : b + 2])]
                if len(there) and len(ids):
                    best[:, b] = np.clip((unit[ids] @ unit[there].T).max(axis=1), 0, 1)
            weight = network.norms[ids] / network.norms.mean()
            for size, value in enumerate(row, 1):
                wanted = oracle.missed(best, weight, range(j, j + size), REACH)
                assert value == pytest.approx(wanted, abs=0.02 * max(1, len(ids)))


@pytest.mark.parametrize("seed", range(3))
def test_the_names_missed_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    lists = [
        [sorted(set(rng.integers(0, 6, rng.integers(0, 4)).tolist())) for _ in range(count)]
        for count in (12, 15)
    ]
    pairs = np.array([(i, j) for i in range(12) for j in range(15) if abs(i - j) < 6])
    found = missed_names(*map(Pieces.from_lists, lists), pairs, 4)
    for own, other, columns, table in ((*lists, pairs, found[0]), (*lists[::-1], pairs[:, ::-1], found[1])):
        for (i, j), row in zip(columns.tolist(), table.tolist(), strict=True):
            partners = {b for a, b in columns.tolist() if a == i}
            best = [[b in partners and name in there for b, there in enumerate(other)] for name in own[i]]
            for size, value in enumerate(row, 1):
                assert value == oracle.missed(best, [2] * len(best), range(j, j + size), REACH)


def test_marks_that_only_one_document_has_cost_nothing():
    src, tgt, *_ = made(4, 30)
    bare = tgt.form._replace(ending=np.zeros(len(tgt), dtype=np.int8))
    tgt.form = bare
    band = Band.full(len(src), len(tgt))
    costs = Costs(src, tgt, kinds(3))
    distances = costs.distances(band)
    free = costs.lattice(band, distances, replace(PRICES, ending=0.0), 0.5)
    assert np.array_equal(costs.lattice(band, distances, PRICES, 0.5).cost, free.cost)


@pytest.mark.parametrize("seed", range(3))
def test_the_band_loses_nothing(seed):
    """Neither from a coarse beginning, nor with a long stretch left out, far wider than the band."""
    src, tgt, *_ = made(seed, 900)
    rows = tgt.vectors(1, 0, len(tgt))
    tgt = Windows(np.delete(rows, slice(200, 500), axis=0), 5, np.delete(tgt.characters, slice(200, 500)))
    whole = Aligner(whole=1 << 30).align(src, tgt)
    banded = Aligner(whole=0, dense=10_000).align(src, tgt)
    assert [link[:2] for link in whole] == [link[:2] for link in banded]


def test_what_belongs_together_is_found():
    src, tgt, a, b = made(7, 2000, drop=0.05, noise=0.5)
    found = Aligner().align(src, tgt)
    place = {row: j for j, row in enumerate(b.tolist())}
    true = {(i, place[row]) for i, row in enumerate(a.tolist()) if row in place}
    pairs = {(link.src[0], link.tgt[0]) for link in found if len(link.src) == len(link.tgt) == 1}
    assert len(pairs & true) > 0.97 * len(true)
    assert len(pairs - true) < 0.01 * len(true)


def check(links, n, m, largest):
    """Every sentence in one link, in order, and no link too large."""
    assert [i for link in links for i in link.src] == list(range(n))
    assert [j for link in links for j in link.tgt] == list(range(m))
    for link in links:
        sizes = len(link.src), len(link.tgt)
        assert sum(sizes) == 1 or (min(sizes) and sum(sizes) <= largest)
        assert (link.score == LOWEST) == (min(sizes) == 0)
        assert np.isfinite(link.score)


@settings(max_examples=60)
@given(
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(2, 8),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 200, 1 << 30]),
    st.booleans(),
)
def test_monotone_complete_and_no_line_twice(n, m, largest, seed, whole, few):
    """few: of a handful of vectors, equal ones and zeros among them."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(size, 5)).astype(np.float32) for size in (n, m))
    if few:
        stock = np.concatenate([np.zeros((1, 5)), np.eye(5)]).astype(np.float32)
        x, y = (stock[rng.integers(0, 6, size)] for size in (n, m))
    for rows in (x, y):
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    aligner = Aligner(largest, whole=whole, dense=100, radius=3)
    found = aligner.align(Windows(x, largest), Windows(y, largest))
    check(found, n, m, largest)
