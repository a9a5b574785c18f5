"""The documents to align, two files or the files of two folders, and their sentences."""

import itertools
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from bitextmine.alignment.options import AlignOptions
from bitextmine.documents.kinds import SUFFIXES, DocumentFormat
from bitextmine.documents.sentences import paragraphs, sentences, unmarked
from bitextmine.documents.sources import HEAD, check_text, kind_of, language_of
from bitextmine.documents.split import split
from bitextmine.documents.subtitles import passages, read_subtitles
from bitextmine.errors import BitextmineError, UsageError, explained
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.names import first_bytes
from bitextmine.files.source import ORIGIN, Source, line_digest
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
_NAMED = 3  # documents that a message names
_MARKED_UP = (
    DocumentFormat.HTML,
    DocumentFormat.EPUB,
    DocumentFormat.DOCX,
    DocumentFormat.ODT,
    DocumentFormat.PDF,
)


class Document(NamedTuple):
    """The sentences of a document.

    Attributes:
        source: the name of its file, for messages.
        origins: where they are from, if that is wanted.
        times: when they begin and end, in seconds, in subtitles.
        paragraphs: True for sentences that begin one, in a document that was cut.
    """

    source: str
    lines: Sequence[str]
    origins: Sequence[str] = ()
    times: Sequence[tuple[float, float]] = ()
    paragraphs: Sequence[bool] = ()

    def begins(self, line: int) -> bool:
        """Return True for a line that begins a paragraph, but for the first one."""
        if self.paragraphs:
            return line > 0 and self.paragraphs[line]
        return line > 0 and not self.lines[line - 1].strip()


class DocumentPair(NamedTuple):
    """Two documents to align."""

    name: str
    src: Document
    tgt: Document

    def digest(self) -> str:
        """Return a hash of the sentences and of what else decides on their links."""
        sides = self.src, self.tgt
        more = [str(each) for side in sides for each in (*side.times, *side.paragraphs)]
        return line_digest([str(len(self.src.lines)), *self.src.lines, *self.tgt.lines, *more])


class Reader:
    """Reads documents, and cuts those into sentences that do not have one on each line.

    Attributes:
        cut: the names of the documents that were cut.
    """

    def __init__(self, options: AlignOptions, run: Run) -> None:
        self._options, self._run = options, run
        self.cut: dict[str, None] = {}

    def read(self, source: Source, side: int) -> Document:
        """Return a document of side 0, the source, or 1, the target.

        BitextmineError if its origins are wanted, and it was not cut and `split` wrote none beside it.
        """
        if self._options.presplit:
            return self._uncut(source, source.lines())
        lang = self._options.langs[side] or language_of(source) or "en"
        kinds = SUFFIXES.get(source.suffix), kind_of(first_bytes(source))
        name = source.path.name
        # Texts, origins, True at the beginning of paragraphs, and times in subtitles.
        rows: list[tuple[str, str, bool, tuple[float, float] | None]] = []
        if DocumentFormat.SUBTITLES in kinds:
            text = read_subtitles(source.blocks(), lang, str(source))
            rows = [
                (line, f"{name} {i}.{j}", j == 1, times)
                for i, passage in enumerate(passages(text, str(source)), 1)
                for j, (line, times) in enumerate(passage.sentences(lang), 1)
            ]
        elif kind := next((kind for kind in kinds if kind in _MARKED_UP), None):
            for row in split(source, lang, kind=kind, run=self._run):
                place = f"{row.url or row.document} {row.paragraph}.{row.sentence}"
                rows.append((row.text, place, row.sentence == 1, None))
        else:
            lines = list(source.lines())
            head = "\n".join(line[:HEAD] for line in lines[:5])
            check_text(head.encode("utf-8", "replace"), source)
            if _is_cut(lines, lang):
                return self._uncut(source, lines)
            rows = [
                (line, f"{name} {i}.{j}", j == 1, None)
                for i, text in enumerate(cleaned(paragraphs(lines)), 1)
                for j, line in enumerate(sentences(text, lang), 1)
            ]
        self.cut[name] = None
        if DocumentFormat.SUBTITLES not in kinds and (sentence := unmarked(lang)):
            log.warning("%s: warning: %s", source, sentence)
        texts, origins, begins, times = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
        origins = origins if self._options.origin else []
        return Document(str(source), texts, origins, list(filter(None, times)), begins)

    def _uncut(self, source: Source, lines: Iterable[str]) -> Document:
        texts = list(lines)
        if not self._options.origin:
            return Document(str(source), texts)
        if source.is_stream:
            raise BitextmineError("--origin: standard input has no file of origins beside it; name a file")
        return Document(str(source), texts, list(Corpus(source, UNDETERMINED).places(range(len(texts)))))


def _is_cut(lines: Sequence[str], lang: str) -> bool:
    """Return True if a text has one sentence per line, False for paragraphs and wrapped text."""
    sample = list(itertools.islice((line for line in lines if line.strip()), _LOOKED_AT))
    if not sample:
        return True
    counts = [len(sentences(line, lang)) for line in sample]
    several = sum(count > 1 for count in counts) / len(sample)
    whole = sum(1 for _ in paragraphs(sample)) >= _WRAPPED * len(sample) or max(map(len, sample)) < _SHORT
    return whole and several <= _SEVERAL and sum(counts) < _PER_LINE * len(sample)


def documents_of(src: Source, tgt: Source, *, matched: bool) -> tuple[list[Source], list[Source]]:
    """Return the files to align: two, or those of two folders, which stand by name at the same place unless `matched`.

    Raises:
        UsageError: a file and a folder, or two files to be `matched` by content.
        BitextmineError: an unreadable folder, one without files, or a document without a partner.
    """
    if src.path.is_dir() != tgt.path.is_dir():
        folder, file = (src, tgt) if src.path.is_dir() else (tgt, src)
        raise UsageError(f"{folder} is a folder and {file} is not; give two of a kind")
    if not src.path.is_dir():
        if matched:
            raise UsageError("--documents takes two folders")
        return [src], [tgt]
    sides = _read_folder(src), _read_folder(tgt)
    alone = [str(sides[i][name]) for i in (0, 1) for name in sides[i] if name not in sides[1 - i]]
    if alone and not matched:
        raise BitextmineError(
            f"{and_more(alone)}: no document of that name in the other folder; add it, remove this one, or "
            "pass --documents to match documents by content"
        )
    return [*sides[0].values()], [sides[1][name] for name in (sides[1] if matched else sides[0])]


def and_more(names: Sequence[str]) -> str:
    """Return the first names of documents, and how many there are beside them."""
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def document_name(file: Source) -> str:
    """Return the name of a document in any language: ``en/a.txt.gz`` and ``a.fr.txt`` are both ``a``."""
    parts = file.stem.name.split(".")
    while len(parts) > 1 and (f".{parts[-1].lower()}" in SUFFIXES or is_code(parts[-1])):
        parts.pop()
    return ".".join(parts)


def _read_folder(folder: Source) -> dict[str, Source]:
    """Return the documents of a folder by name, in order; subfolders are skipped."""
    documents: dict[str, Source] = {}
    with explained(f"{folder}: cannot list the folder"):
        paths = sorted(path for path in folder.path.iterdir() if path.is_file())
    for path in paths:
        if path.name.startswith(".") or path.name.endswith(ORIGIN):
            continue
        file = replace(folder, text=str(path))
        name = document_name(file)
        if name in documents:
            raise BitextmineError(
                f"{folder}: {documents[name].path.name} and {path.name} are both called '{name}'; remove one"
            )
        documents[name] = file
    if not documents:
        raise BitextmineError(f"{folder}: the folder has no files; name one with a file per document")
    return documents
