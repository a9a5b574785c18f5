"""The choices of `split`; nothing heavy is imported here."""

from dataclasses import dataclass
from enum import StrEnum

from bitextmine.errors import UsageError


class Kind(StrEnum):
    """A kind of file that holds documents."""

    TEXT = "text"
    HTML = "html"
    WARC = "warc"
    JSONL = "jsonl"
    PARQUET = "parquet"


SUFFIXES = {
    suffix: kind
    for kind, suffixes in {
        Kind.TEXT: (".txt", ".text", ".md"),
        Kind.HTML: (".html", ".htm", ".xhtml"),
        Kind.WARC: (".warc", ".arc", ".wet"),
        Kind.JSONL: (".jsonl", ".ndjson"),
        Kind.PARQUET: (".parquet", ".pq"),
    }.items()
    for suffix in suffixes
}


@dataclass(frozen=True)
class SplitOptions:
    """How documents become lines.

    Attributes:
        langs: the language of all documents; with `by_language`, the languages to keep (none: all).
        by_language: identify the language of each document.
        kind: the kind of the files (default: by suffix, then by the first bytes).
        text_field: the field of JSON Lines, or the column of Parquet, that holds the text.
        join: what a line holds, ``sentence`` or ``paragraph``.
        normalize: bring the text into normal form (`languages.clean`).
        ids: put the origin into columns before the text, instead of a file beside the output.
        machine_translated: keep web pages whose HTML says that a machine translated them.

    Raises:
        UsageError: a value has the wrong type.
    """

    langs: tuple[str, ...] = ()
    by_language: bool = False
    kind: Kind | None = None
    text_field: str = "text"
    join: str = "sentence"
    normalize: bool = True
    ids: bool = False
    machine_translated: bool = False

    def __post_init__(self) -> None:
        # Here, as the help of all commands takes the choices of this module.
        from bitextmine.arguments import one_of, yes_or_no

        one_of("join", self.join, ("sentence", "paragraph"))
        for name in ("by_language", "normalize", "ids", "machine_translated"):
            yes_or_no(name, getattr(self, name))
        if not isinstance(self.text_field, str):
            raise UsageError(f"text_field: expected the name of a field, found {self.text_field!r}")
