"""Matchings against trying every one there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.mining.pairing import ScoredPairs, heaviest


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
