"""From a corpus file to its embedding file: read, tokenise ahead, encode, write, resume."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bitextmine.console import counted, progress
from bitextmine.embeddings.manifest import Manifest
from bitextmine.embeddings.npy import part_path, shards_path
from bitextmine.embeddings.places import cached_path, embedding_paths, make_cache, place_of
from bitextmine.embeddings.shared import beside, check_cached, fetched
from bitextmine.embeddings.store import check_fresh, check_place
from bitextmine.embeddings.writer import BeingWritten, EmbeddingWriter, PlaceTaken, sweep
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.familiar import sampled, warn_unfamiliar
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.precomputed import PRECOMPUTED, refuse
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import staging, wait_for_lock
from bitextmine.files.corpora import corpus_language
from bitextmine.files.journal import remove_folder
from bitextmine.files.lines import LineHasher, iter_lines
from bitextmine.files.storage import Place, Remote, local, place
from bitextmine.files.streams import read_once
from bitextmine.files.urls import is_remote

__all__ = ["EncodedLines", "Encoding", "Lines", "check_embedding", "embed_corpus"]

log = logging.getLogger(__name__)

# Lines whose rows are remembered, to copy rather than encode a line that comes again. Kept in two generations of
# this many, about 90 MB each: web text repeats the same few thousand lines all along.
REMEMBERED = 1 << 19


@dataclasses.dataclass(frozen=True)
class Lines:
    """Consecutive lines of a corpus, `count` from line `start` on (counted from 0).

    known (count,) int64: the row of the same line in an earlier chunk, -1 where there is none; None: not looked for,
    or none found. fresh: the others, which are to be encoded. sha256: of the text up to the end of these lines.
    """

    start: int
    count: int
    known: np.ndarray | None
    fresh: Sequence[str]
    sha256: str

    @property
    def count_fresh(self) -> int:
        """How many lines are to be encoded."""
        return self.count if self.known is None else int((self.known < 0).sum())

    def without_text(self) -> Lines:
        """The same, less the lines themselves."""
        return dataclasses.replace(self, fresh=())


@dataclasses.dataclass(frozen=True)
class EncodedLines:
    """Lines with the vectors (count_fresh, dim) of the fresh ones, and how many of these were found too long."""

    lines: Lines
    vectors: np.ndarray
    cut: int


class Encoding(Protocol):
    """Encodes a corpus in another place than this process: the same bytes as an `Encoder` of the same settings.

    chunk_lines, slow: as of a `Network`; known once it is prepared.
    """

    chunk_lines: int
    slow: bool

    def prepare(self, folder: Path, batch_tokens: int | None) -> dict[str, Any]:
        """Makes ready for vectors that go into a folder; returns the `Network.settings` that hold there."""

    def encode(
        self, lines: Iterator[Lines], rows: int, writer: EmbeddingWriter, batch_tokens: int | None
    ) -> Iterator[EncodedLines]:
        """The lines with their vectors, in order. rows: how many the whole corpus has; writer: what the caller writes
        them with."""


@dataclasses.dataclass(frozen=True)
class TextIdentity:
    """A corpus as it was when it was read first: how many lines, and the SHA-256 of them all and of the lines up
    to the end of each chunk."""

    lines: int
    sha256: str
    chunks: tuple[str, ...]


def text_identity(path: str | os.PathLike[str], errors: str, chunk_lines: int) -> TextIdentity:
    """Reads a corpus once, and so checks that it can be read."""
    hasher = LineHasher()
    lines = iter_lines(path, errors)
    chunks = []
    while part := list(itertools.islice(lines, chunk_lines)):
        hasher.update(part)
        chunks.append(hasher.hexdigest())
    return TextIdentity(hasher.lines, hasher.hexdigest(), tuple(chunks))


def embed_corpus(
    corpus: str | os.PathLike[str],
    encoder: Encoder,
    *,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    lang: str | None = None,
    errors: str = "strict",
    batch_tokens: int | None = None,
    chunk_lines: int | None = None,
    force: bool = False,
    overwrite: bool = False,
    wait: bool = True,
    elsewhere: str = "--cache",
    show_progress: bool | None = None,
    encoding: Encoding | None = None,
) -> Path:
    """Embeds a corpus and returns the path of its .npy: float16 (lines, dim), row i for line i, unit length.

    Empty and blank lines get the zero row. ``out`` defaults to the corpus' own name without its compression
    suffix, plus .npy, or, where that has the vectors of another model, a name of this model's (`places`); in a folder
    ``cache`` instead, where one is given. The manifest goes beside it. A finished embedding of the same text and model
    is left as it is unless ``force``; one that a killed run left unfinished is taken up where it stopped, and ends in
    the same bytes. What lies there and is no embedding of ours is written over with ``force`` or ``overwrite`` only.
    One that another process is writing is waited for, or, without ``wait``, an error. ``corpus`` "-" reads stdin, and
    needs ``out`` and ``lang``, as pipes without a name do. elsewhere: the option that messages advise where it cannot
    be written. encoding: what encodes in the place of ``encoder``, on other machines for one.

    Raises BitextmineError for a corpus that cannot be read or decoded, that changes meanwhile, for a language
    that cannot be told, for files of others in its place, and for a disk that is full.
    """
    if out is not None and cache is not None:
        raise UsageError("--out and --cache both say where the vectors go; give one of them")
    if out is not None:
        local(out, "vectors are written in place, which only a file of this machine can be")
    how = How(
        encoder,
        batch_tokens,
        chunk_lines or encoder.network.chunk_lines,
        force,
        force or overwrite,
        wait,
        show_progress,
        encoding,
        chunk_lines is None,
    )
    name = place(corpus).name
    if read_once(corpus):
        nameless = os.fspath(corpus) == "-" or os.fspath(corpus).startswith(("/dev/", "/proc/"))
        what = "stdin" if os.fspath(corpus) == "-" else "a pipe"
        if nameless and out is None:
            raise UsageError(f"a corpus from {what} needs --out FILE.npy to say where its vectors go")
        if nameless and lang is None:
            raise UsageError(f"a corpus from {what} needs --lang, as there is no file name to tell it by")
        language = lang if nameless and lang else corpus_language(corpus, lang)
        near = Path(out) if out is not None else embedding_paths(corpus)[0]
        if cache is not None:
            near = make_cache(cache) / name
        with _spooled(corpus, near, errors) as copy:
            job = Job(copy, "-" if nameless else name, place(corpus), out, cache, language, errors, elsewhere)
            return _embed(job, how)
    language = corpus_language(corpus, lang)
    if is_remote(corpus) and out is None:
        check_cached(corpus, cache)
    return _embed(Job(place(corpus), name, place(corpus), out, cache, language, errors, elsewhere), how)


def check_embedding(
    corpus: str | os.PathLike[str],
    encoder: Encoder,
    *,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    lang: str | None = None,
    overwrite: bool = False,
) -> None:
    """Raises BitextmineError, as `embed_corpus` does with the same arguments, for a language that cannot be told and
    for a place that vectors cannot go to: to be asked of all the corpora before the work on the first."""
    if not read_once(corpus):
        corpus_language(corpus, lang)
    if is_remote(corpus) and out is None:
        check_cached(corpus, cache)
    if out is not None and not overwrite:
        check_place(out, encoder.dim)
    elif out is None and cache is not None:
        make_cache(cache)
    elif not read_once(corpus) and not overwrite:
        check_place(place_of(corpus, encoder.hash), encoder.dim)


@dataclasses.dataclass(frozen=True)
class Job:
    """One corpus to embed: its text, the name its manifest gives it, the corpus as it was named, the file or the folder
    for its vectors (where given), its language, what to do about invalid UTF-8 (`iter_lines`), and the option that
    messages advise where the vectors cannot be written."""

    text: Place
    name: str
    corpus: Place
    out: str | os.PathLike[str] | None
    cache: str | os.PathLike[str] | None
    lang: str
    errors: str
    elsewhere: str

    def may_fetch(self, how: How) -> bool:
        """Whether vectors that lie beside the corpus, in shared storage, are to be looked for."""
        return not how.force and isinstance(self.corpus, Remote) and self.cache is not None

    def place(self, text_sha256: str, model_hash: str) -> Path:
        """Where its vectors go, as things stand."""
        if self.out is not None:
            return Path(self.out)
        if self.cache is not None:
            return cached_path(self.cache, self.corpus, text_sha256, model_hash)
        return place_of(self.corpus, model_hash)


@dataclasses.dataclass(frozen=True)
class How:
    """What it is embedded with, and what `embed_corpus` is told besides."""

    encoder: Encoder
    batch_tokens: int | None
    chunk_lines: int
    force: bool
    overwrite: bool
    wait: bool
    show_progress: bool | None
    encoding: Encoding | None = None
    own_chunks: bool = True  # chunks are as long as suits who encodes them


def _embed(job: Job, how: How) -> Path:
    """Embeds what is not up to date, and tells of it in the log."""
    if job.out is not None and Path(job.out).suffix != ".npy":
        raise BitextmineError(f"--out {job.out}: the name of an embedding ends in .npy")
    encoder = how.encoder
    text = text_identity(job.text, job.errors, how.chunk_lines)
    if text.lines == 0:
        raise BitextmineError(f"{job.name}: empty: there is no line to embed")
    if encoder.name == PRECOMPUTED:
        return _up_to_date(job, how, text)
    # Beside the work: telling languages takes half a second to begin with.
    sample = sampled(iter_lines(job.text, job.errors))
    with ThreadPoolExecutor(1, thread_name_prefix="languages") as beside:
        warned = beside.submit(warn_unfamiliar, encoder, job.name, job.lang, sample)
        npy = _up_to_date(job, how, text)
        warned.result()
    return npy


def _up_to_date(job: Job, how: How, text: TextIdentity) -> Path:
    """Embeds a text where its vectors are not up to date, and returns where they are."""
    encoder = how.encoder
    if job.cache is not None:
        make_cache(job.cache)
    told: set[str] = set()
    while True:
        npy = job.place(text.sha256, encoder.hash)
        reason = check_fresh(npy, text.sha256, encoder.hash)
        if reason is None and not how.force:
            sweep(npy)
            log.info("%s: up to date (%s, model %s)", npy, counted(text.lines, "line"), encoder.name)
            return npy
        if job.may_fetch(how) and fetched(beside(job.corpus), npy, text.sha256, encoder.hash):
            continue
        if encoder.name == PRECOMPUTED:
            refuse(job.name)
        if not how.overwrite:
            check_place(npy, encoder.dim)
        try:
            return _make(job, npy, text, how, reason)
        except BeingWritten as e:
            if not how.wait:
                raise
            message = f"{npy}: {e.holder} is writing this embedding now: waiting for it"
            if message not in told:
                log.info("%s", message)
            told.add(message)
            wait_for_lock(part_path(npy))
        except PlaceTaken:
            continue


def _make(job: Job, npy: Path, text: TextIdentity, how: How, reason: str | None) -> Path:
    """Embeds a corpus, tells of it in the log, and returns ``npy``. Raises BeingWritten and PlaceTaken before the work,
    where another process was faster."""
    encoder = how.encoder
    if how.encoding is None:
        settings, slow = encoder.network.settings(how.batch_tokens), encoder.network.slow
    else:
        settings, slow = how.encoding.prepare(npy.parent, how.batch_tokens), how.encoding.slow
        if how.own_chunks and how.encoding.chunk_lines != how.chunk_lines:
            how = dataclasses.replace(how, chunk_lines=how.encoding.chunk_lines)
            text = dataclasses.replace(
                text, chunks=text_identity(job.text, job.errors, how.chunk_lines).chunks
            )
    writer = EmbeddingWriter(
        npy,
        text.lines,
        encoder.dim,
        {
            "text_sha256": text.sha256,
            "model_hash": encoder.hash,
            # These decide which sentences share a batch, and so the last bit of a vector.
            "chunk_lines": how.chunk_lines,
            **settings,
        },
        still_free=lambda: job.place(text.sha256, encoder.hash) == npy,
        elsewhere=job.elsewhere,
    )
    beside = embedding_paths(job.corpus)[0]
    if job.out is None and job.cache is None and npy != beside and beside.exists():
        log.info("%s: has vectors of another model; those of %s go to %s", beside, encoder.name, npy.name)
    if not how.force and reason not in (None, "not embedded yet"):
        log.info("%s: embedding again: %s", npy, reason)
    cut = _write(job, writer, text, how, slow)
    remove_folder(shards_path(npy), "shards")
    log.info("%s: %s embedded (model %s)", npy, counted(text.lines, "line"), encoder.name)
    if cut:
        log.warning(
            "%s: longer than %d pieces, and cut: at least %d of %s",
            job.name,
            encoder.max_pieces,
            cut,
            counted(text.lines, "line"),
        )
    return npy


def _write(job: Job, writer: EmbeddingWriter, text: TextIdentity, how: How, slow: bool) -> int:
    """Encodes what is not written yet, and finishes the embedding; returns how many lines were found too long."""
    encoder = how.encoder
    cut = 0
    with writer, progress(text.lines, f"embed {job.name}", "lines", show=how.show_progress) as bar:
        bar.update(writer.resume_row)
        if writer.resume_row:
            log.info("%s: resuming at line %d of %d", writer.npy_path, writer.resume_row + 1, text.lines)
        lines = _read(job, text, slow, writer.resume_row, how.chunk_lines)
        if how.encoding is None:
            encoded = _encoded(lines, encoder, how.batch_tokens)
        else:
            encoded = how.encoding.encode(lines, text.lines, writer, how.batch_tokens)
        for part in encoded:
            writer.write(part.lines.start, _rows(part, writer))
            cut += part.cut
            bar.update(part.lines.count)
        writer.finish(
            Manifest(
                rows=text.lines,
                dim=encoder.dim,
                lang=job.lang,
                corpus=job.name,
                text_sha256=text.sha256,
                model=encoder.name,
                model_hash=encoder.hash,
            )
        )
    return cut


def _rows(part: EncodedLines, writer: EmbeddingWriter) -> np.ndarray:
    """The rows (count, dim) of lines, from the vectors of the fresh ones and from the rows that are written already."""
    if part.lines.known is None:
        return part.vectors
    known = part.lines.known >= 0
    rows = np.empty((part.lines.count, writer.dim), dtype=np.float16)
    rows[known] = writer.read(part.lines.known[known])
    rows[~known] = part.vectors
    return rows


def _encoded(lines: Iterator[Lines], encoder: Encoder, batch_tokens: int | None) -> Iterator[EncodedLines]:
    """Lines with their vectors, each chunk tokenised while the one before is encoded and while the caller is busy."""

    def next_chunk() -> tuple[Lines, Pieces, int, np.ndarray | None] | None:
        part = next(lines, None)
        return None if part is None else (part, *encoder.tokenize(part.fresh))

    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as ahead:
        pending = ahead.submit(next_chunk)
        while (chunk := pending.result()) is not None:
            pending = ahead.submit(next_chunk)
            part, pieces, cut, inverse = chunk
            vectors = encoder.encode_pieces(pieces, batch_tokens=batch_tokens)
            yield EncodedLines(part, vectors if inverse is None else vectors[inverse], cut)


def _read(job: Job, text: TextIdentity, slow: bool, resume_row: int, chunk_lines: int) -> Iterator[Lines]:
    """Chunks of lines from row ``resume_row`` on. slow: whether lines that came before are looked for.

    Raises BitextmineError before a chunk, if it or a line before it is not what it was when ``text`` was read:
    what has been written then stays right for that text.
    """
    lines = iter_lines(job.text, job.errors)
    hasher = LineHasher()
    repeats = Repeats() if slow else None

    def next_lines() -> list[str]:
        part = list(itertools.islice(lines, chunk_lines))
        hasher.update(part)
        done = -(-hasher.lines // chunk_lines)
        as_read = (
            text.chunks[done - 1 : done] == (hasher.hexdigest(),) if part else hasher.lines == text.lines
        )
        if not as_read:
            raise BitextmineError(f"{job.name}: the text changed while it was being embedded; run it again")
        return part

    def chunks() -> Iterator[Lines]:
        while part := next_lines():
            start = hasher.lines - len(part)
            known, fresh = None, part
            if repeats is not None:
                known = repeats.find(part, start)
                fresh = [line for line, row in zip(part, known.tolist(), strict=True) if row < 0]
                if len(fresh) == len(part):
                    known = None
            yield Lines(start, len(part), known, fresh, hasher.hexdigest())

    while hasher.lines < resume_row:
        part = next_lines()
        if repeats is not None:
            repeats.find(part, hasher.lines - len(part))
    return chunks()


class Repeats:
    """Finds lines that came before, among the last half a million distinct ones at least.

    What is found depends on the lines alone: a run that resumes finds what an unbroken one does.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._old: dict[bytes, int] = {}
        self._new: dict[bytes, int] = {}

    def find(self, lines: Sequence[str], start: int) -> np.ndarray:
        """(lines,) int64: for line ``start + i`` of the text its first row, if that is below ``start``, else -1."""
        found = np.full(len(lines), -1, dtype=np.int64)
        for i, line in enumerate(lines):
            key = hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            row = self._new.get(key)
            if row is None:
                if len(self._new) >= self._remembered:
                    self._old, self._new = self._new, {}
                row = self._new[key] = self._old.get(key, start + i)
            if row < start:
                found[i] = row
        return found


@contextlib.contextmanager
def _spooled(corpus: str | os.PathLike[str], near: Path, errors: str) -> Iterator[Path]:
    """What can be read once as a file beside ``near``: an embedding's size, and so its number of lines, must be known
    first."""
    try:
        with staging(near, "stdin") as (copy, file):
            file.writelines(f"{line}\n".encode() for line in iter_lines(corpus, errors))
            file.flush()
            yield copy
    except FileNotFoundError:
        raise BitextmineError(f"{near.parent}: no such folder") from None
