"""From a corpus file to its embedding file: read, tokenise ahead, encode, write, resume."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bitextmine.encoder.encoder import BATCH_TOKENS, Encoder
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.manifest import Manifest
from bitextmine.progress import progress
from bitextmine.store import check_fresh, embedding_paths
from bitextmine.text import LineHasher, corpus_language, iter_lines
from bitextmine.writer import EmbeddingWriter

__all__ = ["embed_corpus", "text_identity"]

log = logging.getLogger(__name__)

# Lines encoded and written together: enough to sort by length and to find repeats, little enough that the
# vectors of a chunk (32,768 x 512 float32 = 64 MiB) do not weigh. A killed run resumes at a chunk's end.
CHUNK_LINES = 32_768


def text_identity(path: str | os.PathLike[str], errors: str = "strict") -> tuple[int, str]:
    """How many lines a corpus has, and the SHA-256 of them; reads it once, and so checks that it can be read."""
    hasher = LineHasher()
    hasher.update(iter_lines(path, errors))
    return hasher.lines, hasher.hexdigest()


def embed_corpus(
    corpus: str | os.PathLike[str],
    encoder: Encoder,
    *,
    out: str | os.PathLike[str] | None = None,
    lang: str | None = None,
    errors: str = "strict",
    batch_tokens: int | None = None,
    chunk_lines: int = CHUNK_LINES,
    force: bool = False,
    show_progress: bool | None = None,
) -> Path:
    """Embeds a corpus and returns the path of its .npy: float16 (lines, dim), row i for line i, unit length.

    Empty and blank lines get the zero row. ``out`` defaults to the corpus' own name without its compression
    suffix, plus .npy; the manifest goes beside it. A finished embedding of the same text and model is left as
    it is unless ``force``; one that a killed run left unfinished is taken up where it stopped, and ends in the
    same bytes. ``corpus`` "-" reads stdin, and needs ``out`` and ``lang``.

    Raises BitextmineError for a corpus that cannot be read or decoded, that changes meanwhile, for a language
    that cannot be told, and for a disk that is full.
    """
    if os.fspath(corpus) == "-":
        if out is None:
            raise BitextmineError("a corpus from stdin needs --out FILE.npy to say where its vectors go")
        if lang is None:
            raise BitextmineError("a corpus from stdin needs --lang, as there is no file name to tell it by")
        with _spooled_stdin(Path(out), errors) as copy:
            job = Job(copy, "-", Path(out), lang, errors)
            return _embed(job, encoder, batch_tokens, chunk_lines, force, show_progress)
    language = corpus_language(corpus, lang)
    npy = Path(out) if out is not None else embedding_paths(corpus)[0]
    job = Job(Path(corpus), Path(corpus).name, npy, language, errors)
    return _embed(job, encoder, batch_tokens, chunk_lines, force, show_progress)


@dataclasses.dataclass(frozen=True)
class Job:
    """One corpus to embed: its text, the name its manifest gives it, where its vectors go."""

    text: Path
    name: str
    npy: Path
    lang: str
    errors: str


def _embed(
    job: Job,
    encoder: Encoder,
    batch_tokens: int | None,
    chunk_lines: int,
    force: bool,
    show_progress: bool | None,
) -> Path:
    if job.npy.suffix != ".npy":
        raise BitextmineError(f"--out {job.npy}: the name of an embedding ends in .npy")
    rows, digest = text_identity(job.text, job.errors)
    if rows == 0:
        raise BitextmineError(f"{job.name}: empty: there is no line to embed")
    if not force and (reason := check_fresh(job.npy, digest, encoder.hash)) is None:
        log.info("%s: up to date (%d lines, model %s)", job.npy, rows, encoder.name)
        return job.npy
    if not force and reason != "not embedded yet":
        log.info("%s: embedding again: %s", job.npy, reason)
    if encoder.languages and job.lang not in encoder.languages:
        log.warning(
            "%s: the encoder '%s' was not trained on '%s' (only on %s): expect poor vectors",
            job.name, encoder.name, job.lang, ", ".join(encoder.languages),
        )  # fmt: skip
    batch_tokens = batch_tokens or BATCH_TOKENS[encoder.device.type]
    identity = {
        "text_sha256": digest,
        "model_hash": encoder.hash,
        # These decide which sentences share a batch, and so the last bit of a vector.
        "chunk_lines": chunk_lines,
        "batch_tokens": batch_tokens,
        "device": encoder.device.type,
    }
    hasher = LineHasher()
    cut = 0
    with (
        EmbeddingWriter(job.npy, rows, encoder.dim, identity) as writer,
        progress(
            rows, f"embed {job.name}", "lines", disable=None if show_progress is None else not show_progress
        ) as bar,
    ):
        bar.update(writer.resume_row)
        if writer.resume_row:
            log.info("%s: resuming at line %d of %d", job.npy, writer.resume_row + 1, rows)
        lines = iter_lines(job.text, job.errors)
        hasher.update(itertools.islice(lines, writer.resume_row))
        for start, chunk in _tokenized(lines, hasher, encoder, writer.resume_row, chunk_lines):
            if start + chunk.lines > rows:
                break
            vectors = encoder.encode_pieces(chunk.pieces, batch_tokens=batch_tokens)
            writer.write(start, vectors if chunk.inverse is None else vectors[chunk.inverse])
            cut += chunk.cut
            bar.update(chunk.lines)
        if hasher.lines != rows or hasher.hexdigest() != digest:
            raise BitextmineError(f"{job.name}: the text changed while it was being embedded; run it again")
        writer.finish(
            Manifest(
                rows=rows, dim=encoder.dim, lang=job.lang, corpus=job.name, text_sha256=digest,
                model=encoder.name, model_hash=encoder.hash,
            )
        )  # fmt: skip
    if cut:
        log.warning(
            "%s: %d of %d lines were longer than %d pieces and were cut",
            job.name, cut, rows, encoder.config.max_pieces,
        )  # fmt: skip
    return job.npy


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive lines, tokenised: pieces of the distinct ones, and for each line its row of pieces."""

    lines: int
    pieces: Pieces
    cut: int
    inverse: np.ndarray | None


def _tokenized(
    lines: Iterator[str], hasher: LineHasher, encoder: Encoder, start: int, chunk_lines: int
) -> Iterator[tuple[int, Chunk]]:
    """Chunks from line ``start`` on, each tokenised while the caller is busy with the one before."""

    def next_chunk() -> Chunk | None:
        part = list(itertools.islice(lines, chunk_lines))
        if not part:
            return None
        hasher.update(part)
        pieces, cut, inverse = encoder.tokenize(part)
        return Chunk(len(part), pieces, cut, inverse)

    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as ahead:
        pending: Future[Chunk | None] = ahead.submit(next_chunk)
        while (chunk := pending.result()) is not None:
            pending = ahead.submit(next_chunk)
            yield start, chunk
            start += chunk.lines


@contextlib.contextmanager
def _spooled_stdin(out: Path, errors: str) -> Iterator[Path]:
    """Stdin as a file beside ``out``: an embedding's size, and so its number of lines, must be known first."""
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            newline="\n",
            dir=out.parent,
            prefix=f".{out.name}.",
            suffix=".stdin",
            delete=False,
        ) as file:
            try:
                file.writelines(line + "\n" for line in iter_lines("-", errors))
                file.flush()
                yield Path(file.name)
            finally:
                Path(file.name).unlink(missing_ok=True)
    except FileNotFoundError:
        raise BitextmineError(f"{out.parent}: no such folder") from None
