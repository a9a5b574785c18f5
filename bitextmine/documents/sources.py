"""Documents out of files and folders: text, web pages, crawls, books, office files, subtitles, JSON Lines, Parquet."""

import codecs
import dataclasses
import functools
import itertools
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitextmine.documents.kinds import SUFFIXES, Damaged, Document, DocumentFormat, NoDocument, SplitOptions
from bitextmine.documents.office import office_documents, pdf_paragraphs
from bitextmine.documents.pages import page_file
from bitextmine.documents.sentences import paragraphs
from bitextmine.documents.subtitles import is_subtitles, passages, read_subtitles
from bitextmine.documents.warc import crawled
from bitextmine.errors import BitextmineError
from bitextmine.files.formats.names import PARQUET, sniff
from bitextmine.files.json_toml import parse_json
from bitextmine.files.source import MAGIC, Location, Source, decoded_blocks
from bitextmine.languages.codes import language
from bitextmine.run import Run

log = logging.getLogger(__name__)

HEAD = 1024  # bytes that tell the kind of a file

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:\[\s*+\{\s*+\"|\{[ \t\r]*+\n\s*+\"[^\"\n]*+\"\s*+:)")
_LOOKED_AT = 50  # lines of plain text that tell if it is a table

# First bytes of what is no text, and the way to make text of it.
_CONVERT = (
    (b"\xd0\xcf\x11\xe0", "an old Microsoft Office file: convert it with 'soffice --convert-to txt FILE'"),
    (b"{\\rtf", "RTF: convert it with 'pandoc -t plain FILE' first"),
    (b"filedesc://", "an ARC file: convert it with 'warcio recompress'"),
    *((magic, "an image") for magic in (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")),
    *((magic, advice.replace("it looks like", "is").removeprefix("it ")) for magic, advice in MAGIC),
)


# What is in the first bytes, in lower case, of files that are no text whatever their names say.
_BINARY = (
    ((b"par1",), DocumentFormat.PARQUET),
    ((b"%pdf",), DocumentFormat.PDF),
    ((b"pk\x03\x04", b"application/epub+zip"), DocumentFormat.EPUB),
    ((b"pk\x03\x04", b"application/vnd.oasis.opendocument.text"), DocumentFormat.ODT),
    *(
        ((b"pk\x03\x04", part), DocumentFormat.DOCX)
        for part in (b"[content_types].xml", b"word/", b"docprops/")
    ),
)
BINARY = frozenset(kind for _, kind in _BINARY)


@dataclass(frozen=True)
class File:
    r"""An input.

    Attributes:
        source: its text.
        name: its name in origins and messages; bytes of it that are not UTF-8 are written as ``\xff``.
        named: the user named it, not its folder.
        size: in bytes, 0 if it is unknown.
        version: what changes when its content does: size, time of the last change, inode.
        problem: why it cannot be read, "" if nothing is known.
    """

    source: Source
    name: str
    named: bool
    size: int = 0
    version: tuple[int, ...] = ()
    problem: str = ""


def find_files(inputs: Sequence[str | os.PathLike[str]], run: Run | None = None) -> list[File]:
    """Return the files that a command line names, those of folders and their subfolders included, sorted by name.

    Hidden files are left out, as are devices and named pipes in folders. BitextmineError for a folder without files; a
    missing file shows when it is read.
    """
    files: list[File] = []
    for path in inputs:
        source = Source.of(path, run)
        if not Path(source.path).is_dir():
            files.append(_file(source, str(source), named=True))
        elif inner := _in_folder(source):
            files.extend(inner)
        else:
            raise BitextmineError(f"{source}: no files in this folder; name one that holds documents")
    return files


def _in_folder(top: Source) -> list[File]:
    files: list[File] = []

    def add(path: str, problem: str = "") -> None:
        source = dataclasses.replace(top, text=path)
        file = _file(source, os.path.relpath(path, top), named=False, problem=problem)
        if file.version or file.problem:  # no device
            files.append(file)

    def unreadable(error: OSError) -> None:
        add(str(error.filename), f"cannot read: {error.strerror or error}")

    for folder, folders, names in os.walk(top, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                add(str(Path(folder, name)))
    return files


def _file(source: Source, name: str, *, named: bool, problem: str = "") -> File:
    written = os.fsencode(name).decode("utf-8", "backslashreplace")
    try:
        status = Path(source).stat()
    except (OSError, ValueError) as error:
        if not named and not problem:
            problem = f"cannot read: {getattr(error, 'strerror', None) or error}"
        return File(source, written, named, problem=problem)
    if not stat.S_ISREG(status.st_mode):
        return File(source, written, named, problem=problem)
    version = (status.st_size, status.st_mtime_ns, status.st_ino)
    return File(source, written, named, status.st_size, version)


def documents(
    file: File, options: SplitOptions, seen: Callable[[int], object] | None = None
) -> Iterator[Document]:
    """Yield the documents of a file; `seen` is told how many of its bytes have been read.

    Raises:
        BitextmineError: while iterating: an unreadable file; NoDocument if it holds no documents.
    """
    if file.problem:
        raise Damaged(file.problem)
    kind = options.kind or SUFFIXES.get(file.source.suffix)
    lang = language_of(file.source)
    if kind is DocumentFormat.WARC:
        yield from crawled(file.source, file.name, seen, options.machine_translated)
    elif kind is DocumentFormat.HTML:
        text = functools.partial(page_file, file.source, seen, options.machine_translated)
        yield Document(file.name, "", lang, text, tags=False)
    elif kind is DocumentFormat.PARQUET:
        rows = PARQUET.load("parquet:parquet_records")(file.source)
        for number, row in enumerate(rows, start=1):
            yield _record(row.content, f"{file.name}#{number}", options.text_field)
    elif kind in (DocumentFormat.EPUB, DocumentFormat.DOCX, DocumentFormat.ODT):
        yield from office_documents(kind, file.source, file.name, lang)
    elif kind is DocumentFormat.PDF:
        yield Document(file.name, "", lang, functools.partial(pdf_paragraphs, file.source), tags=False)
    else:
        yield from _streamed(file, kind, options, seen)


def _streamed(
    file: File, kind: DocumentFormat | None, options: SplitOptions, seen: Callable[[int], object] | None
) -> Iterator[Document]:
    """Yield the documents of a file of text, JSON Lines or subtitles, or of one whose name does not tell what it is."""
    blocks = file.source.line_blocks(seen)
    head = b""
    for head in itertools.accumulate(blocks):
        if len(head) >= HEAD:
            break
    looks = kind_of(head) if options.kind is None else kind
    if DocumentFormat.SUBTITLES in (kind, looks):
        stated = None if options.by_language else "".join(options.langs)
        named = language_of(file.source)
        text = read_subtitles(itertools.chain([head], blocks), stated or named or "", file.name)
        spoken = passages(text, file.name)
        yield Document(file.name, "", named, lambda: (passage.text for passage in spoken))
        return
    if looks is not None and options.kind is None:
        if looks in BINARY or (kind is None and looks in (DocumentFormat.WARC, DocumentFormat.HTML)):
            if file.source.is_stream:
                raise NoDocument(f"{file.source}: looks like {looks.upper()}; say so with --from {looks}")
            yield from documents(file, dataclasses.replace(options, kind=looks), seen)
            return
        check_text(head, file.source)
        kind = kind or looks
    head = head.removeprefix(codecs.BOM_UTF8)
    blocks = itertools.chain([head] if head else [], blocks)
    if kind is DocumentFormat.JSONL:
        yield from _records(blocks, file.name, options.text_field)
    else:
        sample = [line for line in map(bytes.strip, head.split(b"\n")[:_LOOKED_AT]) if line]
        if sum(b"\t" in line for line in sample) > len(sample) / 2:
            log.warning(
                "%s: warning: tabs in most lines: a table of pairs? Take a column first: cut -f 1", file.name
            )
        lang = language_of(file.source)
        texts = decoded_blocks(blocks, file.source.errors, file.name)
        lines = (line for text in texts for line in text[:-1].split("\n"))
        yield Document(file.name, "", lang, lambda: paragraphs(lines))


def _records(blocks: Iterable[bytes], name: str, text_field: str) -> Iterator[Document]:
    lines = itertools.chain.from_iterable(block.removesuffix(b"\n").split(b"\n") for block in blocks)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line.decode())
        except ValueError:
            yield Document.broken(f"{name}#{number}", "not valid JSON", damaged=True)
            continue
        yield _record(record if isinstance(record, dict) else {}, f"{name}#{number}", text_field)


def _record(record: dict[str, Any], name: str, text_field: str) -> Document:
    text = record.get(text_field)
    if not isinstance(text, str):
        return Document.broken(name, f"no text in a field '{text_field}'; name the field with --text-field")
    url = record.get("url")
    return text_document(text, name, url if isinstance(url, str) else "")


def text_document(text: str, name: str, url: str = "") -> Document:
    """Return a document of plain text in memory."""
    # Half a pair of surrogates is no character.
    text, url = (each.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for each in (text, url))
    return Document(name, url, None, lambda: paragraphs(text.split("\n")))


def language_of(path: str | os.PathLike[str]) -> str | None:
    """Return the language that a file's name tells, as in book.fr, book.fr.gz and page.fr.html; None if it does not."""
    stem = Location.of(path).stem
    if stem.suffix.lower() in SUFFIXES:
        stem = stem.with_suffix("")
    code = stem.suffix[1:]
    return code if code and language(code) else None


def kind_of(head: bytes) -> DocumentFormat:
    """Return the kind of a file by its first bytes; TEXT for all that is none of the others."""
    start = head[:HEAD].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"warc/"):
        return DocumentFormat.WARC
    if start.startswith((b"<!doctype html", b"<html")):
        return DocumentFormat.HTML
    if is_subtitles(head):
        return DocumentFormat.SUBTITLES
    for magic, kind in _BINARY:
        if start.startswith(magic[0]) and all(marker in start for marker in magic):
            return kind
    return DocumentFormat.JSONL if start.startswith(b'{"') else DocumentFormat.TEXT


def check_text(head: bytes, path: str | os.PathLike[str]) -> None:
    """Raise NoDocument if the first bytes of a file are those of no text."""
    for magic, what in _CONVERT:
        if head.startswith(magic):
            raise NoDocument(f"{path}: {what}")
    if b"\0" in head[:HEAD]:
        raise NoDocument(f"{path}: contains NUL bytes, so it is not text; convert it to UTF-8 text first")
    format = sniff(head)
    if format in ("xliff", "po") or (format == "tmx" and b"<tmx" in head):  # it may be any other XML
        raise NoDocument(
            f"{path}: {format.upper()}: it holds pairs already; 'bitextmine score' and 'filter' read it"
        )
    if _JSON.match(head):
        raise NoDocument(
            f"{path}: JSON, but not an object per line: make JSON Lines of it with \"jq -c '.[]' FILE\""
        )
    if format == "csv" or Location.of(path).suffix == ".csv":
        raise NoDocument(
            f"{path}: CSV: 'bitextmine score' and 'filter' read pairs from it; for documents, write its column of text "
            "to a file"
        )
