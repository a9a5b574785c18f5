"""From documents to corpora: read, normalise, cut into sentences, write, resume."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import logging
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bitextmine.arguments import a_path
from bitextmine.console import counted
from bitextmine.declarations import keywords
from bitextmine.documents.kinds import Damaged, Document, NoDocument, SplitOptions
from bitextmine.documents.sentences import sentences, unmarked
from bitextmine.documents.sources import File, documents, find_files, language_of, text_document
from bitextmine.errors import BitextmineError, MissingPackage, UsageError
from bitextmine.files.atomic import cannot_write, put_in_place
from bitextmine.files.journal import Journal, journal_folder, remove_folder
from bitextmine.files.output import Destination, Made, check_ours, keep_apart
from bitextmine.files.source import ORIGIN, Location, Source, origin_path
from bitextmine.languages.clean import cleaned
from bitextmine.languages.codes import code_problem, same_code
from bitextmine.run import Run
from bitextmine.system import keep_freed_memory
from bitextmine.version import __version__

if TYPE_CHECKING:
    from bitextmine.languages.identify import Languages

log = logging.getLogger(__name__)

_JOB = "split"
_PLACE = "{lang}"
SAVE_PARAGRAPHS = 5000  # between two records of the journal
_SAMPLE = 40  # paragraphs that the language of a document is identified by
_MEGABYTE = 1 << 20
_NAMED = 3  # documents that a message names
_BREAKS = str.maketrans("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " " * 11)


@lru_cache(maxsize=16)  # for all the sentences of a document
def _cell(text: str) -> str:
    return text.translate(_BREAKS)


@dataclass(frozen=True)
class Sentence:
    """A line of output and its origin.

    Attributes:
        text: the sentence, or the paragraph with ``join="paragraph"``.
        document: the file's name, with the number of the record behind ``#`` if it holds several.
        url: the address of the document, "" if none is known.
        paragraph, sentence: its numbers in the document and in the paragraph, from 1.
    """

    text: str
    lang: str
    document: str
    url: str
    paragraph: int
    sentence: int

    @property
    def origin(self) -> str:
        """Return the four columns of its origin, separated by tabs."""
        return f"{_cell(self.document)}\t{_cell(self.url)}\t{self.paragraph}\t{self.sentence}"


@dataclass
class SplitReport:
    """Counts of a run.

    Attributes:
        documents, paragraphs: those that gave lines.
        lines: lines by language.
        empty, other: documents without text, and in languages that were not wanted.
        skipped, named: files and records without a document, by reason; some of them, by name.
        damaged, damaged_named: those of them that cannot be read; some, by name.
    """

    documents: int = 0
    paragraphs: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    other: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    named: list[str] = field(default_factory=list)
    damaged: int = 0
    damaged_named: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> SplitReport:
        """Return a report of its fields as JSON values."""
        counters = {name: Counter(content[name]) for name in ("lines", "skipped")}
        return cls(**{**content, **counters})

    def skip(self, name: str, problem: NoDocument) -> None:
        """Count a file or record without a document."""
        reason = str(problem).removeprefix(f"{name}: ")
        self.skipped[reason] += 1
        self.damaged += isinstance(problem, Damaged)
        names = self.damaged_named if isinstance(problem, Damaged) else self.named
        if len(names) < _NAMED:
            names.append(f"{name}: {reason}")

    def damage(self) -> str:
        """Return a sentence about what cannot be read."""
        return f"{counted(self.damaged, 'document')} cannot be read: {'; '.join(self.damaged_named)}"

    def to_text(self, options: SplitOptions) -> str:
        """Return the summary for the user."""
        lines = ", ".join(f"{lang} {many:,}" for lang, many in sorted(self.lines.items()))
        by_lang = f" ({lines})" if len(self.lines) > 1 else ""
        joined = filter(None, map(unmarked, sorted(self.lines))) if options.join == "sentence" else ()
        parts = [
            f"{counted(self.documents, 'document')}, {counted(self.paragraphs, 'paragraph')}, "
            f"{counted(self.lines.total(), options.join)}{by_lang}",
            f"; {counted(self.empty, 'document')} without text" if self.empty else "",
            f"; {counted(self.other, 'document')} in other languages" if self.other else "",
            *(f"\n{sentence}" for sentence in joined),
            *(f"\n{many:,} skipped: {reason}" for reason, many in self.skipped.most_common()),
            f"\nfor example {'; '.join(self.named)}" if self.named else "",
        ]
        return "".join(parts)


@keywords
def split(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    lang: str | None = None,
    *,
    text: str | Iterable[str] = (),
    options: SplitOptions,
    run: Run,
) -> Iterator[Sentence]:
    """Yield the sentences of documents, with their origin; does what `bitextmine split` does.

    Args:
        inputs: files or folders: plain text, HTML, WARC, EPUB, DOCX, ODT, PDF, JSON Lines, Parquet, also compressed.
        lang: their language (default: as the names tell, like book.en.txt). With `by_language`, the one to keep.
        text: plain text in memory, a document or several, instead of files or before them; they have the names
            ``text#1``, ``text#2`` ...
        options: or its fields: ``by_language``, ``kind`` (a `DocumentFormat`, ``text``, ``html``...;
            default: by suffix, then by content), ``text_field``, ``join``, ``normalize``, ``machine_translated``.
        run: or its fields, such as ``errors``.

    Raises:
        UsageError: an argument has a wrong value.
        BitextmineError: while iterating: an input cannot be read; the language of a document is unknown.
    """
    if lang is not None:
        if problem := code_problem(lang):
            raise UsageError(f"lang: {problem}")
        options = dataclasses.replace(options, langs=(lang,))
    if isinstance(inputs, (str, os.PathLike)) or not isinstance(inputs, Iterable):
        inputs = [inputs]
    files = find_files([a_path("inputs", path) for path in inputs], run)
    return Splitter(files, options, run, _documents_of(text, options)).sentences()


def _documents_of(text: str | Iterable[str], options: SplitOptions) -> list[Document]:
    texts = [text] if isinstance(text, str) or not isinstance(text, Iterable) else list(text)
    if wrong := [each for each in texts if not isinstance(each, str)]:
        raise UsageError(f"text: expected text, found {wrong[0]!r}")
    if texts and not options.langs and not options.by_language:
        raise UsageError("text: its language is not known: pass lang or by_language")
    return [text_document(each.replace("\r\n", "\n"), f"text#{n}") for n, each in enumerate(texts, 1)]


def split_files(
    inputs: Sequence[str | os.PathLike[str]], output: str, options: SplitOptions, run: Run
) -> SplitReport:
    """Write the sentences of documents, one per line, and their origin; return the counts.

    Raises:
        UsageError: options that contradict each other.
        BitextmineError: an input cannot be read, or none holds a document; none has text; the language of a
            document is unknown.
    """
    _check(inputs, output, options)
    keep_freed_memory()  # pages come and go
    files = find_files(inputs, run)
    if not options.langs and not options.by_language and "{lang}" not in output:
        langs = [*dict.fromkeys(lang for file in files if (lang := language_of(file.source)))]
        if len(langs) > 1:
            raise _two_languages(output, *langs[:2])
    splitter = Splitter(files, options, run)
    with open_outputs(output, options.ids, {"output": output, **splitter.identity}) as out:
        splitter.run_to(out)
    report = splitter.report
    if not report.documents + report.other:
        what = f"{Source.of(inputs[0])}: no text in it" if len(inputs) == 1 else "no text in these files"
        raise BitextmineError("; ".join([what, *report.damaged_named, *report.named]))
    return report


def _check(inputs: Sequence[str | os.PathLike[str]], output: str, options: SplitOptions) -> None:
    if unknown := re.search(r"\{(?!lang\})[^{}]*\}", output):
        raise UsageError(
            f"-o {output}: {unknown[0]} stands for nothing; only {{lang}}, the language, is replaced"
        )
    if output.count("{lang}") > 1:
        raise UsageError(f"-o {output}: names the language twice; write {{lang}} once")
    if len(options.langs) > 1 and not options.by_language:
        raise UsageError("--lang names the language of all documents; for several pass --by-language, too")
    for given in inputs:
        source = Source.of(given)
        lang = options.langs[0] if len(options.langs) == 1 else language_of(source) or ""
        keep_apart(source, {"-o": None if output == "-" else Destination(output.replace("{lang}", lang))})
        top = Path(os.path.realpath(given))
        if output != "-" and top.is_dir() and Path(os.path.realpath(output)).is_relative_to(top):
            raise UsageError(f"-o {output} is inside the folder {given}, which is read; name another folder")


class Splitter:
    """Splits texts and files, in order, counting what it does."""

    def __init__(
        self, files: Sequence[File], options: SplitOptions, run: Run, texts: Sequence[Document] = ()
    ) -> None:
        self.report = SplitReport()
        self._files, self._options, self._run, self._texts = files, options, run, texts
        self._wanted = {same_code(lang) for lang in options.langs}

    @property
    def identity(self) -> dict[str, Any]:
        """Return everything the output depends on: the options, and names and versions of the files."""
        listing = hashlib.sha256()
        for file in self._files:
            listing.update(
                f"{Path(file.source).absolute()}\0{file.version}\0".encode("utf-8", "surrogateescape")
            )
        options = {**dataclasses.asdict(self._options), "langs": list(self._options.langs)}
        return {"version": __version__, "files": listing.hexdigest(), "errors": self._run.errors, **options}

    @cached_property
    def _languages(self) -> Languages:
        from bitextmine.languages.identify import Languages  # loads NumPy

        return Languages("--by-language")

    def run_to(self, out: Output) -> None:
        """Write all lines, after those that an earlier run has written."""
        if out.done:
            self.report = SplitReport.from_json(out.done["report"])
            if out.done["finished"]:
                return
        for sentence in self.sentences(out):
            out.write(sentence.lang, sentence.text, sentence.origin)
        out.save({"finished": True, "report": vars(self.report)})

    def sentences(self, out: Output | None = None) -> Iterator[Sentence]:
        """Yield the sentences; with `out`, save the progress to it, and leave out what is done."""
        done = out.done if out is not None else {}
        skip, written = done.get("documents", 0), done.get("paragraphs", 0)
        report, unsaved = self.report, 0
        for number, document in enumerate(self._documents()):
            if number < skip:
                continue
            try:
                texts = self._cleaned(document)
                head = list(itertools.islice(texts, _SAMPLE))
                if not head:
                    report.empty += 1
                    continue
                lang = self._language(document, head)
                if lang is None:
                    report.other += 1
                    continue
                for place, text in enumerate(itertools.chain(head, texts), start=1):
                    if number == skip and place <= written:
                        continue
                    lines = [text] if self._options.join == "paragraph" else sentences(text, lang)
                    report.paragraphs += 1
                    report.lines[lang] += len(lines)
                    for at, line in enumerate(lines, start=1):
                        yield Sentence(line, lang, document.name, document.url, place, at)
                    unsaved += 1
                    if out is not None and unsaved >= SAVE_PARAGRAPHS:
                        at_work = {"documents": number, "paragraphs": place, "finished": False}
                        out.save({**at_work, "report": vars(report)})
                        unsaved = 0
                report.documents += 1
            except NoDocument as problem:
                report.skip(document.name, problem)
        if report.skipped and not report.documents + report.empty + report.other:
            raise BitextmineError([*report.damaged_named, *report.named][0])
        if out is None and report.damaged:
            log.warning("warning: %s", report.damage())

    def _documents(self) -> Iterator[Document]:
        """Yield the documents of all files, showing progress; a broken one for a file that cannot be read."""
        total = sum(file.size for file in self._files)
        before = shown = 0
        with self._run.progress(total // _MEGABYTE or None, "splitting", "MB") as bar:

            def seen(place: int) -> None:
                nonlocal shown
                now = (before + place) // _MEGABYTE
                bar.update(now - shown)
                shown = now

            yield from self._texts
            for file in self._files:
                try:
                    yield from documents(file, self._options, seen)
                except (MissingPackage, UsageError):
                    raise
                except BitextmineError as error:
                    reason = str(error).removeprefix(f"{file.source}: ")
                    if self._is_alone(file.name):
                        raise BitextmineError(f"{file.source}: {reason}") from None
                    harmless = isinstance(error, NoDocument) and not isinstance(error, Damaged)
                    yield Document.broken(file.name, reason, damaged=file.named or not harmless)
                before += file.size
                seen(0)

    def _is_alone(self, name: str) -> bool:
        """Return True for the name of a file that is the only one the user named."""
        return len(self._files) == 1 and self._files[0].named and self._files[0].name == name

    def _cleaned(self, document: Document) -> Iterator[str]:
        """Yield the paragraphs that have text; NoDocument if they cannot be read, and others may."""
        try:
            texts = document.paragraphs()
            if self._options.normalize:
                texts = cleaned(texts, tags=document.tags)
            else:
                texts = (text.translate(_BREAKS).strip() for text in texts)
            yield from filter(None, texts)
        except (MissingPackage, UsageError, NoDocument):
            raise
        except BitextmineError as error:
            if self._is_alone(document.name):
                raise
            raise Damaged(str(error)) from None

    def _language(self, document: Document, head: Sequence[str]) -> str | None:
        if self._options.by_language:
            letters: Counter[str] = Counter()
            for text, guess in zip(head, self._languages.guess(head), strict=True):
                letters[guess] += len(text)
            best = letters.most_common(1)[0][0]
            return best if best != "und" and (not self._wanted or best in self._wanted) else None
        lang = self._options.langs[0] if self._options.langs else document.lang
        if lang is None:
            raise BitextmineError(
                f"{document.name}: no language: name the file like page.en.txt, or pass --lang, or --by-language to "
                "tell languages by their text"
            )
        return lang


# --- where the lines go: standard output, or files by language that a killed run goes on with ---


class Output:
    """Take lines and the rows of their origin, by language; here for standard output, devices and pipes.

    Attributes:
        done: the last progress that was saved by an interrupted run of the same work, or {}.
    """

    done: Mapping[str, Any]

    def __init__(self, out: IO[bytes], ids: bool, output: str) -> None:
        self.done, self._out, self._ids, self._output, self._lang = {}, out, ids, output, ""

    def write(self, lang: str, line: str, origin: str) -> None:
        """Add a line and its origin, without line feeds."""
        if self._lang and lang != self._lang:
            raise _two_languages(self._output, self._lang, lang)
        self._lang = lang
        self._out.write((f"{origin}\t{line}\n" if self._ids else f"{line}\n").encode())

    def save(self, progress: Mapping[str, Any]) -> None:
        """Make the lines so far safe, with the progress that a next run takes up from `done`."""
        self._out.flush()


@contextlib.contextmanager
def open_outputs(output: str, ids: bool, identity: Mapping[str, Any]) -> Iterator[Output]:
    """Yield the output ``-`` (standard output), a device or a named pipe, or files whose names appear at the end.

    In a name ``{lang}`` stands for the language. With `ids` the origin is before each line, not in files beside. The
    identity is everything the output depends on; unfinished work of another one is dropped.

    Raises:
        BitextmineError: an output cannot be written; lines in two languages without ``{lang}``.
    """
    destination = Destination(output.replace(_PLACE, "LANG"))
    if destination.is_stream:
        with destination.open() as out:
            yield Output(out, ids, output)
        return
    # The folder of parts is named by the pattern, in which {lang} is empty: one run may begin and another resume.
    stem = Path(Location(output).stem)
    part = stem.with_name(f"{stem.name.replace(_PLACE, '').strip('.')}.split.part")
    destination.check()
    try:
        with contextlib.suppress(FileExistsError):
            part.mkdir()
        with journal_folder(part, _JOB, identity) as journal:
            try:
                with contextlib.closing(_Parts(part, journal, output, ids)) as parts:
                    yield parts
                parts.finish()
            except BitextmineError:
                if not len(journal):
                    remove_folder(part, _JOB)
                raise
            remove_folder(part, _JOB)  # while it is locked: another run may begin there afterwards
    except OSError as error:
        raise cannot_write(error, output) from None


class _Parts(Output):
    """A text and a file of origins for each language, in a folder with a journal."""

    def __init__(self, folder: Path, journal: Journal, output: str, ids: bool) -> None:
        self._folder, self._journal, self._output = folder, journal, output
        self._endings = ("",) if ids else ("", ORIGIN)
        self._files: dict[str, tuple[IO[bytes], ...]] = {}
        last = journal[-1] if len(journal) else {"progress": {}, "sizes": {}}
        self._sizes: dict[str, list[int]] = last["sizes"]
        if not last["progress"].get("finished") and not self._reopened():
            last, self._sizes = {"progress": {}}, {}
            journal.truncate(0)
        self.done = last["progress"]

    def write(self, lang: str, line: str, origin: str) -> None:
        files = self._files.get(lang) or self._begin(lang)
        if len(files) == 1:
            files[0].write(f"{origin}\t{line}\n".encode())
        else:
            files[0].write(f"{line}\n".encode())
            files[1].write(f"{origin}\n".encode())

    def save(self, progress: Mapping[str, Any]) -> None:
        self._sizes = {lang: [file.tell() for file in files] for lang, files in self._files.items()}
        for file in self._all():
            file.flush()
        self._journal.append({"progress": dict(progress), "sizes": self._sizes})

    def close(self) -> None:
        for file in self._all():
            file.close()

    def finish(self) -> None:
        """Give the files their names; those of origins first, so that a corpus is never without."""
        for lang in sorted(self._sizes):
            corpus = Path(self._output.replace(_PLACE, lang))
            for ending in reversed(self._endings):
                made = self._folder / f"{lang}{ending}"
                name = Destination.of(origin_path(Location.of(corpus)) if ending else corpus)
                if name.compression or name.is_stream or Path(name).is_symlink():
                    with open(made, "rb") as source, name.open() as out:
                        shutil.copyfileobj(source, out)
                elif made.exists() or not Path(name).exists():  # or a run that was killed here has moved it
                    put_in_place(made, Path(name))

    def _all(self) -> Iterator[IO[bytes]]:
        return itertools.chain.from_iterable(self._files.values())

    def _reopened(self) -> bool:
        """Cut the files to the sizes of the last record; return False if one has lost bytes, as in a power cut."""
        for lang, sizes in self._sizes.items():
            self._begin(lang)
            for file, size in zip(self._files[lang], sizes, strict=True):
                if file.seek(0, os.SEEK_END) < size:
                    self.close()
                    self._files = {}
                    return False
                file.truncate(size)
                file.seek(size)
        return True

    def _begin(self, lang: str) -> tuple[IO[bytes], ...]:
        """Open the files of a language, empty but for what the last record covers."""
        if _PLACE not in self._output and self._files:
            raise _two_languages(self._output, next(iter(self._files)), lang)
        named = language_of(self._output.replace(_PLACE, lang))
        if named and same_code(named) != same_code(lang):
            raise UsageError(
                f"-o {self._output} is the name of a text in {named}, but the documents are in {lang}; rename it, "
                "or correct --lang"
            )
        if ORIGIN in self._endings:
            origins = Destination.of(origin_path(Location.of(self._output.replace(_PLACE, lang))))
            if not origins.is_stream:
                check_ours(origins.path, Made.ORIGINS, "name another output (-o)", "--ids")
        names = [self._folder / f"{lang}{ending}" for ending in self._endings]
        kept = lang in self._sizes
        self._files[lang] = tuple(name.open("r+b" if kept and name.exists() else "w+b") for name in names)
        return self._files[lang]


def _two_languages(output: str, first: str, second: str) -> UsageError:
    where = "standard output is" if output == "-" else f"-o {output} is"
    return UsageError(
        f"{where} one output, but the documents are in {first} and {second}: write a file for each language, as in "
        "-o corpus.{lang}"
    )
