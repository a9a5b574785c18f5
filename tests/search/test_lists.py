import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitextmine.run import Run
from bitextmine.search import indexed as both
from bitextmine.search.exact import search_both
from bitextmine.search.indexed import Indexed, search_both_indexed
from bitextmine.search.lists import Lists, find_centres, nearest_centre, queries_by_list, search_lists
from bitextmine.search.options import SearchOptions
from bitextmine.search.rows import VectorRows

from ..search import oracle
from .conftest import build_index


def parted(vectors, centres):
    of = nearest_centre(vectors, centres)
    order = np.argsort(of, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(centres)))])
    return of, Lists(order, bounds, centres, lambda i: vectors[order[bounds[i] : bounds[i + 1]]])


@settings(max_examples=40)
@given(
    st.integers(1, 80),
    st.integers(8, 120),
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_the_best_among_the_pairs_that_the_lists_bring_together(n, m, probes, k, threads, seed):
    rng = np.random.default_rng(seed)
    coarse = seed % 3 == 0  # many ties
    x, y = (
        oracle.corpus(rng, n, 16, near=0.3, coarse=coarse),
        oracle.corpus(rng, m, 16, near=0.3, coarse=coarse),
    )
    centres = find_centres(y, 8, seed=1, rounds=2)
    of, lists = parted(y, centres)
    rows = VectorRows(x, x.dtype)
    fwd, bwd = search_lists(rows, lists, probes, k, Run(memory=1, threads=threads))
    at, begins = queries_by_list(x, centres, probes, SearchOptions())
    near = np.zeros((n, 8), dtype=bool)
    for number in range(8):
        near[at[begins[number] : begins[number + 1]], number] = True
    assert (near.sum(axis=1) == probes).all()
    sims = np.where(near[:, of], oracle.similarities(x, y), -np.inf)
    for best, table in ((fwd, sims), (bwd, sims.T[lists.order])):
        for i, row in enumerate(table):
            want = sorted((-s, j) for j, s in enumerate(row) if s > -np.inf)[:k]
            assert best.sim[i].tolist() == [-s for s, _ in want] + [-np.inf] * (k - len(want))
            found = best.id[i, : len(want)].tolist()
            assert [row[j] for j in found] == [-s for s, _ in want]
            assert len(set(found)) == len(found)
            if best is bwd:
                assert found == [j for _, j in want]
            assert (best.id[i, len(want) :] == -1).all()


def test_blocks_and_threads_change_nothing(way, monkeypatch):
    for name, rows in (("_LEAST_ROWS", 7), ("_AT_ONCE", 5)):
        monkeypatch.setattr(f"bitextmine.search.lists.{name}", rows)
    rng = np.random.default_rng(3)
    x, y = oracle.corpus(rng, 150, 24, coarse=True), oracle.corpus(rng, 200, 24, coarse=True)
    centres = find_centres(y, 9, seed=1)
    lists = parted(y, centres)[1]
    results = []
    for memory, threads in ((1 << 30, 1), (1, 1), (1, 3), (1 << 30, 2)):
        seen: list[int] = []
        run = Run(memory=memory, threads=threads)
        fwd, bwd = search_lists(VectorRows(x, x.dtype), lists, 4, 3, run, seen.append)
        assert sum(seen) == 150
        results.append(b"".join(a.tobytes() for a in (fwd.sim, fwd.id, bwd.sim, bwd.id)))
    assert len(set(results)) == 1


def test_all_lists_are_exact_search(way, monkeypatch):
    monkeypatch.setattr(both, "TARGET", 1.0)
    rng = np.random.default_rng(4)
    x, y = oracle.corpus(rng, 300, 32, 0.2, 0.05), oracle.corpus(rng, 260, 32, 0.2)
    sides = Indexed(x, build_index(x, "ivf")), Indexed(y, build_index(y, "ivf"))
    got, recalls = search_both_indexed(*sides, 4, Run())
    want = search_both(x, y, 4)
    some = (x != 0).any(axis=1)
    for name, rows in (("fwd_sim", some), ("bwd_sim", np.ones(len(y), dtype=bool))):
        found, true = getattr(got, name), getattr(want, name)
        assert (found[rows, 0] == true[rows, 0]).all()
    assert [recall.at_1 for recall in recalls] == [1.0, 1.0]


@pytest.mark.parametrize(
    "kinds", [("IVF8,SQfp16", "IVF8,SQ8"), ("IVF8,PQ8x4", "ivf"), ("flat", "flat"), ("flat", "ivf")]
)
def test_both_directions_are_what_either_index_finds(kinds):
    rng = np.random.default_rng(5)
    x = oracle.vectors(rng, 900, 32)
    y = oracle.vectors(rng, 800, 32)
    y[:400] = (x[:400] + 0.05 * rng.standard_normal((400, 32))).astype(np.float16)
    seen: list[int] = []
    sides = Indexed(x, build_index(x, kinds[0])), Indexed(y, build_index(y, kinds[1]))
    got, recalls = search_both_indexed(*sides, 4, Run(), progress=seen.append)
    want = search_both(x, y, 4)
    assert sum(seen) == 1700
    assert (got.fwd_id[:400, 0] == np.arange(400)).all()
    assert (got.bwd_id[:400, 0] == np.arange(400)).all()
    for sim, ids, table in (
        (got.fwd_sim, got.fwd_id, oracle.similarities(x, y)),
        (got.bwd_sim, got.bwd_id, oracle.similarities(x, y).T),
    ):
        there = ids >= 0
        assert (sim[there] == np.take_along_axis(table, np.maximum(ids, 0), axis=1)[there]).all()
        assert all(len(set(row[row >= 0].tolist())) == (row >= 0).sum() for row in ids)
        assert (np.diff(np.where(there, sim, -2), axis=1) <= 0).all()
    if kinds[0] != "flat":
        assert all(recall.at_1 >= 0.97 for recall in recalls)
        assert (got.fwd_id[:, 0] == want.fwd_id[:, 0]).mean() >= 0.97
        assert (got.bwd_id[:, 0] == want.bwd_id[:, 0]).mean() >= 0.97


@pytest.mark.parametrize("kind", ["ivf", "flat"])
def test_selections_of_both_sides(kind, monkeypatch):
    """Mining folds equal lines, leaves empty ones out, and of near copies takes the first."""
    monkeypatch.setattr(both, "TARGET", 1.0)
    rng = np.random.default_rng(6)
    sides = []
    for lines in (oracle.vectors(rng, 500, 16), oracle.vectors(rng, 400, 16)):
        lines[60:80] = lines[40:60]
        lines[100:105] = 0
        rows = np.full(len(lines), -1)
        kept = np.r_[0:60, 80:100, 105:390]
        rows[kept] = np.arange(len(kept))
        rows[60:80] = rows[40:60]
        rows[391:395] = rows[7]  # near copies of line 7, with vectors of their own
        sides.append(Indexed(lines[kept], build_index(lines, kind), rows))
    x, y = (side.vectors for side in sides)
    got, _ = search_both_indexed(*sides, 3, Run())
    want = search_both(x, y, 3)
    assert (got.fwd_sim[:, 0] == want.fwd_sim[:, 0]).mean() > 0.99
    assert (got.bwd_id[:, 0] == want.bwd_id[:, 0]).mean() > 0.99
    assert got.fwd_id.max() < len(y)
    assert got.bwd_id.max() < len(x)
