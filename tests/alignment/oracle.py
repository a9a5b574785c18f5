"""Sentence alignment in a few slow lines: costs from their definition, and every node of the dynamic program."""

import numpy as np


def window(side, size, start):
    return side.vectors(size, start, start + 1)[0].astype(np.float64)


def mean_far(x, others):
    every = others.vectors(1, 0, len(others)).astype(np.float64)
    return max(1e-3, float(np.mean([*(1 - x @ y for y in every), *[0.9] * 4])))


def same_marks(src, tgt):
    return sum(min(np.mean(src == kind), np.mean(tgt == kind)) for kind in range(3)) >= 0.7


def cost(src, tgt, step, prices, level, most=np.inf):
    """Of linking sentences i .. i + s - 1 with j .. j + t - 1, without evidence of pieces; `most` for the distance."""
    i, s, j, t = step
    x, y = window(src, s, i), window(tgt, t, j)
    value = min(most, prices.far / level * (1 - x @ y) / ((mean_far(x, tgt) + mean_far(y, src)) / 2))
    if src.characters is not None and tgt.characters is not None:
        ratio = (src.characters.sum() + 1) / (tgt.characters.sum() + 1)
        lengths = src.characters[i : i + s].sum() + 30, tgt.characters[j : j + t].sum() + 30
        value += prices.length * min(1.0, np.log(lengths[0] / lengths[1] / ratio) ** 2)
    value = value * (s + t) / 2 + prices.join * (s + t - 2)
    for side, first, size in ((src, i, s), (tgt, j, t)):
        if side.form is not None:
            value -= prices.continued * side.form.continued[first + 1 : first + size].sum()
    if src.form is not None and tgt.form is not None and same_marks(src.form.ending, tgt.form.ending):
        value += prices.ending * (src.form.ending[i + s - 1] != tgt.form.ending[j + t - 1])
    return float(value)


def total(src, tgt, steps, prices, level):
    """The cost of an alignment."""
    return sum(cost(src, tgt, step, prices, level) if step[1] and step[3] else prices.skip for step in steps)


def least(src, tgt, largest, prices, level):
    """The cost of the best alignment there is."""
    n, m = len(src), len(tgt)
    best = np.full((n + 1, m + 1), np.inf)
    best[0, 0] = 0
    for i in range(n + 1):
        for j in range(m + 1):
            if i:
                best[i, j] = min(best[i, j], best[i - 1, j] + prices.skip)
            if j:
                best[i, j] = min(best[i, j], best[i, j - 1] + prices.skip)
            for s in range(1, min(largest, i + 1)):
                for t in range(1, min(largest - s, j) + 1):
                    found = best[i - s, j - t] + cost(src, tgt, (i - s, s, j - t, t), prices, level)
                    best[i, j] = min(best[i, j], found)
    return float(best[n, m])


def missed(best, weight, window, reach):
    """Of a sentence's pieces; best (pieces, partners): the match of each in each sentence of the other document."""
    lost = 0.0
    for row, heavy in zip(best, weight, strict=True):
        inside = max((row[j] for j in window if j < len(row)), default=0.0)
        near = range(max(0, window.start - reach), min(len(row), window.stop + reach))
        lost += heavy * (max(row[j] for j in near) - inside)
    return lost


def apart(src, tgt):
    """The share of their time, half a second longer at each end, that runs (s, 2), (t, 2) do not have in common."""
    a, b = min(begin for begin, _ in src) - 0.5, max(end for _, end in src) + 0.5
    c, d = min(begin for begin, _ in tgt) - 0.5, max(end for _, end in tgt) + 0.5
    return 1 - max(0.0, min(b, d) - max(a, c)) / (max(b, d) - min(a, c))


def longest_chain(pairs):
    """The length of the longest chain of sorted pairs in which both numbers rise."""
    best = []
    for at, (a, b) in enumerate(pairs):
        before = (best[k] for k, (c, d) in enumerate(pairs[:at]) if c < a and d < b)
        best.append(1 + max(before, default=0))
    return max(best, default=0)


def paths(n, m, steps):
    """All ways from (0, 0) to (n, m), as lists of (i, s, j, t)."""
    if not n and not m:
        return [[]]
    found = []
    for s, t in steps:
        if s <= n and t <= m:
            found += [[*way, (n - s, s, m - t, t)] for way in paths(n - s, m - t, steps)]
    return found


def marginals(n, m, steps, price):
    """The probability of each step, where a path is as likely as exp(-the sum of its prices)."""
    ways = [(way, np.exp(-sum(map(price, way)))) for way in paths(n, m, steps)]
    every = sum(weight for _, weight in ways)
    found = {}
    for way, weight in ways:
        for step in way:
            found[step] = found.get(step, 0) + weight / every
    return found
