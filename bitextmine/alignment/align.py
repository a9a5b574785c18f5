"""Align documents: the function `bitextmine.align`, and the work of the command ``align`` on files."""

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitextmine.alignment.aligner import Aligner, Link
from bitextmine.alignment.anchors import fixed_points
from bitextmine.alignment.documents import match_documents
from bitextmine.alignment.evidence import PieceEvidence
from bitextmine.alignment.formats import AlignedDocument, Content, open_links
from bitextmine.alignment.inputs import Document, DocumentPair, Reader, and_more, document_name, documents_of
from bitextmine.alignment.options import AlignOptions, choose_format
from bitextmine.alignment.second import SecondJudge
from bitextmine.alignment.windows import make_windows
from bitextmine.console import Progress, counted, silent
from bitextmine.declarations import keywords
from bitextmine.documents.sources import language_of
from bitextmine.encoder import load_encoder
from bitextmine.encoder.familiar import sampled, warn_unfamiliar
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.names import FORMATS
from bitextmine.files.formats.table import check_pairs_output
from bitextmine.files.journal import Journal
from bitextmine.files.output import Destination, keep_apart
from bitextmine.files.source import Source, line_digest
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature
from bitextmine.version import __version__

_EXCERPT = 3  # times the sentences of the other side: then a low probability says little
# Documents are encoded together up to these numbers.
_BATCH_SENTENCES, _BATCH_DOCUMENTS = 20_000, 32

Text = Iterable[str] | str | os.PathLike[str]


@dataclass
class Summary:
    """Counts over all document pairs.

    Attributes:
        paired, one_to_one: links of two sides, and those of one sentence each.
        likely: the sum of the sentences' probabilities.
        doubtful: documents that hardly look like translations of each other, and why.
        empty: pairs of documents of which a side has no text.
        alone: documents without a partner.
        cut: documents that were cut into sentences.
        second: what a second encoder was asked.
    """

    documents: int = 0
    sentences: list[int] = field(default_factory=lambda: [0, 0])
    links: int = 0
    paired: int = 0
    one_to_one: int = 0
    likely: float = 0.0
    doubtful: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    second: str = ""
    signature: str = ""

    def add(self, document: AlignedDocument) -> None:
        """Count a document pair."""
        self.documents += 1
        self.links += len(document)
        sizes = [(len(link.src_lines), len(link.tgt_lines)) for link in document]
        counts = [sum(side) for side in zip(*sizes, strict=True)] or [0, 0]
        self.sentences = [a + b for a, b in zip(self.sentences, counts, strict=True)]
        self.paired += sum(s > 0 and t > 0 for s, t in sizes)
        self.one_to_one += sizes.count((1, 1))
        self.likely += document.mean_score * sum(counts)
        if not all(counts):
            sides = [side for side, count in zip(("source", "target"), counts, strict=True) if not count]
            self.empty.append(f"{document.name} ({' and '.join(sides)})")
        elif document.doubtful:
            more, less = ("source", "target") if counts[0] > counts[1] else ("target", "source")
            times = max(counts) / min(counts)
            excerpt = (
                f"; the {more} has {times:.0f} times the sentences of the {less}" if times > _EXCERPT else ""
            )
            self.doubtful.append(f"{document.name} (mean probability {document.mean_score:.2f}{excerpt})")

    def to_table(self) -> str:
        """Return the counts as text."""
        src, tgt = self.sentences
        lines = [
            f"{counted(self.documents, 'pair')} of documents, {counted(src, 'source sentence')} and "
            f"{counted(tgt, 'target sentence')}: {counted(self.paired, 'pair')} ({self.one_to_one:,} one to one), "
            f"{counted(self.links - self.paired, 'sentence')} left out, mean probability "
            f"{self.likely / max(1, src + tgt):.2f}"
        ]
        if self.cut:
            were = "was" if len(self.cut) == 1 else "were"
            lines.append(
                f"{counted(len(self.cut), 'document')} {were} not one sentence per line and {were} split "
                f"({and_more(self.cut)}). Line numbers refer to the split sentences; --presplit keeps the lines."
            )
        if self.alone:
            lines.append(f"{counted(len(self.alone), 'document')} without a partner: {and_more(self.alone)}")
        if self.empty:
            pairs = counted(len(self.empty), "pair")
            lines.append(f"warning: {pairs} of documents with an empty side: {and_more(self.empty)}")
        if self.doubtful:
            several = counted(len(self.doubtful), "pair")
            subject = "these two do" if self.documents == 1 else f"the documents of {several} do"
            lines.append(
                f"warning: {subject} not look like translations of each other: {and_more(self.doubtful)}; check the "
                "files, and that the encoder knows their languages"
            )
        if self.second:
            lines.append(self.second)
        return "\n".join([*lines, self.signature])


@keywords
def align(src: Text, tgt: Text, *, options: AlignOptions, run: Run) -> AlignedDocument:
    """Align the sentences of a document with those of its translation, as the command ``align`` does.

    Args:
        src: the path of a document, or its sentences. A file that does not have one sentence per line is cut into
            sentences.
        tgt: the same in the other language.
        options: or its fields: ``src_lang`` and ``tgt_lang`` (default: as the names tell), ``model`` (an encoder, or
            the name of one), ``second``, ``max_size``, ``presplit``.
        run: or its fields, such as ``device``.

    Returns:
        the links in order: an `AlignedDocument`, which has a length, iterates over (score, src_lines, tgt_lines,
        src_texts, tgt_texts) with ``src`` and ``tgt``, the joined texts, and has ``to_frame()``, ``write(path)``,
        ``mean_score``, ``doubtful`` and ``signature``.

    Raises:
        UsageError: an argument has the wrong type or is out of range.
        BitextmineError: a file cannot be read; a document has no text.

    >>> en = ["Good morning.", "The train to Paris leaves at noon. It is late.", "I do not eat meat."]
    >>> fr = ["Bonjour.", "Le train pour Paris part à midi.", "Il est en retard.", "Je ne mange pas de viande."]
    >>> for link in align(en, fr):
    ...     print(link.src_lines, link.tgt_lines)
    [1] [1]
    [2] [2, 3]
    [3] [4]
    """
    given = [_given(name, text, run) for name, text in (("src", src), ("tgt", tgt))]
    if options.documents:
        raise UsageError("align: documents is for the command; call align for each document")
    if options.origin and not all(isinstance(side, Source) for side in given):
        raise UsageError("origin: only files have origins, not sentences in memory")
    stated = [language_of(side) if isinstance(side, Source) else None for side in given]
    langs = [lang or of_name or "" for lang, of_name in zip(options.langs, stated, strict=True)]
    work = _Work(options, langs, run)
    sides = (
        work.reader.read(text, side) if isinstance(text, Source) else text for side, text in enumerate(given)
    )
    inputs = tuple(text for text in given if isinstance(text, Source))
    name = given[0].path.name if isinstance(given[0], Source) else "src"
    (document,) = work.align([DocumentPair(name, *sides)], 1)
    return replace(document, langs=(langs[0], langs[1]), signature=work.signature, inputs=inputs)


def _given(name: str, text: Text, run: Run) -> Source | Document:
    if isinstance(text, (str, os.PathLike)):
        return Source.of(text, run)
    if not isinstance(text, Iterable):
        raise UsageError(f"{name}: expected the path of a document or its sentences, found {text!r}")
    lines = tuple(text)
    if wrong := [line for line in lines if not isinstance(line, str)]:
        raise UsageError(
            f"{name}: expected the path of a document or its sentences, found {wrong[0]!r} among them"
        )
    return Document(name, lines)


def align_files(src: str, tgt: str, output: str, options: AlignOptions, run: Run) -> Summary:
    """Align two files or two folders, and write the links; documents are cut into sentences where they are not.

    An output file is complete or missing; the same call resumes an interrupted one.

    Raises:
        UsageError: arguments that do not go together.
        BitextmineError: unreadable files, documents without a partner, or a single pair of which one has no text.
    """
    if src == tgt == "-":
        raise UsageError("only one of the two can be standard input")
    destination = Destination.of(output)
    format = choose_format(options.format, destination)
    if options.ids and format != "tsv":
        raise UsageError(f"--ids goes with --format tsv, not {format}")
    if options.origin and format == "vecalign":
        raise UsageError(f"--origin: --format {format} holds numbers of lines alone; choose another one")
    if format == "parquet" and not destination.is_standard:
        check_pairs_output(destination)
    destination.check()
    both = Source.of(src, run), Source.of(tgt, run)
    sides = documents_of(*both, matched=options.documents)
    langs = [
        [lang or language_of(file) or "" for file in files]
        for lang, files in zip(options.langs, sides, strict=True)
    ]
    stated = langs[0][0], langs[1][0]
    if format in FORMATS:
        FORMATS[format].check_languages(stated, "--src-lang and --tgt-lang")
    for file in itertools.chain(*sides):
        keep_apart(file, {"-o": destination})
    work = _Work(options, itertools.chain(*langs), run)
    summary = Summary(signature=work.signature)
    if options.documents:
        tasks, summary.alone = work.match(sides)
    else:
        tasks = [(document_name(one), one, other) for one, other in zip(*sides, strict=True)]
    with work.journal(destination, tasks) as journal:
        content = Content(options.ids, both[0].path.is_dir(), options.origin, options.normalize)
        with open_links(destination, format, content, stated if all(stated) else ("", "")) as write:
            for aligned in work.align(work.read(tasks), len(tasks), journal):
                write(aligned)
                summary.add(aligned)
        if journal is not None:
            journal.remove()
    summary.cut = list(work.reader.cut)
    if (second := work.aligner.second) is not None:
        runs = counted(second.runs, "run")
        summary.second = f"second encoder {second.encoder.name}: {runs} of sentences in doubt embedded again"
    return summary


Task = tuple[str, Source, Source]  # the name of a pair of documents, and their files


class _Work:
    """The work on documents: what reads, embeds and aligns them.

    Args:
        options: what is asked for.
        langs: of the documents, to choose the encoder by.
        run: the resources.
    """

    def __init__(self, options: AlignOptions, langs: Iterable[str | None], run: Run) -> None:
        self.options, self.run = options, run
        self.encoder = load_encoder(choose_model(options.model, langs), run.device)
        self.reader = Reader(options, run)
        second = (
            None if options.second is None else SecondJudge(load_encoder(options.second, run.device), run)
        )
        self.aligner = Aligner(options.max_size, PieceEvidence.of(self.encoder), second)
        self._hashes = {"model": self.encoder.hash}
        if second is not None:
            self._hashes["second"] = second.encoder.hash

    @property
    def signature(self) -> str:
        """Return how the documents are aligned."""
        more = {"anchors": True} if self.options.anchors else {}
        return signature(task="align", **self._hashes, max_size=self.options.max_size, **more)

    def journal(
        self, output: Destination, tasks: Sequence[Task]
    ) -> contextlib.AbstractContextManager[Journal | None]:
        """Return the journal beside an output file; None for a stream, storage by URL, and a single pair."""
        path = output.path
        is_file = isinstance(path, Path) and not output.is_stream and not path.is_dir()
        if not is_file or len(tasks) == 1:
            return contextlib.nullcontext()
        identity = {
            "version": __version__,
            **self._hashes,
            "max_size": self.options.max_size,
            "anchors": self.options.anchors,
            "presplit": self.options.presplit,
            "names": line_digest(name for name, *_ in tasks),
            "batch_tokens": self.run.batch_tokens,
        }
        path = Path(os.path.realpath(output))
        return Journal(path.with_name(f".{path.name}.align"), "align", identity)

    def match(self, sides: tuple[Sequence[Source], Sequence[Source]]) -> tuple[list[Task], list[str]]:
        """Return the documents that belong together, and the names of the others."""
        src, tgt = sides
        windows = []
        with self.run.progress(len(src) + len(tgt), "matching", "documents") as bar:
            for side, files in enumerate(sides):
                for file in files:
                    lines = [line for line in self.reader.read(file, side).lines if line.strip()]
                    windows += make_windows(self.encoder, [lines], 1, self.run.batch_tokens)
                    bar.update(1)
        matched = match_documents(windows[: len(src)], windows[len(src) :])
        if not matched:
            raise BitextmineError(
                f"no document of the {len(src)} fits one of the {len(tgt)}: are they translations, in languages of the "
                "encoder?"
            )
        names = [[file.path.name for file in files] for files in sides]
        tasks = [(f"{names[0][i]} {names[1][j]}", src[i], tgt[j]) for i, j in matched]
        paired = [{pair[side] for pair in matched} for side in (0, 1)]
        return tasks, [name for side in (0, 1) for i, name in enumerate(names[side]) if i not in paired[side]]

    def read(self, tasks: Iterable[Task]) -> Iterator[DocumentPair]:
        """Yield the documents of each task."""
        for name, src, tgt in tasks:
            yield DocumentPair(name, self.reader.read(src, 0), self.reader.read(tgt, 1))

    def align(
        self, pairs: Iterable[DocumentPair], count: int, journal: Journal | None = None
    ) -> Iterator[AlignedDocument]:
        """Yield one result per pair in order, of `count`, reusing and extending the journal.

        A record of the journal counts as long as the digest of its documents is the same.
        """
        many = count > 1
        total, unit = (count, "documents") if many else (None, "sentences")
        with (
            ThreadPoolExecutor(self.run.thread_count) as pool,
            self.run.progress(total, "aligning", unit) as bar,
        ):
            done = 0
            for batch in _batches(pairs):
                if not done:
                    self._warn_unfamiliar(batch)
                if journal is not None:
                    while batch and done < len(journal) and journal[done]["digest"] == batch[0].digest():
                        yield AlignedDocument.of(batch.pop(0), journal[done]["links"])
                        done += 1
                        bar.update(1)
                    if batch:
                        journal.truncate(done)
                if not many:
                    for text in batch[0][1:]:
                        if not any(map(str.strip, text.lines)):
                            raise BitextmineError(f"{text.source}: empty: there is no line to align")
                    bar.total = _size(batch[0])
                for pair, links in self._align(batch, pool, silent if many else bar.update):
                    if journal is not None:
                        journal.append({"digest": pair.digest(), "links": links})
                    done += 1
                    bar.update(1 if many else 0)
                    yield AlignedDocument.of(pair, links)

    def _warn_unfamiliar(self, batch: Sequence[DocumentPair]) -> None:
        """Log a warning if the encoder does not know the languages of the first documents."""
        for side, (name, lang) in enumerate(zip(("source", "target"), self.options.langs, strict=True)):
            lines = (line for pair in batch for line in (pair.src, pair.tgt)[side].lines)
            warn_unfamiliar(self.encoder, f"{name} documents", lang or "", sampled(lines))

    def _align(
        self, batch: Sequence[DocumentPair], pool: ThreadPoolExecutor, tick: Progress
    ) -> Iterator[tuple[DocumentPair, list[Link]]]:
        """Yield the links of each pair, by the numbers of its lines."""
        texts = [text for pair in batch for text in (pair.src, pair.tgt)]
        rows = [[i for i, line in enumerate(text.lines) if line.strip()] for text in texts]
        lines = [[text.lines[i] for i in kept] for text, kept in zip(texts, rows, strict=True)]
        longest = max(1, self.options.max_size - 1)
        windows = make_windows(self.encoder, lines, longest, self.run.batch_tokens)
        for side, text, kept in zip(windows, texts, rows, strict=True):
            side.times = np.array([text.times[i] for i in kept]) if text.times and kept else None
        fixed: list[NDArray[np.int64] | None] = [None] * len(batch)
        if self.options.anchors:
            begins = [[text.begins(i) for i in kept] for text, kept in zip(texts, rows, strict=True)]
            marked = list(zip(lines, begins, strict=True))
            fixed = [fixed_points(*sides) for sides in zip(marked[::2], marked[1::2], strict=True)]
        apply = map if len(batch) == 1 else pool.map  # alone in this thread, where Ctrl-C stops it at once
        names = [pair.name for pair in batch]
        aligned = apply(self.aligner.align, windows[::2], windows[1::2], itertools.repeat(tick), names, fixed)
        del windows
        for pair, src, tgt, links in zip(batch, rows[::2], rows[1::2], aligned, strict=True):
            numbered = [(tuple(src[i] for i in x), tuple(tgt[j] for j in y), score) for x, y, score in links]
            yield pair, [Link(*link) for link in numbered]


def _batches(pairs: Iterable[DocumentPair]) -> Iterator[list[DocumentPair]]:
    batch: list[DocumentPair] = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == _BATCH_DOCUMENTS or sum(map(_size, batch)) >= _BATCH_SENTENCES:
            yield batch
            batch = []
    if batch:
        yield batch


def _size(pair: DocumentPair) -> int:
    return len(pair.src.lines) + len(pair.tgt.lines)
