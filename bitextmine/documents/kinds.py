"""Documents, their kinds, and the choices of `split`; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, NoReturn

from bitextmine.declarations import Opt, Options
from bitextmine.errors import BitextmineError
from bitextmine.languages.codes import LanguageCode


class NoDocument(BitextmineError):
    """A file, or a record of one, that holds no document; in a folder or a crawl the others are read."""


class Damaged(NoDocument):
    """A file or a record that cannot be read, or not to its end."""


@dataclass(frozen=True)
class Document:
    """A document, whose text is read only when asked for.

    Attributes:
        name: the file, with the number of the record behind ``#`` if there are several.
        url: its address ("": none known).
        lang: the language that the name tells.
        paragraphs: returns its paragraphs; NoDocument if the record holds none.
        tags: they may hold tags, which are no text; those of a web page are removed already.
    """

    name: str
    url: str
    lang: str | None
    paragraphs: Callable[[], Iterable[str]]
    tags: bool = True

    @classmethod
    def broken(cls, name: str, problem: str, *, damaged: bool = False) -> Document:
        """Return a document whose paragraphs raise NoDocument, or Damaged, with that message."""

        def fail() -> NoReturn:
            raise (Damaged if damaged else NoDocument)(problem)

        return cls(name, "", None, fail)


class DocumentFormat(StrEnum):
    """A kind of file that holds documents."""

    TEXT = "text"
    HTML = "html"
    WARC = "warc"
    JSONL = "jsonl"
    PARQUET = "parquet"
    EPUB = "epub"
    DOCX = "docx"
    ODT = "odt"
    PDF = "pdf"
    SUBTITLES = "subtitles"


SUFFIXES = {
    suffix: kind
    for kind, suffixes in {
        DocumentFormat.TEXT: (".txt", ".text", ".md"),
        DocumentFormat.HTML: (".html", ".htm", ".xhtml"),
        DocumentFormat.WARC: (".warc", ".wet"),
        DocumentFormat.JSONL: (".jsonl", ".ndjson"),
        DocumentFormat.PARQUET: (".parquet", ".pq"),
        DocumentFormat.EPUB: (".epub",),
        DocumentFormat.DOCX: (".docx", ".docm", ".dotx"),
        DocumentFormat.ODT: (".odt", ".ott"),
        DocumentFormat.PDF: (".pdf",),
        DocumentFormat.SUBTITLES: (".srt", ".vtt", ".ass", ".ssa"),
    }.items()
    for suffix in suffixes
}


@dataclass(frozen=True)
class SplitOptions(Options):
    """How documents become lines; UsageError for a value of the wrong type."""

    langs: Annotated[
        tuple[LanguageCode, ...],
        Opt(
            "--lang",
            "Language of the documents; with --by-language, a language to keep.",
            default="from the file name, as in book.en.txt",
        ),
    ] = ()
    by_language: Annotated[
        bool, Opt("--by-language", "Identify the language of each document. Needs the extra 'languages'.")
    ] = False
    ids: Annotated[
        bool,
        Opt(
            "--ids",
            "Write document, URL, paragraph and sentence number before each sentence, separated by tabs, instead of "
            "NAME.LANG.origin.tsv.",
        ),
    ] = False
    join: Annotated[
        Literal["sentence", "paragraph"], Opt("--join", "Write a sentence or a paragraph per line.")
    ] = "sentence"
    normalize: Annotated[
        bool,
        Opt(
            "--normalize/--no-normalize",
            "Remove markup, mojibake, control and zero-width characters and runs of spaces, and apply Unicode NFC.",
        ),
    ] = True
    machine_translated: Annotated[
        bool,
        Opt(
            "--machine-translated",
            "Keep web pages whose HTML marks them as machine-translated; by default they are left out, and counted.",
        ),
    ] = False
    kind: Annotated[
        DocumentFormat | None, Opt("--from", "Format of the files.", default="by suffix, then by content")
    ] = None
    text_field: Annotated[
        str,
        Opt(
            "--text-field", "Field of JSON Lines, or column of Parquet, that holds the text.", metavar="NAME"
        ),
    ] = "text"
