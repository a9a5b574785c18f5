"""Vectors that another tool made of a corpus, adopted as its embedding."""

import dataclasses
import hashlib
import logging
import os
from pathlib import Path

import numpy as np

from bitextmine.console import counted
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import Manifest, check_vectors_path, vectors_path
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.encoder.encoder import PRECOMPUTED
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
    text = Corpus(source, lang)
    language = text.lang
    npy = Path(options.out) if options.out is not None else vectors_path(source, PRECOMPUTED)
    if os.path.realpath(npy) == os.path.realpath(vectors):
        raise BitextmineError(
            f"{vectors}: is the embedding itself; name another file with --out, or move the vectors"
        )
    if not len(text):
        raise BitextmineError(f"{corpus}: empty: there is no line to embed")
    matrix = open_precomputed(vectors, len(text))
    before = Path(vectors).stat()
    if not options.force:
        check_vectors_path(npy)
    with open(vectors, "rb") as file:
        digest = hashlib.file_digest(file, "blake2b").hexdigest()
    identity = {"text_sha256": text.sha256, "model_hash": PRECOMPUTED, "vectors": digest}
    blank = np.fromiter((not line.strip() for line in text.lines()), dtype=bool, count=len(text))
    name = Path(corpus).name
    with (
        EmbeddingWriter(npy, len(matrix), matrix.shape[1], identity, overwrite=options.force) as writer,
        run.progress(len(matrix), f"embed {name}") as bar,
    ):
        lost = 0
        for start in range(writer.resume_row, len(matrix), BLOCK_ROWS):
            rows = np.array(matrix[start : start + BLOCK_ROWS], dtype=np.float64)
            now = Path(vectors).stat()
            if (now.st_size, now.st_mtime_ns) != (
                before.st_size,
                before.st_mtime_ns,
            ):  # a map that shrinks is fatal
                raise BitextmineError(f"{vectors}: changed while it was read; run the same command again")
            wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(wrong):
                writer.discard()  # of these vectors nothing will ever come
                raise BitextmineError(
                    f"{vectors}: row {start + int(wrong[0]) + 1} holds NaN or infinite numbers"
                )
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            units = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
            lost += int(((length[:, 0] == 0) & ~blank[start : start + len(rows)]).sum())
            units[blank[start : start + len(rows)]] = 0
            writer.write(start, units)
            bar.update(len(rows))
        if lost and lost == int((~blank).sum()):
            writer.discard()
            raise BitextmineError(f"{vectors}: every number is zero; make the vectors again")
        if lost:
            log.warning(
                "%s: the vectors of %s are zero, so these find nothing", vectors, counted(lost, "line")
            )
        made = Manifest(lang=language, corpus=name, text_sha256=text.sha256)
        writer.finish(dataclasses.replace(made, model=PRECOMPUTED, model_hash=PRECOMPUTED))
    log.info("%s: %s from %s", npy, counted(len(matrix), "line"), Path(vectors).name)
    return npy


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
