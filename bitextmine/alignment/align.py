"""Align documents: the function `bitextmine.align`, and the work of the command ``align`` on files."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitextmine.alignment.aligner import Aligner, Points, Settings
from bitextmine.alignment.anchors import Marks, fixed_points
from bitextmine.alignment.documents import match_documents
from bitextmine.alignment.evidence import PieceEvidence
from bitextmine.alignment.formats import AlignedDocument, Content, open_links
from bitextmine.alignment.inputs import (
    DocumentPair,
    DocumentSentences,
    Part,
    Reader,
    documents_of,
    matched_tasks,
    read_list,
    tasks_of,
)
from bitextmine.alignment.options import AlignOptions, choose_format
from bitextmine.alignment.second import SecondJudge
from bitextmine.alignment.windows import make_windows
from bitextmine.console import Progress, counted, silent
from bitextmine.declarations import keywords
from bitextmine.documents.sources import language_of
from bitextmine.encoder import as_encoder
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

_NAMED = 3  # documents that a message names
_EXCERPT = 3  # times the sentences of the other side: then a low probability says little
_LOOKED_AT = 20  # documents whose language is checked
# Documents are encoded together up to these numbers.
_BATCH_SENTENCES, _BATCH_DOCUMENTS = 20_000, 32

Text = Iterable[str] | str | os.PathLike[str]


@dataclass
class Summary:
    """Counts over all document pairs.

    Attributes:
        paired, one_to_one: links of two sides, and those of one sentence each.
        likely: the sum of the sentences' probabilities.
        doubtful: documents that hardly look like translations of each other, with their mean probability.
        excerpts: such documents of which one side is far longer than the other, in words.
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
    excerpts: list[str] = field(default_factory=list)
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
        elif document.doubtful and max(counts) > _EXCERPT * min(counts):
            more, less = ("source", "target") if counts[0] > counts[1] else ("target", "source")
            times = f"{max(counts) / min(counts):.0f} times"
            self.excerpts.append(f"the {more} of {document.name} has {times} the sentences of the {less}")
        elif document.doubtful:
            self.doubtful.append(f"{document.name} (mean probability {document.mean_score:.2f})")

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
                f"({_and_more(self.cut)}). Line numbers refer to the split sentences; --presplit keeps the lines."
            )
        if self.alone:
            lines.append(f"{counted(len(self.alone), 'document')} without a partner: {_and_more(self.alone)}")
        if self.empty:
            pairs = counted(len(self.empty), "pair")
            lines.append(f"warning: {pairs} of documents with an empty side: {_and_more(self.empty)}")
        if self.doubtful:
            several = counted(len(self.doubtful), "pair")
            subject = "these two do" if self.documents == 1 else f"the documents of {several} do"
            lines.append(
                f"warning: {subject} not look like translations of each other: {_and_more(self.doubtful)}; check the "
                "files, and that the encoder knows their languages"
            )
        if self.excerpts:
            lines.append(f"warning: {_and_more(self.excerpts)}: an excerpt?")
        if self.second:
            lines.append(self.second)
        return "\n".join([*lines, self.signature])


def _and_more(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


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
    parts = [_part(name, text, run) for name, text in (("src", src), ("tgt", tgt))]
    options.check(*(part.source.text for part in parts))
    if options.blank_lines or options.documents:
        raise UsageError("align: blank_lines and documents are for the command; call align for each document")
    langs = [lang or language_of(part.source) or "" for lang, part in zip(options.langs, parts, strict=True)]
    work = _Work(options, langs, run)
    (document,) = work.align([DocumentPair(parts[0].name, *parts)])
    return replace(document, langs=(langs[0], langs[1]), signature=work.signature)


def _part(name: str, text: Text, run: Run) -> Part:
    if isinstance(text, (str, os.PathLike)):
        return Part(Source.of(text, run))
    if not isinstance(text, Iterable):
        raise UsageError(f"{name}: expected the path of a document or its sentences, found {text!r}")
    lines = tuple(text)
    if wrong := [line for line in lines if not isinstance(line, str)]:
        raise UsageError(
            f"{name}: expected the path of a document or its sentences, found {wrong[0]!r} among them"
        )
    return Part(Source(name), lines=lines)


def align_files(
    src: str | None = None,
    tgt: str | None = None,
    output: str = "-",
    options: AlignOptions | None = None,
    run: Run | None = None,
) -> Summary:
    """Align two files or two folders, and write the links; documents are cut into sentences where they are not.

    An output file is complete or missing; the same call resumes an interrupted one.

    Raises:
        UsageError: arguments that do not go together.
        BitextmineError: unreadable files, documents without a partner, or a single pair of which one has no text.
    """
    options, run = options or AlignOptions(), run or Run()
    options.check(src, tgt)
    destination = Destination.of(output)
    format = choose_format(options.format, destination)
    if options.ids and format != "tsv":
        raise UsageError(f"--ids goes with --format tsv, not {format}")
    if options.origin and format == "vecalign":
        raise UsageError(f"--origin: --format {format} holds numbers of lines alone; choose another one")
    if format == "parquet" and not destination.is_standard:
        check_pairs_output(destination)
    destination.check()
    summary = Summary()
    tasks: list[DocumentPair] = []
    listed, named = None, True
    if options.pairs is not None:
        listed = Source.of(options.pairs, run)
        tasks = read_list(listed)
        sides = [task.src for task in tasks], [task.tgt for task in tasks]
    else:
        assert src is not None and tgt is not None
        both = Source.of(src, run), Source.of(tgt, run)
        sides = documents_of(*both, blank_lines=options.blank_lines, matched=options.documents)
        named = both[0].path.is_dir()
        if not options.documents:
            tasks = tasks_of(*both, sides)
    langs_read = [
        lang or language_of(part.source)
        for lang, parts in zip(options.langs, sides, strict=True)
        for part in parts
    ]
    work = _Work(options, langs_read, run)
    if options.documents:
        tasks, summary.alone = work.match(sides)
    read = dict.fromkeys(part.source for task in tasks for part in (task.src, task.tgt))
    for source in [*read, *([] if listed is None else [listed])]:
        keep_apart(source, {"-o": destination})
    langs = _languages(tasks[0], options, format)
    work.warn_unfamiliar(tasks)
    summary.signature = work.signature
    with work.journal(destination, tasks) as journal:
        content = Content(options.ids, named, options.origin, options.normalize)
        with open_links(destination, format, content, langs) as write:
            for document in work.align(tasks, journal):
                write(document)
                summary.add(document)
        if journal is not None:
            journal.remove()
    summary.cut = list(work.reader.cut)
    if (second := work.aligner.second) is not None:
        runs = counted(second.runs, "run")
        summary.second = f"second encoder {second.encoder.name}: {runs} of sentences in doubt embedded again"
    return summary


def _languages(task: DocumentPair, options: AlignOptions, format: str) -> tuple[str, str]:
    """Return the languages for formats that name them; only TMX cannot do without."""
    if format not in FORMATS:
        return "", ""
    sides = (task.src.source, options.src_lang), (task.tgt.source, options.tgt_lang)
    langs = [given or language_of(path) or "" for path, given in sides]
    if not FORMATS[format].needs_languages:
        return (langs[0], langs[1]) if all(langs) else ("", "")
    for lang, (path, _), option in zip(langs, sides, ("--src-lang", "--tgt-lang"), strict=True):
        if not lang:
            raise BitextmineError(
                f"{path}: {format.upper()} needs a language and the name tells none; pass {option}"
            )
    FORMATS[format].check_languages((langs[0], langs[1]), "--src-lang and --tgt-lang")
    return langs[0], langs[1]


class _Document(NamedTuple):
    """A task with its source and its target."""

    task: DocumentPair
    src: DocumentSentences
    tgt: DocumentSentences

    @property
    def origins(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.src.origins, self.tgt.origins

    def digest(self) -> str:
        sides = self.src, self.tgt
        more = [str(each) for side in sides for each in (*side.times, *side.paragraphs)]
        return line_digest([str(len(self.src.lines)), *self.src.lines, *self.tgt.lines, *more])


class _Work:
    """The work on documents: what reads, embeds and aligns them.

    Args:
        options: what is asked for.
        langs: of the documents, to choose the encoder by.
        run: the resources.
    """

    def __init__(self, options: AlignOptions, langs: Iterable[str | None], run: Run) -> None:
        self.options, self.run = options, run
        self.encoder = as_encoder(choose_model(options.model, langs), run.device)
        self.reader = Reader(options.langs, options.presplit, run, options.origin)
        second = None if options.second is None else SecondJudge(as_encoder(options.second, run.device), run)
        settings = Settings(max_size=options.max_size)
        self.aligner = Aligner(settings, PieceEvidence.of(self.encoder), second)
        self._hashes = {"model": self.encoder.hash}
        if second is not None:
            self._hashes["second"] = second.encoder.hash

    @property
    def signature(self) -> str:
        """Return how the documents are aligned."""
        more = {"anchors": True} if self.options.anchors else {}
        return signature(task="align", **self._hashes, max_size=self.options.max_size, **more)

    def journal(
        self, output: Destination, tasks: Sequence[DocumentPair]
    ) -> contextlib.AbstractContextManager[Journal | None]:
        """Return the journal beside an output file; None for a stream, storage by URL, and a single pair."""
        path = output.path
        is_file = isinstance(path, Path) and not output.is_stream and not path.is_dir()
        if not is_file or len(tasks) == 1:
            return contextlib.nullcontext()
        identity = {
            "version": __version__,
            **self._hashes,
            "settings": asdict(self.aligner.settings),
            "anchors": self.options.anchors,
            "presplit": self.options.presplit,
            "names": line_digest(task.name for task in tasks),
            "batch_tokens": self.run.batch_tokens,
        }
        path = Path(os.path.realpath(output))
        return Journal(path.with_name(f".{path.name}.align"), "align", identity)

    def match(self, sides: tuple[list[Part], list[Part]]) -> tuple[list[DocumentPair], list[str]]:
        """Return the documents that belong together, and the names of the others."""
        src, tgt = sides
        windows = []
        with self.run.progress(len(src) + len(tgt), "matching", "documents") as bar:
            for side, parts in enumerate(sides):
                for part in parts:
                    lines = [line for line in self.reader.read(part, side).lines if line.strip()]
                    windows += make_windows(self.encoder, [lines], 1, self.run.batch_tokens)
                    bar.update(1)
        matched = match_documents(windows[: len(src)], windows[len(src) :])
        if not matched:
            raise BitextmineError(
                f"no document of the {len(src)} fits one of the {len(tgt)}: are they translations, in languages of the "
                "encoder?"
            )
        alone = [part.name for i, part in enumerate(src) if i not in {i for i, _ in matched}]
        alone += [part.name for j, part in enumerate(tgt) if j not in {j for _, j in matched}]
        return matched_tasks(matched, src, tgt), alone

    def warn_unfamiliar(self, tasks: Sequence[DocumentPair]) -> None:
        """Log a warning if the encoder does not know the first documents' languages; never read a stream twice."""
        for side, (name, lang) in enumerate(zip(("source", "target"), self.options.langs, strict=True)):
            parts = [(task.src, task.tgt)[side] for task in tasks[:_LOOKED_AT]]
            seen = [part for part in parts if part.lines is not None or part.source.path.is_file()]
            lines = (line for part in seen for line in self.reader.read(part, side, again=True).lines)
            warn_unfamiliar(self.encoder, f"{name} documents", lang or "", sampled(lines))

    def align(
        self, tasks: Sequence[DocumentPair], journal: Journal | None = None
    ) -> Iterator[AlignedDocument]:
        """Yield one result per task in order, reusing and extending the journal.

        A record of the journal counts as long as the digest of its documents is the same.
        """
        many = len(tasks) > 1
        with (
            ThreadPoolExecutor(self.run.thread_count) as pool,
            self.run.progress(
                len(tasks) if many else None, "aligning", "documents" if many else "sentences"
            ) as bar,
        ):
            done = 0
            for batch in self._batches(tasks):
                if journal is not None:
                    while batch and done < len(journal) and journal[done]["digest"] == batch[0].digest():
                        aligned = AlignedDocument.from_json(journal[done]["aligned"])
                        yield replace(aligned, origins=batch[0].origins)
                        del batch[0]
                        done += 1
                        bar.update(1)
                    if batch:
                        journal.truncate(done)
                if not many:
                    bar.total = len(batch[0].src.lines) + len(batch[0].tgt.lines)
                for document, aligned in self._align(batch, pool, silent if many else bar.update):
                    if journal is not None:
                        journal.append({"digest": document.digest(), "aligned": vars(aligned)})
                    done += 1
                    bar.update(1 if many else 0)
                    yield replace(aligned, origins=document.origins)

    def _batches(self, tasks: Sequence[DocumentPair]) -> Iterator[list[_Document]]:
        batch: list[_Document] = []
        size = 0
        for task in tasks:
            src, tgt = self.reader.read(task.src, 0), self.reader.read(task.tgt, 1)
            for part, text in ((task.src, src), (task.tgt, tgt)):
                if len(tasks) == 1 and not any(map(str.strip, text.lines)):
                    raise BitextmineError(f"{part.source}: empty: there is no line to align")
            batch.append(_Document(task, src, tgt))
            size += len(src.lines) + len(tgt.lines)
            if size >= _BATCH_SENTENCES or len(batch) == _BATCH_DOCUMENTS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _align(
        self, batch: Sequence[_Document], pool: ThreadPoolExecutor, tick: Progress
    ) -> Iterator[tuple[_Document, AlignedDocument]]:
        texts = [text for document in batch for text in (document.src, document.tgt)]
        rows = [[i for i, line in enumerate(text.lines) if line.strip()] for text in texts]
        lines = [[text.lines[i] for i in kept_rows] for text, kept_rows in zip(texts, rows, strict=True)]
        longest = max(1, self.options.max_size - 1)
        windows = make_windows(self.encoder, lines, longest, self.run.batch_tokens)
        fixed: list[Points | None] = [None] * len(batch)
        if self.options.anchors:
            marks = [
                Marks.of(kept, [text.begins(i) for i in kept_rows])
                for text, kept, kept_rows in zip(texts, lines, rows, strict=True)
            ]
            fixed = [fixed_points(*sides) for sides in zip(marks[::2], marks[1::2], strict=True)]
        for side, text, kept_rows in zip(windows, texts, rows, strict=True):
            side.times = np.array([text.times[i] for i in kept_rows]) if text.times and kept_rows else None
        names = [document.task.name for document in batch]
        align = self.aligner.align
        if len(batch) == 1:  # in this thread, where Ctrl-C stops it at once
            futures = []
            alignments = iter([align(windows[0], windows[1], fixed[0], tick, names[0])])
        else:
            futures = [
                pool.submit(align, src, tgt, points, silent, name)
                for src, tgt, points, name in zip(windows[::2], windows[1::2], fixed, names, strict=True)
            ]
            alignments = (future.result() for future in futures)
        del windows
        try:
            for document, *sides, alignment in zip(batch, rows[::2], rows[1::2], alignments, strict=True):
                both = document.src.lines, document.tgt.lines
                yield document, AlignedDocument.of(document.task, both, sides, alignment)
        finally:
            for future in futures:  # interrupted
                future.cancel()
