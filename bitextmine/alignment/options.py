"""The options of align, and its output formats by name; nothing heavy is imported here."""

from dataclasses import dataclass
from typing import Annotated

from bitextmine.declarations import Opt, Options, one_of_names
from bitextmine.errors import UsageError
from bitextmine.files.formats.names import FORMATS as PAIR_FORMATS
from bitextmine.files.formats.names import SUFFIXES, TSV, output_format
from bitextmine.files.options import Normalize
from bitextmine.files.source import Location
from bitextmine.languages.codes import LanguageCode
from bitextmine.shipped import Model, Second

# Formats that hold all links, one-sided ones too. The others are those of any file of pairs and hold pairs alone.
LINK_FORMATS = {"tsv": "read by score and filter", "vecalign": "Vecalign's format"}
_PAIRS_ALONE = (name for name, format in PAIR_FORMATS.items() if format.writer and format != TSV)
FORMATS = (*LINK_FORMATS, *_PAIRS_ALONE)


@dataclass(frozen=True)
class AlignOptions(Options):
    """What to align, and how."""

    documents: Annotated[
        bool, Opt("--documents", "Match the documents of two folders by content instead of name.")
    ] = False
    max_size: Annotated[
        int, Opt("--max-size", "Maximum sentences in a link, both sides together (2 to 16).", ge=2, le=16)
    ] = 6
    presplit: Annotated[
        bool,
        Opt(
            "--presplit",
            "Take each line as a sentence instead of cutting pages and paragraphs into sentences.",
        ),
    ] = False
    anchors: Annotated[
        bool,
        Opt(
            "--anchors",
            "Keep lines that both sides share as fixed points: verse and heading numbers, keys, URLs; also "
            "paragraphs and headings, if both sides have the same number.",
        ),
    ] = False
    ids: Annotated[
        bool,
        Opt(
            "--ids",
            "Add the line numbers, counted from 1, after the score (and the document, if there are several).",
        ),
    ] = False
    origin: Annotated[
        bool,
        Opt(
            "--origin",
            "Add the origin of source and target at the end: URL or document, paragraph and sentence, from "
            "NAME.LANG.origin.tsv beside each document, or from align's own splitting.",
        ),
    ] = False
    normalize: Normalize = False
    format: Annotated[
        Annotated[str, one_of_names(FORMATS)] | None,
        Opt(
            "--format",
            f"{'; '.join(f'{name}: {use}' for name, use in LINK_FORMATS.items())}; others: only pairs.",
            default="by the suffix of --output, or tsv",
        ),
    ] = None
    src_lang: Annotated[
        LanguageCode | None,
        Opt("--src-lang", "Language of SRC.", default="from the file name, as in book.en or book.en.txt"),
    ] = None
    tgt_lang: Annotated[LanguageCode | None, Opt("--tgt-lang", "Language of TGT, likewise.")] = None
    model: Model = "auto"
    second: Annotated[
        Second,
        Opt(
            "--second", "A second encoder for the links in doubt, larger and slower: any that --model takes."
        ),
    ] = None

    @property
    def langs(self) -> tuple[str | None, str | None]:
        """Return the languages of both sides; None if a side states none."""
        return self.src_lang, self.tgt_lang


def choose_format(wanted: str | None, output: Location) -> str:
    """Return the format of an output file: the wanted one, or the one that its suffix tells.

    Raises:
        UsageError: the suffix tells nothing and no format is given, or the two disagree.
    """
    suffix = "" if output.is_stream else output.suffix
    if not suffix:
        return wanted or "tsv"
    if suffix not in SUFFIXES:
        return wanted or output_format(output).name
    format = output_format(output)
    allowed = tuple(LINK_FORMATS) if format is TSV else (format.name,)
    if wanted is not None and wanted not in allowed:
        raise UsageError(
            f"-o {output}: this name is for {' or '.join(allowed)}, but --format is {wanted}; change one of them"
        )
    return wanted or allowed[0]
