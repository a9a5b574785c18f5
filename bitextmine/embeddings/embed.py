"""From a corpus to its embedding file: tokenise ahead, encode, write, resume."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.embeddings import store
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import Manifest, check_fresh, check_vectors_path, journal_path, shards_path
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.encoder.encoder import PRECOMPUTED, Encoder, refuse
from bitextmine.encoder.familiar import sampled, warn_unfamiliar
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import wait_for_lock
from bitextmine.files.corpus import Corpus, Spool, corpus_language
from bitextmine.files.journal import JournalBusyError, remove_folder
from bitextmine.files.output import Destination
from bitextmine.files.source import Source
from bitextmine.run import Run
from bitextmine.system import ahead, processors

log = logging.getLogger(__name__)

_LINES_AT_ONCE = 1 << 12


@dataclasses.dataclass(frozen=True)
class Lines:
    """Consecutive lines of a corpus, `count` from line `start` (from 0) on.

    Attributes:
        known: int64 (count,), the row of the same line in an earlier chunk, -1 for none; None if not looked for.
        fresh: the other lines, to be encoded.
    """

    start: int
    count: int
    known: NDArray[np.int64] | None
    fresh: Sequence[str]

    @property
    def count_fresh(self) -> int:
        """Return the number of lines to encode."""
        return self.count if self.known is None else int((self.known < 0).sum())


class EncodedLines(NamedTuple):
    """Lines with the vectors (count_fresh, dim) of the fresh ones, and how many of these were cut for their length."""

    lines: Lines
    vectors: NDArray[Any]
    cut: int


class Encoding(Protocol):
    """Encodes a corpus outside this process, to the same bytes; when prepared, it has what a `Network` has."""

    chunk_lines: int
    slow: bool

    def prepare(self, folder: Path, batch_tokens: int | None) -> dict[str, Any]:
        """Prepare for vectors that go into a folder; return the `Network.settings` that hold there."""

    def encode(
        self, lines: Iterator[Lines], rows: int, writer: EmbeddingWriter, batch_tokens: int | None
    ) -> Iterator[EncodedLines]:
        """Yield the lines with their vectors, in order; the corpus has `rows` lines, the caller uses `writer`."""


def embed_corpus(
    corpus: Corpus | str | os.PathLike[str],
    encoder: Encoder,
    run: Run | None = None,
    options: EmbedOptions | None = None,
    *,
    lang: str | None = None,
    encoding: Encoding | None = None,
) -> Path:
    """Embed a corpus and return the path of its .npy: float16 (lines, dim), row i for line i, unit length.

    Empty and blank lines get the zero row. A finished embedding of the same text and model is left as it is; an
    interrupted one is resumed, and ends in the same bytes; one that another process is writing is waited for. Files of
    other programs are not written over.

    The path ``-`` is stdin, which needs `lang` and an `out`. `encoding` encodes in place of the encoder, on other
    machines for example.

    Raises:
        BitextmineError: the corpus cannot be read or decoded, or is empty; its language is unknown; a file of another
            program is in its place; the disk is full.
    """
    run, options = run or Run(), options or EmbedOptions()
    text = corpus if isinstance(corpus, Corpus) else Corpus(Source.of(corpus, run), lang)
    source = text.source
    assert source is not None
    if options.out is not None and options.cache is not None:
        raise UsageError("--out and --cache both say where the vectors go; give one of them")
    if source.is_nameless:
        stream = "stdin" if source.is_standard else "a pipe"
        if options.out is None:
            raise UsageError(f"a corpus from {stream} needs --out FILE.npy to say where its vectors go")
        if lang is None and not isinstance(corpus, Corpus):
            raise UsageError(f"a corpus from {stream} needs --lang, as there is no file name to tell it by")
    job = _Job(text, encoder, run, options, encoding)
    if options.out is None and options.cache is None:
        store.vectors_path(source, encoder.hash)  # before the corpus is read
    check_lines(text, job.name)
    if encoder.name == PRECOMPUTED:
        if check_fresh(job.npy, text.sha256, encoder.hash) is not None:
            refuse(job.name)
        return job.npy
    warn_unfamiliar(encoder, job.name, text.lang, sampled(text.lines()))
    return job.up_to_date()


def check_lines(text: Corpus, name: str) -> None:
    """Read a corpus; BitextmineError, with its name, if it cannot be read or decoded, or is empty."""
    if not len(text):
        raise BitextmineError(f"{name}: empty: there is no line to embed")


def check_embedding(
    source: Source, encoder: Encoder, options: EmbedOptions | None = None, *, lang: str | None = None
) -> None:
    """Raise BitextmineError, before any work, for a missing corpus, an unknown language, or no place for vectors."""
    options = options or EmbedOptions()
    if not source.reads_once:
        source.check()
        corpus_language(source, lang)
    npy = None if options.out is None else Path(options.out)
    if npy is None and options.cache is not None:
        store.make_cache(options.cache)
    elif npy is None and not source.reads_once:
        npy = store.vectors_path(source, encoder.hash)
    if npy is not None and (destination := Destination.of(npy)).is_stream:
        destination.check(stream=False)
    if npy is not None and not (options.force or options.overwrite):
        check_vectors_path(npy)


def embed_lines(corpus: Corpus, encoder: Encoder, run: Run, keep_pieces: bool = False) -> NDArray[np.float16]:
    """Return the vectors of a corpus in memory, (lines, d) float16: the numbers an embedding file would hold."""
    check_lines(corpus, corpus.name)
    warn_unfamiliar(encoder, corpus.name, corpus.lang, sampled(corpus.lines()))
    matrix = np.empty((len(corpus), encoder.dim), dtype=np.float16)
    # As in files: lines that share a batch decide the last bit.
    lines = _chunks(corpus, encoder.network.chunk_lines)
    kept = _PieceSpool() if keep_pieces else None
    for part in encode_lines(encoder, lines, run.batch_tokens, kept):
        matrix[part.lines.start : part.lines.start + part.lines.count] = part.vectors
    if kept is not None:
        corpus.derive(("pieces", encoder.hash), kept.pieces)
    return matrix


def corpus_pieces(corpus: Corpus, encoder: Encoder) -> Pieces:
    """Return the pieces of every line of a corpus: those kept when it was embedded, or else tokenised now."""

    def tokenised() -> Pieces:
        kept, lines = _PieceSpool(), corpus.lines()
        while part := list(itertools.islice(lines, _LINES_AT_ONCE)):
            kept.append(encoder.cut(part, processors())[0], None)
        return kept.pieces()

    pieces: Pieces = corpus.derive(("pieces", encoder.hash), tokenised)
    return pieces


class _PieceSpool:
    """Tokenised lines, packed in memory or, if they are many, in a temporary file."""

    def __init__(self) -> None:
        self._ids, self._offsets, self._total = Spool(), Spool(), 0
        self._offsets.append(bytes(8))

    def append(self, pieces: Pieces, inverse: NDArray[np.int64] | None) -> None:
        """Add lines; line i has the pieces of sentence inverse[i], or i."""
        pieces = pieces if inverse is None else pieces.take(inverse)
        self._ids.append(np.asarray(pieces.ids, dtype=np.int32).tobytes())
        self._offsets.append((pieces.offsets[1:] + self._total).astype(np.int64).tobytes())
        self._total += int(pieces.offsets[-1])

    def pieces(self) -> Pieces:
        """Return all of them; append nothing after this."""
        ids = self._ids.as_array(np.int32) if self._total else np.zeros(0, dtype=np.int32)
        return Pieces(ids, self._offsets.as_array(np.int64))


def _chunks(corpus: Corpus, size: int, start: int = 0, find_repeats: bool = False) -> Iterator[Lines]:
    first = _first_rows(corpus) if find_repeats else None
    lines = corpus.lines(start)
    while part := list(itertools.islice(lines, size)):
        known, fresh = None, part
        if first is not None:
            rows = first[start : start + len(part)]
            if (rows < start).any():
                known = np.where(rows < start, rows, -1)
                fresh = [line for line, row in zip(part, known.tolist(), strict=True) if row < 0]
        yield Lines(start, len(part), known, fresh)
        start += len(part)


def encode_lines(
    encoder: Encoder, lines: Iterator[Lines], batch_tokens: int | None, kept: _PieceSpool | None = None
) -> Iterator[EncodedLines]:
    """Yield lines with their vectors; each chunk is tokenised while the one before is encoded and written.

    `kept` gets the tokenised lines.
    """

    def encoded(pieces: Pieces, inverse: NDArray[np.int64] | None) -> NDArray[Any]:
        # A function of its own, so that nothing here holds the vectors while the next ones are made.
        vectors = encoder.encode_pieces(pieces, batch_tokens=batch_tokens)
        return vectors if inverse is None else vectors[inverse]

    tokenized = ((part, *encoder.tokenize(part.fresh)) for part in lines)
    with contextlib.closing(ahead(tokenized)) as chunks:
        for part, pieces, cut, inverse in chunks:
            if kept is not None:
                kept.append(pieces, inverse)
            yield EncodedLines(part, encoded(pieces, inverse), cut)


@dataclasses.dataclass
class _Job:
    text: Corpus
    encoder: Encoder
    run: Run
    options: EmbedOptions
    encoding: Encoding | None

    @property
    def name(self) -> str:
        source = self.text.source
        return "-" if source is not None and source.is_nameless else self.text.name

    @property
    def npy(self) -> Path:
        if self.options.out is not None:
            return Path(self.options.out)
        return store.embedding_path(self.text, self.encoder.hash, self.options.cache)

    def up_to_date(self) -> Path:
        options, lines = self.options, counted(len(self.text), "line")
        while True:
            npy = self.npy
            reason = check_fresh(npy, self.text.sha256, self.encoder.hash)
            if reason is None and not options.force:
                log.info("%s: up to date (%s, model %s)", npy, lines, self.encoder.name)
                return npy
            if not (options.force or options.overwrite):
                check_vectors_path(npy)
            if not options.force and reason != "not embedded yet":
                log.info("%s: embedding again: %s", npy, reason)
            try:
                if self._make(npy):
                    log.info("%s: %s embedded (model %s)", npy, lines, self.encoder.name)
                    return npy
            except JournalBusyError:
                log.info("%s: another process is writing this embedding: waiting for it", npy)
                wait_for_lock(journal_path(npy))

    def _make(self, npy: Path) -> bool:
        """Embed the text; False if another process has put something else there, JournalBusyError if it is about to."""
        encoder, options, text, batch_tokens = self.encoder, self.options, self.text, self.run.batch_tokens
        encoding = self.encoding
        if encoding is None:
            settings = encoder.network.settings(batch_tokens)
        else:
            settings = encoding.prepare(npy.parent, batch_tokens)
        network = encoding or encoder.network
        origin: dict[str, Any] = {"text_sha256": text.sha256, "model_hash": encoder.hash}
        # Chunks and settings decide which sentences share a batch, and so the last bit of a vector.
        how = {"chunk_lines": options.chunk_lines or network.chunk_lines, **settings}
        overwrite = options.force or options.overwrite
        writer = EmbeddingWriter(npy, len(text), encoder.dim, {**origin, **how}, overwrite=overwrite)
        if self.npy != npy:
            writer.discard()
            return False
        cut = 0
        with writer, self.run.progress(len(text), f"embed {self.name}") as bar:
            bar.update(writer.resume_row)
            if writer.resume_row:
                log.info("%s: resuming at line %d of %d", npy, writer.resume_row + 1, len(text))
            lines = _chunks(text, how["chunk_lines"], writer.resume_row, find_repeats=network.slow)
            keep = options.keep_pieces and not (encoding or writer.resume_row or network.slow)
            kept = _PieceSpool() if keep else None
            if encoding is None:
                encoded = encode_lines(encoder, lines, batch_tokens, kept)
            else:
                encoded = encoding.encode(lines, len(text), writer, batch_tokens)
            for part in encoded:
                writer.write(part.lines.start, _rows(part, writer))
                cut += part.cut
                bar.update(part.lines.count)
                del part  # its vectors, before the next ones are made
            if kept is not None:
                text.derive(("pieces", encoder.hash), kept.pieces)
            writer.finish(Manifest(lang=text.lang, corpus=self.name, model=encoder.name, **origin))
        remove_folder(shards_path(npy), "shards")
        if cut:
            message = "%s: longer than %d pieces, and cut: at least %d of %s"
            log.warning(message, self.name, encoder.max_pieces, cut, counted(len(text), "line"))
        return True


def _rows(part: EncodedLines, writer: EmbeddingWriter) -> NDArray[Any]:
    """Return the rows (count, dim) of lines: new vectors, and copies of rows that are written already."""
    if part.lines.known is None:
        return part.vectors
    known = part.lines.known >= 0
    rows = np.empty((part.lines.count, writer.dim), dtype=np.float16)
    rows[known] = writer.read(part.lines.known[known])
    rows[~known] = part.vectors
    return rows


def _first_rows(corpus: Corpus) -> NDArray[np.int64]:
    """Return int64 (lines,): the first row of each line's text."""
    hashes = (hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=8) for line in corpus)
    keys = np.fromiter((int.from_bytes(digest.digest()) for digest in hashes), np.uint64, len(corpus))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse]
