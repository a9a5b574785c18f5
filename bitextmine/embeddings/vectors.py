"""Vectors that another tool made of a corpus, adopted as its embedding."""

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.console import counted
from bitextmine.embeddings.embed import check_embedding, check_lines
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import Manifest, vectors_path
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
    run: Run,
    options: EmbedOptions,
    *,
    lang: str | None = None,
) -> Path:
    """Make vectors of another tool the embedding of a corpus, and return the path of its .npy.

    Row i belongs to line i, and is scaled to length 1, in float16; a blank line has the zero row. `mine` and `index`
    use it as that of the model "precomputed".

    `vectors` is an .npy of float16, float32 or float64 (lines, dim). Of the options `out` and `force` count.

    Raises:
        BitextmineError: the file is no matrix of floats, its rows are not as many as the lines, or it holds NaN or
            infinite numbers, or nothing but zeros.
    """
    source = Source.of(corpus, run)
    npy = Path(options.out) if options.out is not None else vectors_path(source, PRECOMPUTED)
    if os.path.realpath(npy) == os.path.realpath(vectors):
        raise BitextmineError(
            f"{vectors}: is the embedding itself; name another file with --out, or move the vectors"
        )
    text = Corpus(source, lang)
    check_lines(text, text.name)
    matrix = _open(vectors, len(text))
    check_embedding(source, load_encoder(PRECOMPUTED), options, lang=lang)
    with Path(vectors).open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b").hexdigest()
    origin: dict[str, Any] = {"text_sha256": text.sha256, "model_hash": PRECOMPUTED}
    identity, overwrite = {**origin, "vectors": digest}, options.force or options.overwrite
    with EmbeddingWriter(npy, len(text), matrix.shape[1], identity, overwrite=overwrite) as writer:
        start = writer.resume_row
        try:
            for rows in _unit_rows(Path(vectors), matrix, text, start):
                writer.write(start, rows)
                start += len(rows)
        except BitextmineError:
            writer.discard()  # of these vectors nothing will ever come
            raise
        writer.finish(Manifest(lang=text.lang, corpus=text.name, model=PRECOMPUTED, **origin))
    log.info("%s: %s embedded (model %s)", npy, counted(len(text), "line"), PRECOMPUTED)
    return npy


def _unit_rows(path: Path, matrix: np.ndarray, text: Corpus, start: int) -> Iterator[np.ndarray]:
    """Yield blocks of rows from number `start` on, brought to length 1."""
    opened, lines = path.stat(), text.lines(start)
    zeros = texts = 0
    for first in range(start, len(matrix), BLOCK_ROWS):
        rows = np.array(matrix[first : first + BLOCK_ROWS], dtype=np.float64)
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (opened.st_size, opened.st_mtime_ns):
            raise BitextmineError(f"{path}: changed while it was read; run the same command again")
        wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(wrong):
            raise BitextmineError(f"{path}: row {first + int(wrong[0]) + 1} holds NaN or infinite numbers")
        filled = np.array([bool(next(lines).strip()) for _ in rows])
        length = np.linalg.norm(rows, axis=1)
        zeros, texts = zeros + int((filled & (length == 0)).sum()), texts + int(filled.sum())
        rows[~filled] = 0
        yield np.divide(rows, length[:, None], out=rows, where=length[:, None] > 0)
    if zeros and zeros == texts and not start:
        raise BitextmineError(f"{path}: every number is zero; make the vectors again")
    if zeros:
        message = "%s: the vectors of %s are zero, so these find nothing"
        log.warning(message, path, counted(zeros, "line"))


def _open(path: str | os.PathLike[str], rows: int) -> np.ndarray:
    """Map the vectors (rows, dim) as they are stored, read-only."""
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
