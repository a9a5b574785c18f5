"""From mined rows back to lines: what happens to the lines that deduplication took for one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.store import VectorFile
from bitextmine.mining.dedup import Unique
from bitextmine.mining.retrieval import ScoredPairs, ordered

# Of a group of nearly equal lines so many are compared; more say nothing new.
_MEMBERS = 256


def first_lines(pairs: ScoredPairs, src: Unique, tgt: Unique) -> ScoredPairs:
    """Pairs of rows -> pairs of their representative lines, the first of each; the order stays."""
    return ScoredPairs(src.rows[pairs.src], tgt.rows[pairs.tgt], pairs.score)


def every_line(pairs: ScoredPairs, src: Unique, tgt: Unique) -> ScoredPairs:
    """Pairs of rows -> pairs of lines in which each repetition of a mined line has its own pair.

    Of a lines equal to the source and b lines equal to the target, the first goes with the first, the second
    with the second, and so on; what is left over on the longer side goes with the first line of the other:
    max(a, b) pairs.
    """
    src_lines, src_start = src.lines_by_row()
    tgt_lines, tgt_start = tgt.lines_by_row()
    a = (src_start[1:] - src_start[:-1])[pairs.src]
    b = (tgt_start[1:] - tgt_start[:-1])[pairs.tgt]
    times = np.maximum(a, b)
    pair = np.repeat(np.arange(len(pairs)), times)
    nth = np.arange(len(pair)) - np.repeat(np.cumsum(times) - times, times)
    s = src_lines[src_start[pairs.src][pair] + np.where(nth < a[pair], nth, 0)]
    t = tgt_lines[tgt_start[pairs.tgt][pair] + np.where(nth < b[pair], nth, 0)]
    return ordered(ScoredPairs(s, t, pairs.score[pair]))


def closest_lines(
    pairs: ScoredPairs,
    src: Unique,
    tgt: Unique,
    src_vectors: NDArray[Any] | VectorFile,
    tgt_vectors: NDArray[Any] | VectorFile,
    *,
    every: bool = False,
) -> ScoredPairs:
    """Pairs of rows -> pairs of lines, for groups of lines that are only nearly equal.

    "Article 5" and "Article 6" are one row, and so are their translations: out of the two groups come the
    two lines of the highest cosine (equal ones: the first lines), or with `every` a pair for each line: the
    closest two, then the closest two of the rest, and what is left over on the longer side with its closest
    of the other. src_vectors (lines, d), tgt_vectors (lines, d): of all the lines. Of a group of more than
    256 lines the first 256 are looked at (with `every` the others go with the first line of the other
    side).
    """
    src_lines, src_start = src.lines_by_row()
    tgt_lines, tgt_start = tgt.lines_by_row()
    s_out: list[int] = []
    t_out: list[int] = []
    score: list[float] = []
    plain = (src_start[pairs.src + 1] - src_start[pairs.src] == 1) & (
        tgt_start[pairs.tgt + 1] - tgt_start[pairs.tgt] == 1
    )
    for s, t, value in zip(pairs.src[~plain], pairs.tgt[~plain], pairs.score[~plain], strict=True):
        left = src_lines[src_start[s] : src_start[s + 1]]
        right = tgt_lines[tgt_start[t] : tgt_start[t + 1]]
        near_left, near_right = left[:_MEMBERS], right[:_MEMBERS]
        cos = src_vectors[near_left].astype(np.float64) @ tgt_vectors[near_right].astype(np.float64).T
        chosen = _assigned(np.round(cos, 6), every)
        found = [(near_left[i], near_right[j]) for i, j in chosen]
        if every:
            found += [(i, right[0]) for i in left[_MEMBERS:]] + [(left[0], j) for j in right[_MEMBERS:]]
        s_out += [int(i) for i, _ in found]
        t_out += [int(j) for _, j in found]
        score += [float(value)] * len(found)
    alone = first_lines(pairs.take(plain), src, tgt)
    return ordered(
        ScoredPairs(
            np.concatenate([alone.src, np.array(s_out, dtype=np.int64)]),
            np.concatenate([alone.tgt, np.array(t_out, dtype=np.int64)]),
            np.concatenate([alone.score, np.array(score, dtype=np.float64)]),
        )
    )


def _assigned(cos: NDArray[np.float64], every: bool) -> list[tuple[int, int]]:
    """Return the place of the highest cosine (a, b), or with `every` one place for each row and column.

    Pairs are taken greedily, highest first; ties go to the lower row, then the lower column.
    """
    best_first = np.argsort(-cos, axis=None, kind="stable")
    if not every:
        return [divmod(int(best_first[0]), cos.shape[1])]
    rows: set[int] = set()
    columns: set[int] = set()
    chosen = []
    for at in best_first.tolist():
        i, j = divmod(at, cos.shape[1])
        if i not in rows and j not in columns:
            rows.add(i)
            columns.add(j)
            chosen.append((i, j))
    chosen += [(i, int(cos[i].argmax())) for i in range(cos.shape[0]) if i not in rows]
    return chosen + [(int(cos[:, j].argmax()), j) for j in range(cos.shape[1]) if j not in columns]
