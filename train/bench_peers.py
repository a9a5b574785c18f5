"""Our encoders beside multilingual USE v3 and multilingual-e5-small: errors of nearest neighbour search, and speed.

    python train/bench_peers.py --peer use=use/bin/python --peer e5=e5/bin/python \\
        news/queries.tsv.zst everyday/queries.en-*.tsv.zst

A file has a header of languages, and sentences that translate each other in each row. A sentence is looked up among all
of the file's in the other language. The error, in per cent, is the mean of both directions, by cosine and by ratio
margin (k = 4, among the ten nearest). Equal sentences are one. A peer is a package in an environment of its own
(peers.py). Rates are sentences per second of processor time, one thread, with the encoder loaded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import parser, table
from peers import peer_encoder

from bitextmine.encoder import load_encoder
from bitextmine.evaluation.options import RankingOptions
from bitextmine.evaluation.pools import Queries, read_queries
from bitextmine.evaluation.ranking import rank_in_pool
from bitextmine.run import Run

PIVOT = "en"
K = 4
BLOCK = 1 << 14


class Measured:
    """An encoder, the sentences that it encoded, and its seconds of processor time."""

    def __init__(self, wanted: str) -> None:
        self.name, encoder = peer_encoder(wanted)
        self._encoder = load_encoder(encoder, "cpu") if isinstance(encoder, str) else encoder
        self.sentences, self.seconds = 0, 0.0
        self._encoder.encode(["A sentence."])

    def vectors(self, lines: list[str]) -> np.ndarray:
        """Return float16 rows of length 1."""
        begin = _processor_time()
        rows = np.concatenate(
            [
                np.asarray(self._encoder.encode(lines[i : i + BLOCK]), dtype=np.float32)
                for i in range(0, len(lines), BLOCK)
            ]
        )
        self.seconds += _processor_time() - begin
        self.sentences += len(lines)
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float16)


def _processor_time() -> float:
    """Return the seconds of processor time of this process and of its children, which still run."""
    ticks = 0
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
        ticks += sum(
            map(int, Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[11:13])
        )
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", type=Path, nargs="+", help="TSV with a header of languages")
    command.add_argument("--model", action="append", help="of ours: a name or folder (europe5)")
    command.add_argument("--rows", type=int, help="only the first so many of each file (e5: 20 sentences/s)")
    command.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help="use or e5")
    args = command.parse_args()
    encoders = [Measured(wanted) for wanted in [*(args.model or ["europe5"]), *args.peer]]

    def rows() -> Iterator[list[object]]:
        for path in args.files:
            asked = {lang: side[: args.rows] for lang, side in read_queries(path).items()}
            lines = sorted({line for side in asked.values() for line in side})
            line_of = {line: i for i, line in enumerate(lines)}
            vectors = [encoder.vectors(lines) for encoder in encoders]
            for other in asked:
                if other != PIVOT:
                    cells = (_errors(some, line_of, asked, other) for some in vectors)
                    yield [path.parent.name, f"{PIVOT}-{other}", len(asked[other]), *cells]
        speeds = (round(encoder.sentences / encoder.seconds) for encoder in encoders)
        yield ["sentences per CPU second", "", "", *speeds]

    table(["text", "pair", "sentences", *(encoder.name for encoder in encoders)], rows())


def _errors(vectors: np.ndarray, line_of: dict[str, int], asked: Queries, other: str) -> str:
    """By cosine and by ratio margin, mean of both directions, in per cent."""
    wrong = np.zeros(2)
    for src, tgt in ((PIVOT, other), (other, PIVOT)):
        (src_rows, queries), (tgt_rows, answers) = (
            np.unique([line_of[line] for line in asked[lang]], return_inverse=True) for lang in (src, tgt)
        )
        source, target = (np.ascontiguousarray(vectors[some]) for some in (src_rows, tgt_rows))
        nearest = rank_in_pool(np.arange(len(source)), source, target, RankingOptions(K), Run("cpu"))
        wrong += [
            100 * float((first[queries] != answers).mean()) / 2
            for first in (nearest["cosine"], nearest[f"ratio-{K}"])
        ]
    return f"{wrong[0]:.2f} / {wrong[1]:.2f}"


if __name__ == "__main__":
    main()
