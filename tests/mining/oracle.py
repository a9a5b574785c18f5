"""Mining written down as slowly and plainly as possible, to hold the real one against.

Nothing in here is shared with the package but the rule of its documentation: which lines are the same,
which are never mined, the floor of the ratio, the six decimals of a score, and the order of equal scores.
"""

import math
import unicodedata

import numpy as np


def key(line):
    return " ".join(unicodedata.normalize("NFC", line).split())


def representatives(lines, vectors, dedup):
    """The lines that are mined: the first of equal ones, none that is blank or has a zero vector."""
    seen: set[str] = set()
    kept = []
    for i, line in enumerate(lines):
        if not key(line).strip("\u200b") or (dedup and key(line) in seen):
            continue
        seen.add(key(line))
        if np.any(vectors[i] != 0):
            kept.append(i)
    return kept


def mine(src, tgt, x, y, *, k, margin, retrieval, dedup=True):
    """(source line, target line, score), best first."""
    rows, cols = representatives(src, x, dedup), representatives(tgt, y, dedup)
    cos = {}
    for i in rows:
        for j in cols:
            exact = math.fsum(float(a) * float(b) for a, b in zip(x[i], y[j], strict=True))
            cos[i, j] = float(np.float32(exact))
    near_src = {i: sorted(cols, key=lambda j: (-cos[i, j], j))[:k] for i in rows}
    near_tgt = {j: sorted(rows, key=lambda i: (-cos[i, j], i))[:k] for j in cols}
    mean_src = {i: math.fsum(cos[i, j] for j in near_src[i]) / len(near_src[i]) for i in rows if near_src[i]}
    mean_tgt = {j: math.fsum(cos[i, j] for i in near_tgt[j]) / len(near_tgt[j]) for j in cols if near_tgt[j]}

    def score(i, j):
        b = (mean_src[i] + mean_tgt[j]) / 2
        if margin == "absolute":
            value = cos[i, j]
        elif margin == "distance":
            value = cos[i, j] - b
        else:
            value = cos[i, j] / max(b, 0.01)
        return round(value, 6)

    forward = {i: min(near_src[i], key=lambda j: (-score(i, j), j)) for i in rows if near_src[i]}
    backward = {j: min(near_tgt[j], key=lambda i: (-score(i, j), i)) for j in cols if near_tgt[j]}
    ahead = set(forward.items())
    back = {(i, j) for j, i in backward.items()}
    chosen = {
        "forward": ahead,
        "backward": back,
        "intersect": ahead & back,
        "union": ahead | back,
        "max": ahead | back,
    }[retrieval]
    ranked = sorted(((i, j, score(i, j)) for i, j in chosen), key=lambda p: (-p[2], p[0], p[1]))
    if retrieval == "max":
        used_src: set[int] = set()
        used_tgt: set[int] = set()
        one_to_one = []
        for i, j, s in ranked:
            if i not in used_src and j not in used_tgt:
                used_src.add(i)
                used_tgt.add(j)
                one_to_one.append((i, j, s))
        ranked = one_to_one
    return ranked
