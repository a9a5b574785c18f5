"""Find the documents to align: two files, two folders, a list of files, or parts of two files."""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bitextmine.console import counted
from bitextmine.documents.kinds import SUFFIXES, DocumentFormat
from bitextmine.documents.paragraphs import paragraphs
from bitextmine.documents.sentences import sentences, unmarked
from bitextmine.documents.sources import HEAD, check_text, kind_of, language_of
from bitextmine.documents.split import split
from bitextmine.documents.subtitles import passages, read_subtitles
from bitextmine.errors import BitextmineError, UsageError, explained
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.names import first_bytes
from bitextmine.files.location import ORIGIN, Location
from bitextmine.files.source import Source
from bitextmine.files.storage import AnyPath
from bitextmine.languages.clean import cleaned
from bitextmine.languages.codes import UNDETERMINED, is_code
from bitextmine.run import Run

log = logging.getLogger(__name__)

# Lines that tell if a text is one sentence per line, and its marks: the share of lines that hold several sentences,
# sentences per line, and paragraphs per line where lines are wrapped. Books and laws aligned by hand, whose lines are
# sentences, stay below 0.4 and 1.6 and have 1. Shorter lines, in characters, are not wrapped text but a list.
_LOOKED_AT = 300
_SEVERAL, _PER_LINE, _WRAPPED = 0.6, 2.0, 0.5
_SHORT = 30
_MARKED_UP = (
    DocumentFormat.HTML,
    DocumentFormat.EPUB,
    DocumentFormat.DOCX,
    DocumentFormat.ODT,
    DocumentFormat.PDF,
)


@dataclass(frozen=True)
class Part:
    """A document: a file, or some lines of one, of which line `first` (from 0) is the first."""

    source: Source
    first: int = 0
    lines: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Return the file's name, with the line number (from 1) of a part."""
        file = self.source.path.name
        return file if self.lines is None else f"{file}:{self.first + 1}"


class DocumentSentences(NamedTuple):
    """The sentences of a document.

    Attributes:
        origins: where they are from, if that is wanted.
        times: when they begin and end, in seconds, in subtitles.
        paragraphs: True for sentences that begin one, in a document that was cut.
    """

    lines: Sequence[str]
    origins: Sequence[str]
    times: Sequence[tuple[float, float]] = ()
    paragraphs: Sequence[bool] = ()

    def begins(self, line: int) -> bool:
        """Return True for a line that begins a paragraph, but for the first one."""
        if self.paragraphs:
            return line > 0 and self.paragraphs[line]
        return line > 0 and not self.lines[line - 1].strip()


class Reader:
    """Reads documents, and cuts those into sentences that do not have one on each line.

    Args:
        langs: the languages of both sides (None: as the file names tell).
        presplit: take each line as a sentence.
        run: treatment of invalid UTF-8.
        origin: also find where sentences are from.

    Attributes:
        cut: the sentences of each document that was cut, by name.
    """

    def __init__(
        self, langs: tuple[str | None, str | None], presplit: bool, run: Run, origin: bool = False
    ) -> None:
        self._langs, self._presplit, self._run, self._origin = langs, presplit, run, origin
        self._ahead: dict[tuple[Source, int, int], DocumentSentences] = {}
        self._corpora: dict[Source, Corpus] = {}  # those of documents that were not cut, for their origins
        self.cut: dict[str, int] = {}

    def read(self, part: Part, side: int, *, again: bool = False) -> DocumentSentences:
        """Return a document of side 0, the source, or 1, the target; `again`: the next call returns it, too.

        BitextmineError if its origins are wanted, and it was not cut and `split` wrote none beside it.
        """
        key = part.source, part.first, side
        document = self._ahead.pop(key, None) or self._read(part, side)
        if again:
            self._ahead[key] = document
        return document

    def _read(self, part: Part, side: int) -> DocumentSentences:
        if part.lines is not None:
            return self._uncut(part, part.lines)
        if self._presplit:
            return self._uncut(part, list(part.source.lines()))
        lang = self._langs[side] or language_of(part.source) or "en"
        kinds = SUFFIXES.get(part.source.suffix), kind_of(first_bytes(part.source))
        if DocumentFormat.SUBTITLES in kinds:
            return self._subtitles(part, lang)
        if kind := next((kind for kind in kinds if kind in _MARKED_UP), None):
            rows = self._split(part.source, lang, kind)
        else:
            lines = list(part.source.lines())
            head = "\n".join(line[:HEAD] for line in lines[:5])
            check_text(head.encode("utf-8", "replace"), part.source)
            if _is_cut(lines, lang):
                return self._uncut(part, lines)
            rows = [
                (line, f"{part.name} {i}.{j}", j == 1)
                for i, (text, _) in enumerate(cleaned(paragraphs(lines)), 1)
                for j, line in enumerate(sentences(text, lang), 1)
            ]
        self.cut[part.name] = len(rows)
        if sentence := unmarked(lang):
            log.warning("%s: warning: %s", part.source, sentence)
        texts, origins, begins = zip(*rows, strict=True) if rows else ((), (), ())
        return DocumentSentences(texts, origins if self._origin else (), paragraphs=begins)

    def _subtitles(self, part: Part, lang: str) -> DocumentSentences:
        text = read_subtitles(part.source.blocks(), lang, str(part.source))
        cues = [
            (line, f"{part.name} {i}.{j}", times)
            for i, passage in enumerate(passages(text, str(part.source)), 1)
            for j, (line, times) in enumerate(passage.sentences(lang), 1)
        ]
        self.cut[part.name] = len(cues)
        lines, origins, times = zip(*cues, strict=True) if cues else ((), (), ())
        return DocumentSentences(lines, origins if self._origin else (), times)

    def _uncut(self, part: Part, lines: Sequence[str]) -> DocumentSentences:
        if not self._origin:
            return DocumentSentences(lines, ())
        if part.source not in self._corpora:  # the parts of a file come one after the other
            self._corpora = {source: text for source, text in self._corpora.items() if part.lines is not None}
            if part.source.is_stream:
                raise BitextmineError(
                    "--origin: standard input has no file of origins beside it; name a file"
                )
            self._corpora[part.source] = Corpus(part.source, UNDETERMINED)
        rows = range(part.first, part.first + len(lines))
        return DocumentSentences(lines, list(self._corpora[part.source].places(rows)))

    def _split(self, source: Source, lang: str, kind: DocumentFormat) -> list[tuple[str, str, bool]]:
        """Return the sentences of a page, a book or an office file, their origins, and if they begin paragraphs."""
        return [
            (row.text, f"{row.url or row.document} {row.paragraph}.{row.sentence}", row.sentence == 1)
            for row in split(source, lang, kind=kind, run=self._run)
        ]


def _is_cut(lines: Sequence[str], lang: str) -> bool:
    """Return True if a text has one sentence per line, False for paragraphs and wrapped text."""
    sample = list(itertools.islice((line for line in lines if line.strip()), _LOOKED_AT))
    if not sample:
        return True
    counts = [len(sentences(line, lang)) for line in sample]
    several = sum(count > 1 for count in counts) / len(sample)
    whole = sum(1 for _ in paragraphs(sample)) >= _WRAPPED * len(sample) or max(map(len, sample)) < _SHORT
    return whole and several <= _SEVERAL and sum(counts) < _PER_LINE * len(sample)


@dataclass(frozen=True)
class DocumentPair:
    """Two documents to align."""

    name: str
    src: Part
    tgt: Part


def documents_of(
    src: Source, tgt: Source, *, blank_lines: bool, matched: bool
) -> tuple[list[Part], list[Part]]:
    """Return the documents of two files or folders, with `blank_lines` the parts of the files.

    Raises:
        UsageError: a file and a folder, folders with `blank_lines`, or single documents to be `matched` by content.
        BitextmineError: an unreadable file or folder.
    """
    folders = src.path.is_dir(), tgt.path.is_dir()
    if matched and folders != (not blank_lines, not blank_lines):
        raise UsageError("--documents takes two folders, or two files with --blank-lines")
    if folders[0] != folders[1]:
        folder, file = (src, tgt) if folders[0] else (tgt, src)
        raise UsageError(f"{folder} is a folder and {file} is not; give two of a kind")
    if folders[0] and blank_lines:
        raise UsageError("--blank-lines takes two files, not two folders")
    if folders[0]:
        return _read_folder(src), _read_folder(tgt)
    return (_read_parts(src), _read_parts(tgt)) if blank_lines else ([Part(src)], [Part(tgt)])


def tasks_of(src: Source, tgt: Source, sides: tuple[list[Part], list[Part]]) -> list[DocumentPair]:
    """Return the tasks of the documents of two files or folders: files of one name, parts of files in order.

    Raises:
        BitextmineError: a document without a partner.
    """
    if src.path.is_dir():
        names = [{_document_name(part.source): part for part in parts} for parts in sides]
        for here, there, other in ((names[0], names[1], tgt), (names[1], names[0], src)):
            if alone := [str(part.source) for name, part in here.items() if name not in there]:
                more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
                raise BitextmineError(
                    f"{', '.join(alone[:3])}{more}: no document of that name in {other}; add it, remove this one, or "
                    "pass --documents to match documents by content"
                )
        return [DocumentPair(name, part, names[1][name]) for name, part in names[0].items()]
    if len(sides[0]) != len(sides[1]):
        raise BitextmineError(
            f"{src} has {counted(len(sides[0]), 'document')} with blank lines between them, {tgt} has "
            f"{len(sides[1])}; pass --documents to match them by content"
        )
    if sides[0] and sides[0][0].lines is None:
        return [DocumentPair(_document_name(src), sides[0][0], sides[1][0])]
    return matched_tasks([(i, i) for i in range(len(sides[0]))], *sides)


def read_list(source: Source) -> list[DocumentPair]:
    """Read pairs of files: per line a source, a tab, a target, and optionally a tab and a name.

    Raises:
        BitextmineError: a malformed line, or a missing file.
    """
    tasks = []
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not all(cells):
            raise BitextmineError(
                f"{source}: line {number}: {counted(len(cells), 'cell')}; expected a source file, a tab, a target file"
            )
        src, tgt = (replace(source, text=name) for name in cells[:2])
        for file in (src, tgt):
            if not file.path.is_file():
                raise BitextmineError(f"{source}: line {number}: {file.text}: no such file; check the path")
        name = cells[2] if len(cells) > 2 else _document_name(src)
        tasks.append(DocumentPair(name, Part(src), Part(tgt)))
    if not tasks:
        raise BitextmineError(
            f"{source}: names no files; expected a source file, a tab, a target file per line"
        )
    return tasks


def matched_tasks(
    pairs: Sequence[tuple[int, int]], src: Sequence[Part], tgt: Sequence[Part]
) -> list[DocumentPair]:
    """Return tasks for pairs of documents, named by file, or by number for parts of files."""
    tasks = []
    for i, j in pairs:
        whole = src[i].lines is None
        name = f"{src[i].name} {tgt[j].name}" if whole else f"{i + 1} {j + 1}"
        tasks.append(DocumentPair(name, src[i], tgt[j]))
    return tasks


def _document_name(file: Location) -> str:
    """Return the name of a document in any language: ``en/a.txt.gz`` and ``a.fr.txt`` are both ``a``."""
    parts = file.stem.name.split(".")
    while len(parts) > 1 and (f".{parts[-1].lower()}" in SUFFIXES or is_code(parts[-1])):
        parts.pop()
    return ".".join(parts)


def _read_folder(folder: Source) -> list[Part]:
    """Return the documents of a folder, in the order of their names; subfolders are skipped."""
    parts: dict[str, Part] = {}
    with explained(f"{folder}: cannot list the folder"):
        paths = sorted(p for p in folder.path.iterdir() if _is_document(p))
    for path in paths:
        file = replace(folder, text=str(path))
        name = _document_name(file)
        if name in parts:
            raise BitextmineError(
                f"{folder}: {parts[name].name} and {path.name} are both called '{name}'; remove one, or name the pairs "
                "in a file for --list"
            )
        parts[name] = Part(file)
    if not parts:
        raise BitextmineError(f"{folder}: the folder has no files; name one with a file per document")
    return list(parts.values())


def _is_document(path: AnyPath) -> bool:
    return path.is_file() and not path.name.startswith(".") and not path.name.endswith(ORIGIN)


def _read_parts(source: Source) -> list[Part]:
    """Return the documents of one file, separated by blank lines."""
    parts: list[Part] = []
    lines: list[str] = []
    for number, line in enumerate([*source.lines(), ""]):
        if line.strip():
            lines.append(line)
        elif lines:
            parts.append(Part(source, number - len(lines), tuple(lines)))
            lines = []
    return parts
