"""Our encoders beside multilingual USE v3 and multilingual-e5-small: errors of nearest neighbour search, and speed.

    python train/bench_peers.py --peer use=use/bin/python --peer e5=e5/bin/python \\
        news/queries.tsv.zst everyday/queries.en-*.tsv.zst

A file has a header of languages, and sentences that translate each other in each row. The error, in per cent, is that
of `evaluate retrieval` without distractors: the mean of both directions with English, by cosine and by ratio margin. A
peer is a package in an environment of its own (mine/peers.py). Rates are sentences per second of processor time, one
thread, with the encoder loaded.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bitextmine
from bitextmine.evaluation.pools import read_queries

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import parser, table
from peers import peer_encoder


def processor_time() -> float:
    """Return the seconds of processor time of this process and of its children, which still run."""
    ticks = 0
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", type=Path, nargs="+", help="TSV with a header of languages")
    command.add_argument("--model", action="append", help="of ours: a name or folder (europe5)")
    command.add_argument("--rows", type=int, help="only the first so many of each file (e5: 20 sentences/s)")
    command.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help="use or e5")
    args = command.parse_args()
    encoders = dict(map(peer_encoder, [*(args.model or ["europe5"]), *args.peer]))
    encoders = {name: bitextmine.load_encoder(encoder, "cpu") for name, encoder in encoders.items()}
    sentences, seconds = 0, dict.fromkeys(encoders, 0.0)

    def rows() -> Iterator[list[object]]:
        nonlocal sentences
        for path in args.files:
            queries = {lang: side[: args.rows] for lang, side in read_queries(path).items()}
            lines = sorted({line for side in queries.values() for line in side})
            sentences += len(lines)
            reports = []
            for name, encoder in encoders.items():
                begin = processor_time()
                encoder.encode(lines)
                seconds[name] += processor_time() - begin
                reports.append(bitextmine.evaluate_retrieval(queries, model=encoder).to_frame())
            for lang in filter("en".__ne__, queries):
                cells = (errors(report, lang) for report in reports)
                yield [path.parent.name, f"en-{lang}", len(queries[lang]), *cells]
        yield ["sentences per CPU second", "", "", *(round(sentences / spent) for spent in seconds.values())]

    table(["text", "pair", "sentences", *encoders], rows())


def errors(report, lang: str) -> str:
    """Return the means of both directions of a language by cosine and by ratio margin, in per cent."""
    own = report[(report.src == lang) | (report.tgt == lang)]
    return " / ".join(
        f"{100 * (1 - own.p_at_1[own.measure == by].mean()):.2f}" for by in ("cosine", "ratio-4")
    )


if __name__ == "__main__":
    main()
