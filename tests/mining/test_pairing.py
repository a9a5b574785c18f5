from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.mining.margin import BestBothWays, BestCandidates, best_candidates, candidates
from bitextmine.mining.pairing import Retrieval, ScoredPairs, heaviest, retrieve


def as_list(pairs):
    return list(zip(pairs.src.tolist(), pairs.tgt.tolist(), pairs.score.tolist(), strict=True))


def test_each_way_on_a_small_case():
    # source 0 and 1 both want target 0, which wants 1; source 2 finds nothing; target 1 wants source 0
    best = BestBothWays(
        BestCandidates(np.array([0, 0, -1]), np.array([1.2, 1.5, -np.inf])),
        BestCandidates(np.array([1, 0]), np.array([1.5, 1.1])),
    )
    expected = {
        "forward": [(1, 0, 1.5), (0, 0, 1.2)],
        "backward": [(1, 0, 1.5), (0, 1, 1.1)],
        "intersect": [(1, 0, 1.5)],
        "union": [(1, 0, 1.5), (0, 0, 1.2), (0, 1, 1.1)],
        "max": [(1, 0, 1.5), (0, 1, 1.1)],
        "matching": [(1, 0, 1.5), (0, 1, 1.1)],
    }
    assert {how: as_list(retrieve(best, how)) for how in Retrieval} == expected
    with pytest.raises(ValueError, match="'best'"):
        retrieve(best, "best")


def test_scores_that_print_alike_are_alike():
    sim, ids = np.array([[0.50000001, 0.5]]), np.array([[1, 0]])
    best = best_candidates(sim, ids, np.array([0.0]), np.zeros(2), "absolute")
    assert (best.id[0], best.score[0]) == (0, 0.5)


def test_missing_neighbours_are_no_candidates():
    """As an approximate search returns them: id -1, similarity -3.4e38, whole rows empty."""
    low = -3.4028235e38
    neighbours = SimpleNamespace(
        fwd_sim=np.array([[0.9, low], [low, low]], np.float32),
        fwd_id=np.array([[1, -1], [-1, -1]]),
        bwd_sim=np.array([[low, low], [0.9, 0.2], [low, low]], np.float32),
        bwd_id=np.array([[-1, -1], [0, 1], [-1, -1]]),
    )
    best = candidates(neighbours, 2)
    assert best.forward.id.tolist() == [1, -1]
    assert best.backward.id.tolist() == [-1, 0, -1]
    # means 0.9 and 0.55
    assert as_list(retrieve(best, "max")) == [(0, 1, round(0.9 / 0.725, 6))]
    # a target that found nothing itself, but was found
    lonely = SimpleNamespace(
        fwd_sim=np.array([[0.9]]), fwd_id=np.array([[0]]), bwd_sim=np.array([[low]]), bwd_id=np.array([[-1]])
    )
    assert as_list(retrieve(candidates(lonely, 1), "union")) == [(0, 0, 1.0)]


def test_nothing_on_one_side():
    empty = SimpleNamespace(
        fwd_sim=np.empty((0, 4)),
        fwd_id=np.empty((0, 4), int),
        bwd_sim=np.full((3, 4), -np.inf),
        bwd_id=np.full((3, 4), -1),
    )
    for how in Retrieval:
        assert len(retrieve(candidates(empty, 4), how)) == 0


def best_total(edges):
    """The highest total over all subsets of edges without a common end."""
    if not edges:
        return 0.0
    (src, tgt, weight), *rest = edges
    without = best_total(rest)
    clear = [edge for edge in rest if edge[0] != src and edge[1] != tgt]
    return max(without, weight + best_total(clear))


graphs = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 6), st.integers(-3, 9).map(lambda x: x / 8)),
    max_size=11,
    unique_by=lambda edge: edge[:2],
)


@given(graphs)
def test_the_total_is_the_highest_there_is_and_no_row_comes_twice(edges):
    src, tgt = (np.array([edge[i] for edge in edges], dtype=np.int64) for i in (0, 1))
    weight = np.array([edge[2] for edge in edges], dtype=np.float64)
    found = heaviest(ScoredPairs(src, tgt, weight))
    assert len(set(found.src.tolist())) == len(set(found.tgt.tolist())) == len(found)
    assert (found.score > 0).all()
    assert found.score.sum() == pytest.approx(best_total(edges))


def test_a_large_graph_is_matched():
    rng = np.random.default_rng(0)
    n = 50_000  # its square is more than 32 bits hold
    pairs = np.unique(np.stack([rng.integers(0, n, n), rng.integers(0, n, n)], 1), axis=0)
    found = heaviest(ScoredPairs(pairs[:, 0], pairs[:, 1], rng.random(len(pairs))))
    assert len(np.unique(found.src)) == len(np.unique(found.tgt)) == len(found) > 0.4 * n
