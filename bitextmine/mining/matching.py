"""One-to-one pairs of the highest total score: maximum-weight bipartite matching."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def heaviest(src: NDArray, tgt: NDArray, weight: NDArray, n: int, m: int) -> NDArray[np.int64]:
    """Return the positions of the candidate pairs with the highest total weight that use no row twice.

    Pairs of weight 0 or less are never taken. The solution is exact, by shortest augmenting paths (Jonker and Volgenant
    1987, for sparse graphs as in scipy); between matchings of equal weight the order of the candidates decides.

    Args:
        src: source rows of the distinct candidate pairs, (p,).
        tgt: their target rows, (p,).
        weight: their weights, (p,).
        n: source rows.
        m: target rows.
    """
    useful = np.flatnonzero(weight > 0)
    if not len(useful):
        return useful
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows, row = np.unique(src[useful], return_inverse=True)
    columns, column = np.unique(tgt[useful], return_inverse=True)
    # The solver matches every row: each gets a column of its own, of weight 0, to stand for no partner. It takes
    # explicit zeros for missing, so all weights are one higher, which adds the same to every matching.
    own = np.arange(len(rows))
    graph = csr_array(
        (
            np.concatenate([weight[useful], np.zeros(len(rows))]) + 1,
            (np.concatenate([row, own]), np.concatenate([column, len(columns) + own])),
        ),
        shape=(len(rows), len(columns) + len(rows)),
    )
    matched_row, matched_column = min_weight_full_bipartite_matching(graph, maximize=True)
    partner = np.full(len(rows), -1, dtype=np.int64)
    partner[matched_row] = matched_column
    return useful[partner[row] == column]
