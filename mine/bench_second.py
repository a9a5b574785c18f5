"""Cost and accuracy of a second encoder: F1 of mining and P@1 of retrieval by the share of lines that it encodes.

    python mine/bench_second.py DATA --second use=PYTHON --second e5=PYTHON [--plot second.svg]
    python mine/bench_second.py DATA --second use=PYTHON --retrieval ru,pl,de
    python mine/bench_second.py DATA --second use=PYTHON --errors

DATA is the folder of benchmarks of bench_dirty.py. Hides 900 pairs of news and encyclopedia (for Polish and Russian
also everyday sentences) among 6,000 lines a side, with markup, boilerplate, untranslated copies and other languages, as
bench_dirty.py does. Mines them with budgets from none to a tenth of the lines. Prints a Markdown table: the share of
lines that were judged, F1 at the default threshold and at the best one, the expected calibration error of scores above
-4, in percent, and the seconds that the second encoder took for further lines.

--plot draws F1 by share, and in a second row P@1 on the even lines of NTREX, the mean of both directions, where a
growing share of the queries, those whose two best margins are nearest to each other, is ranked by both encoders and the
others by the log odds of the first. It takes encoders of other packages only, which count their lines.

--errors lists what is wrong or missed by the default budget, to be read: W score, source, target, or M source, target.
--retrieval prints errors of retrieval instead: for the even lines of NTREX, in percent, the mean of both directions.

A second encoder is a packaged encoder or folder, or a package in the environment of another Python (peers.py).
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import bench_dirty
import numpy as np
from bench_dirty import Data, Sides, calibration_error, f1, mixture
from harness import parser, table
from peers import peer_encoder

from bitextmine import Bitext, evaluate_retrieval, mine
from bitextmine.encoder import load_encoder
from bitextmine.mining.calibration import probability

KINDS = {
    "en-fr": ("ntrex flores news", "articles europarl", "mono"),
    "en-de": ("ntrex flores news", "articles europarl", "mono"),
    "en-ru": ("ntrex flores everyday", "articles europarl", "mono"),
    "en-pl": ("ntrex flores everyday", "articles europarl", "mono"),
}
MEASURES = ("cosine", "ratio-4", "rescored-4", "second", "both")
BUDGETS = (0.02, 0.05, 0.1)
QUERIES = (0.003, 0.01)
Curves = dict[tuple[str, str], list[list[float]]]


@contextmanager
def corpora(data: Data, pair: str) -> Iterator[tuple[Sides, Callable[..., Bitext]]]:
    """Yield the mixture of a pair of languages, and what mines it."""
    sides, langs = mixture(data, pair, "15%", 1), pair.split("-")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"corpus.{lang}" for lang in langs]
        for file, side in zip(files, sides, strict=True):
            file.write_text("".join(f"{line}\n" for line, _ in side), encoding="utf-8", newline="\n")
        yield sides, partial(mine, *files, src_lang=langs[0], tgt_lang=langs[1])


def right(sides: Sides, found: Bitext) -> np.ndarray:
    """Return a mask of the right pairs, best first."""
    partners = (
        (sides[0][i][1], sides[1][j][1]) for i, j in zip(found.src_index, found.tgt_index, strict=True)
    )
    return np.array([i == j >= 0 for i, j in partners], dtype=bool)


def measured(sides: Sides, mine: Callable[..., Bitext]) -> list[float]:
    """Return the share of lines judged, F1 at the default and at the best threshold, and the calibration error."""
    kept, every = (mine(threshold=cut) for cut in ("auto", "none"))
    ok, all_ok = right(sides, kept), right(sides, every)
    gold = sum(number >= 0 for _, number in sides[0])
    best = max(f1(hits, n, gold) for n, hits in enumerate(np.cumsum(all_ok).tolist(), 1))
    lines = sum(kept.details["rows"][side]["mined_lines"] for side in ("src", "tgt"))
    judged = sum(kept.details.get("second", {}).get("lines", (0,))) / lines
    likely = every.score > -4
    error = calibration_error(probability(every.score[likely]), all_ok[likely])
    return [judged, f1(int(ok.sum()), len(ok), gold), best, error]


def list_errors(sides: Sides, found: Bitext) -> None:
    """Print the pairs that are wrong, and those that are missed."""
    ok = right(sides, found)
    for pair, hit in zip(found, ok, strict=True):
        if not hit:
            print(f"W {pair.score:.1f}", pair.src, pair.tgt, sep="\t")
    mined = {sides[0][i][1] for i in found.src_index[ok]}
    src, tgt = ({number: line for line, number in side if number >= 0} for side in sides)
    for number in sorted({*src} - mined):
        print("M", src[number], tgt[number], sep="\t")


def retrieval(
    data: Data, langs: list[str], seconds: dict[str, Any], model: Any, **options: float
) -> Iterator[list[object]]:
    """Yield the errors of nearest neighbour search on NTREX, English and each language: even lines, whole pools."""
    for name, second in seconds.items():
        for lang in langs:
            lines = {two: data.lines(f"bench/ntrex/ntrex.{two}.txt") for two in ("en", lang)}
            asked, others = ({two: some[start::2] for two, some in lines.items()} for start in (1, 0))
            ranking = {"rescore": True, "second": second, **options}
            found = evaluate_retrieval(asked, others, model=model, **ranking).results
            errors: dict[str, float] = {}
            for result in found:
                errors[result.measure] = errors.get(result.measure, 0) + 50 * (1 - result.p_at_1)
            yield [f"en-{lang}", name, *(errors[measure] for measure in MEASURES)]


def retrieved(data: Data, lang: str, second: Any, model: str) -> Iterator[list[float]]:
    """Yield the share of lines that a second encoder encodes, and P@1 in percent, for growing shares of the queries."""
    lines = {two: data.lines(f"bench/ntrex/ntrex.{two}.txt") for two in ("en", lang)}
    encoder = load_encoder(model)
    x, y = (encoder.encode(some).astype(np.float32) for some in lines.values())
    cosine = x @ y.T
    around = [np.sort(sims, axis=1)[:, -4:].mean(axis=1) for sims in (cosine, cosine.T)]
    best = [np.sort(sims, axis=1)[:, -2:] for sims in (cosine - around[1] / 2, cosine.T - around[0] / 2)]
    lead = np.minimum(*(pair[:, 1] - pair[:, 0] for pair in best))
    even = 1 + 2 * np.argsort(lead[1::2], kind="stable")

    def correct(some: np.ndarray, **options: Any) -> dict[str, int]:
        chosen = set(some.tolist())
        rest = [i for i in range(len(x)) if i not in chosen]
        asked, others = (
            {two: [text[i] for i in rows] for two, text in lines.items()} for rows in (some, rest)
        )
        hits: dict[str, int] = {}
        for result in evaluate_retrieval(asked, others, model=encoder, rescore=True, **options).results:
            hits[result.measure] = hits.get(result.measure, 0) + result.correct
        return hits

    alone = correct(even)["rescored-4"]
    yield [0.0, 50 * alone / len(even)]
    for share in QUERIES:
        before, some = second.network.lines, even[: round(share * len(even))]
        hits = correct(some, second=second)
        encoded = (second.network.lines - before) / (2 * len(x))
        yield [encoded, 50 * (alone - hits["rescored-4"] + hits["both"]) / len(even)]


def draw(rows: list[Curves], path: Path) -> None:
    """Draw F1 at the default threshold and P@1 by the share of lines encoded again, a column for each pair."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "second"
    from matplotlib import pyplot

    pairs = list(dict.fromkeys(pair for pair, _ in rows[0]))
    figure, panels = pyplot.subplots(2, len(pairs), figsize=(3 * len(pairs), 5.2), squeeze=False)
    for curves, line in zip(rows, panels, strict=True):
        for pair, axes in zip(pairs, line, strict=True):
            for (own, name), points in curves.items():
                if own == pair:
                    shares, scores = zip(*((100 * point[0], point[1]) for point in points), strict=True)
                    axes.plot(shares, scores, marker="o", label=name)
            axes.set_title(pair)
            axes.set_xlabel("lines encoded again, %")
    panels[0][0].set_ylabel("F1 of mining, %")
    panels[1][0].set_ylabel("P@1 of retrieval, %")
    panels[0][-1].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    command = parser(__doc__)
    command.add_argument("data", type=Path)
    command.add_argument("--second", action="append", required=True, metavar="NAME[=PYTHON]")
    command.add_argument("--model", default="auto", help="the first encoder")
    command.add_argument("--only", default="", help="pairs of languages whose names hold this")
    command.add_argument("--plot", type=Path, metavar="FILE.svg")
    command.add_argument("--errors", action="store_true", help="list what is wrong or missed")
    command.add_argument("--retrieval", metavar="LANG,...", help="errors of retrieval in these languages")
    args = command.parse_args()
    bench_dirty.KINDS.update(KINDS)
    seconds = dict(map(peer_encoder, args.second))
    if args.retrieval:
        found = retrieval(Data(args.data), args.retrieval.split(","), seconds, args.model)
        table(["pair", "second", *MEASURES], found)
        return
    pairs = [pair for pair in KINDS if args.only in pair]
    if args.errors:
        for pair, (name, second) in itertools.product(pairs, seconds.items()):
            with corpora(Data(args.data), pair) as (sides, mine):
                print(f"\n{pair} {name}\n")
                list_errors(sides, mine(model=args.model, second=second))
        return
    curves: Curves = {}

    def rows() -> Iterator[list[object]]:
        for pair in pairs:
            with corpora(Data(args.data), pair) as (sides, mine):
                alone = measured(sides, partial(mine, model=args.model))
                yield [pair, "none", *_cells(alone), ""]
                for name, second in seconds.items():
                    points = curves[pair, name] = [alone]
                    for budget in BUDGETS:
                        network = getattr(second, "network", None)
                        before = getattr(network, "seconds", 0.0)
                        both = partial(mine, model=args.model, second=second, second_budget=budget)
                        points.append(measured(sides, both))
                        spent = getattr(network, "seconds", 0.0) - before
                        yield [pair, name, *_cells(points[-1]), f"{spent:.1f}"]

    table(["pair", "second", "lines judged", "F1", "F1, best threshold", "calibration error", "s"], rows())
    if args.plot:
        found = {
            (pair, name): list(retrieved(Data(args.data), pair[-2:], second, args.model))
            for pair, (name, second) in itertools.product(pairs, seconds.items())
        }
        for (pair, name), points in found.items():
            cells = ", ".join(f"{100 * share:.1f}%: {hits:.2f}" for share, hits in points)
            print(f"P@1 {pair} {name}: {cells}")
        draw([curves, found], args.plot)


def _cells(point: list[float]) -> list[str]:
    share, *others, error = point
    return [f"{100 * share:.1f}%", *(f"{value:.2f}" for value in others), f"{100 * error:.2f}"]


if __name__ == "__main__":
    main()
