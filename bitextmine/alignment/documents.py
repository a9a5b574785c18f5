"""Match documents of two languages by their sentence vectors.

Documents are compared twice: all by their mean vectors, then the likeliest candidates sentence by sentence, by the mean
cosine of each sentence to its nearest one in the other document. The level of that mean depends on the kind of text, so
a pair is judged by its distance from the next best candidates of its two documents.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.windows import Floats, Windows, unit_rows
from bitextmine.mining.pairing import ScoredPairs, greedy

_CANDIDATES = 10
_SENTENCES = 64  # sentences of a document that search
_OTHERS = 2000  # sentences of the other document searched
_LEVEL = 3  # next best candidates a pair is compared with
# The least distance of a pair from the next best candidates: in cosine, and as shares of the usual distance between
# documents that are each other's best, for such pairs and for others. Documents without a partner stay below.
_LEAST_MARGIN = 0.01
_MUTUAL, _ONE_SIDED = 0.25, 0.5


def match_documents(src: Sequence[Windows], tgt: Sequence[Windows]) -> list[tuple[int, int]]:
    """Return pairs (i, j) of documents that are translations, in the order of the source.

    Each document is in one pair at most, and in none if no document of the other side fits.
    """
    if not src or not tgt:
        return []
    means = _means(src), _means(tgt)
    likeness = means[0] @ means[1].T
    few = min(_CANDIDATES, max(likeness.shape))
    candidates = np.zeros(likeness.shape, dtype=bool)
    for axis in (0, 1):
        count = min(few, likeness.shape[axis])
        best = np.argsort(-likeness, axis=axis, kind="stable").take(range(count), axis=axis)
        np.put_along_axis(candidates, best, True, axis=axis)
    score = np.full(likeness.shape, -np.inf)
    queries = [[_sampled(side, _SENTENCES) for side in sides] for sides in (src, tgt)]
    for i in range(len(src)):
        whole = _sampled(src[i], _OTHERS)
        for j in np.flatnonzero(candidates[i]).tolist():
            forward = _nearest(queries[0][i], _sampled(tgt[j], _OTHERS))
            score[i, j] = (forward + _nearest(queries[1][j], whole)) / 2
    return _best_first(score)


def _means(side: Sequence[Windows]) -> Floats:
    """Return the mean vector of each document, less their common mean."""
    rows = np.stack(
        [w.vectors(1, 0, len(w)).mean(axis=0) if len(w) else np.zeros(w.dim, dtype=np.float32) for w in side]
    )
    if len(rows) > 2:
        rows = rows - rows.mean(axis=0)
    return unit_rows(rows)


def _sampled(windows: Windows, most: int) -> Floats:
    """Return all sentence vectors, or some of a long document, evenly spaced."""
    rows = windows.vectors(1, 0, len(windows))
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _nearest(queries: Floats, rows: Floats) -> float:
    """Return the mean cosine of the queries to their nearest rows."""
    return float((queries @ rows.T).max(axis=1).mean()) if len(queries) and len(rows) else -1.0


def _highest(line: NDArray[np.float64]) -> list[tuple[int, float]]:
    """Return the _LEVEL + 1 highest scores of a row or column, with their places."""
    places = np.flatnonzero(np.isfinite(line))
    places = places[np.argsort(-line[places], kind="stable")][: _LEVEL + 1]
    return [(int(place), float(line[place])) for place in places]


def _best_first(score: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Match one to one, the highest margin over the other candidates first."""
    best = [_highest(line) for line in score], [_highest(line) for line in score.T]
    margin = np.full(score.shape, -np.inf)
    for i, j in np.argwhere(np.isfinite(score)).tolist():
        unmatched = [
            [value for other, value in line if other != here][:_LEVEL]
            for line, here in ((best[0][i], j), (best[1][j], i))
        ]
        level = [float(np.mean(values)) for values in unmatched if values]
        margin[i, j] = score[i, j] - float(np.mean(level)) if level else score[i, j]
    pairs = np.argwhere(np.isfinite(margin))
    mutual = np.array(
        [best[0][i][0][0] == j and best[1][j][0][0] == i for i, j in pairs.tolist()], dtype=bool
    )
    of_pair = margin[tuple(pairs.T)]
    usual = float(np.median(of_pair[mutual])) if mutual.any() else 0.0
    least = np.maximum(_LEAST_MARGIN, usual * np.where(mutual, _MUTUAL, _ONE_SIDED))
    good = np.flatnonzero(of_pair > least)
    first = good[np.argsort(-of_pair[good], kind="stable")]
    matched = greedy(ScoredPairs(pairs[first, 0], pairs[first, 1], of_pair[first]), *score.shape)
    return sorted(zip(matched.src.tolist(), matched.tgt.tolist(), strict=True))
