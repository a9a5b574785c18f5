"""What share of pairs, and of the search's tiles, could bounds on a few columns or on clusters of rows leave out?

Example:  python index/bench_pruning.py corpus.en.npy corpus.fr.npy
          python index/bench_pruning.py corpus.en.npy corpus.fr.npy --rows 1000000 -k 16
          python index/bench_pruning.py

A pair is needed where its similarity may reach the k-th best of its row or of its column. The k-th bests here are the
final ones, and 0.9 of them for those in the middle of a search. Counted on a sample of rows of both sides.

leading h: vectors are turned into their principal components (about the origin, of a sample); a pair is bounded by
the product of the first h, plus the product of the lengths of the rest. pairs: needed, of all; + int8: with what int8
codes of the h lose; 6x64, 16x64: tiles of so many pairs any of which is needed, rows in random order, or grouped by
k-means. caps: a pair of k-means clusters is bounded by the angle between their centres less the widest angles within
them. signs, 4 bits: the product of so many bits a number, with Cauchy-Schwarz for what that loses. Without files:
random vectors of length 1, half of which have a neighbour planted on the other side.
"""

from __future__ import annotations

import argparse

import numpy as np
from bench_exact import planted

from bitextmine.search.exact import search_one

SAMPLE, PROBES, CLUSTERS = 20000, 1536, 64


def length(rows: np.ndarray) -> np.ndarray:
    return np.sqrt((rows * rows).sum(axis=1))


def lost(rows: np.ndarray, levels: int) -> np.ndarray:
    """Return the length of the error of rounding each row to ``levels`` levels of its largest number."""
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-30) / levels
    return length(rows - np.rint(rows / scale) * scale)


def clusters(rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Spherical k-means, ten rounds: the cluster of each row, the centres."""
    centres = rows[rng.permutation(len(rows))[:CLUSTERS]]
    of = np.zeros(len(rows), dtype=np.int64)
    for _ in range(10):
        of = np.argmax(rows @ centres.T, axis=1)
        for c in np.unique(of):
            centre = rows[of == c].sum(axis=0)
            centres[c] = centre / max(float(np.linalg.norm(centre)), 1e-9)
    return of, centres


def tiles(needed: np.ndarray, rows: int, columns: int) -> float:
    a, b = len(needed) // rows, needed.shape[1] // columns
    return float(needed[: a * rows, : b * columns].reshape(a, rows, b, columns).any(axis=(1, 3)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="two .npy files (default: made-up vectors)")
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--dim", type=int, default=480)
    parser.add_argument("-k", "--k", type=int, default=4)
    args = parser.parse_args()
    if len(args.files) not in (0, 2):
        parser.error("give two files, or none")
    if args.files:
        x, y = (np.load(name, mmap_mode="r")[: args.rows] for name in args.files)
    else:
        x, y = planted(args.rows, args.dim, 0)
    rng = np.random.default_rng(0)
    at, to = (np.sort(rng.permutation(len(v))[:PROBES]) for v in (x, y))
    row_limit = search_one(x[at], y, args.k)[0][:, -1]
    col_limit = search_one(y[to], x, args.k)[0][:, -1]
    limit = np.minimum(row_limit[:, None], col_limit[None, :])
    sample = np.concatenate([v[np.sort(rng.permutation(len(v))[:SAMPLE])] for v in (x, y)]).astype(np.float32)
    values, turn = np.linalg.eigh(sample.T @ sample)
    energy = np.cumsum(values[::-1]) / values.sum()
    a, b = (v.astype(np.float32) @ turn[:, ::-1] for v in (x[at], y[to]))
    whole = a @ b.T
    losses = lost(a, 127)[:, None] + lost(b, 127)[None, :]
    what = "real" if args.files else "random"
    print(
        f"{len(x):,} x {len(y):,} {what} rows, d = {x.shape[1]}, k = {args.k}; of {PROBES} x {PROBES} pairs"
    )
    print(f"needed: {(whole >= limit).mean():.3%}; by the int8 bound: {(whole + losses >= limit).mean():.3%}")

    (of_a, centres_a), (of_b, centres_b) = clusters(a, rng), clusters(b, rng)
    grouped = np.ix_(np.argsort(of_a, kind="stable"), np.argsort(of_b, kind="stable"))
    print("leading  energy  pairs    + int8   at 0.9   6x64  16x64  grouped: 6x64  16x64")
    for h in range(64, x.shape[1], 64):
        bound = a[:, :h] @ b[:, :h].T + np.outer(length(a[:, h:]), length(b[:, h:]))
        coded = bound + lost(a[:, :h], 127)[:, None] + lost(b[:, :h], 127)[None, :]
        needed = coded >= limit
        print(
            f"{h:7} {energy[h - 1]:7.1%} {(bound >= limit).mean():7.2%} {needed.mean():8.2%}"
            f" {(coded >= 0.9 * limit).mean():8.2%} {tiles(needed, 6, 64):6.1%} {tiles(needed, 16, 64):6.1%}"
            f" {tiles(needed[grouped], 6, 64):14.1%} {tiles(needed[grouped], 16, 64):6.1%}"
        )

    def width(rows: np.ndarray, of: np.ndarray, centres: np.ndarray) -> np.ndarray:
        cosines = (rows * centres[of]).sum(axis=1) / np.maximum(length(rows), 1e-9)
        angles = np.arccos(np.clip(cosines, -1, 1))
        return np.array([angles[of == c].max(initial=0.0) for c in range(len(centres))])

    apart = np.arccos(np.clip(centres_a @ centres_b.T, -1, 1))
    within = width(a, of_a, centres_a)[:, None] + width(b, of_b, centres_b)[None, :]
    cap = np.cos(np.maximum(0.0, apart - within))[np.ix_(of_a, of_b)]
    print(f"caps of {CLUSTERS} clusters a side: pairs {(cap >= limit).mean():.2%}")
    # x = s sign(x) + r, s the mean of |x|: the best that one bit a number can do
    one, other = (np.abs(v).mean(axis=1, keepdims=True) * np.sign(v) for v in (a, b))
    rest = np.outer(length(a - one), length(b)) + np.outer(length(one), length(b - other))
    print(f"signs: pairs {(one @ other.T + rest >= limit).mean():.2%}")
    four, others = lost(a, 7), lost(b, 7)
    rest = four[:, None] * length(b)[None, :] + length(a)[:, None] * others[None, :]
    print(f"4 bits: pairs {(whole + rest >= limit).mean():.2%} (around the true product)")


if __name__ == "__main__":
    main()
