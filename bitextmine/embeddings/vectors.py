"""Vectors that another tool made of a corpus, adopted as its embedding."""

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.console import counted
from bitextmine.embeddings.embed import EncodedLines, Lines, embed_corpus
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import vectors_path
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.encoder.encoder import PRECOMPUTED, load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.files.source import Source
from bitextmine.run import Run

log = logging.getLogger(__name__)

BLOCK_ROWS = 4096


def adopt_vectors(
    corpus: str | os.PathLike[str],
    vectors: str | os.PathLike[str],
    run: Run | None = None,
    options: EmbedOptions | None = None,
    *,
    lang: str | None = None,
) -> Path:
    """Make vectors of another tool the embedding of a corpus, and return the path of its .npy.

    Row i belongs to line i, and is scaled to length 1, in float16; a blank line has the zero row. `mine` and `index`
    use it as that of the model "precomputed".

    The vectors are as for `open_precomputed`; of the options `out` and `force` count.

    Raises:
        BitextmineError: the file is no matrix of floats, its rows are not as many as the lines, or it holds NaN or
            infinite numbers, or nothing but zeros.
    """
    run, options = run or Run(), options or EmbedOptions()
    source = Source.of(corpus, run)
    npy = Path(options.out) if options.out is not None else vectors_path(source, PRECOMPUTED)
    if os.path.realpath(npy) == os.path.realpath(vectors):
        raise BitextmineError(
            f"{vectors}: is the embedding itself; name another file with --out, or move the vectors"
        )
    text, encoder = Corpus(source, lang), load_encoder(PRECOMPUTED)
    made = _Made(Path(vectors), len(text))
    encoder.dim = int(made.matrix.shape[1])
    return embed_corpus(text, encoder, run, EmbedOptions(options.out, force=options.force), encoding=made)


class _Made:
    """The vectors of a file in place of an encoder's (`embed.Encoding`)."""

    slow = False

    def __init__(self, path: Path, rows: int) -> None:
        self.path, self.matrix, self.chunk_lines = path, open_precomputed(path, rows), BLOCK_ROWS
        self._stat = self._now()

    def _now(self) -> tuple[int, int]:
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns

    def prepare(self, _: Path, __: int | None) -> dict[str, Any]:
        """Return what the rows depend on: the digest of the file."""
        with self.path.open("rb") as file:
            return {"vectors": hashlib.file_digest(file, "blake2b").hexdigest()}

    def encode(
        self, lines: Iterator[Lines], _: int, writer: EmbeddingWriter, __: int | None
    ) -> Iterator[EncodedLines]:
        """Yield the lines with their rows, brought to length 1."""
        lost = texts = 0
        for part in lines:
            rows = np.array(self.matrix[part.start : part.start + part.count], dtype=np.float64)
            if self._now() != self._stat:  # a map that shrinks is fatal
                raise BitextmineError(f"{self.path}: changed while it was read; run the same command again")
            wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(wrong):
                writer.discard()  # of these vectors nothing will ever come
                raise BitextmineError(
                    f"{self.path}: row {part.start + int(wrong[0]) + 1} holds NaN or infinite numbers"
                )
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            units = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
            filled = np.fromiter((bool(line.strip()) for line in part.fresh), dtype=bool, count=part.count)
            units[~filled] = 0
            lost, texts = lost + int((filled & (length[:, 0] == 0)).sum()), texts + int(filled.sum())
            yield EncodedLines(part, units, 0)
        if lost and lost == texts and not writer.resume_row:
            writer.discard()
            raise BitextmineError(f"{self.path}: every number is zero; make the vectors again")
        if lost:
            message = "%s: the vectors of %s are zero, so these find nothing"
            log.warning(message, self.path, counted(lost, "line"))


def open_precomputed(path: str | os.PathLike[str], rows: int) -> np.ndarray:
    """Map the vectors (rows, dim) of an .npy of float16, float32 or float64, as they are stored, read-only.

    Raises:
        BitextmineError: the file is none, or has another shape; the message states the numbers.
    """
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(matrix, np.ndarray):
            raise ValueError("an .npz")
    except OSError as e:
        raise BitextmineError(f"{path}: cannot read: {e.strerror or e}") from None
    except Exception:  # NumPy parses the header as Python source: damage raises almost anything
        raise BitextmineError(
            f"{path}: not a plain .npy file of numbers, or not whole; numpy.save writes one, as of "
            "numpy.fromfile(...).reshape(-1, DIM)"
        ) from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or matrix.dtype.itemsize > 8 or not matrix.shape[1]:
        raise BitextmineError(
            f"{path}: holds {matrix.dtype} numbers of shape {matrix.shape}, not float16, float32 or float64 of shape "
            "(lines, dim)"
        )
    if len(matrix) != rows:
        raise BitextmineError(
            f"{path}: {counted(len(matrix), 'row')}, but the text has {counted(rows, 'line')}"
        )
    return matrix
