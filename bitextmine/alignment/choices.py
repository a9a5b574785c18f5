"""Output formats of `align` by name; `bitextmine --help` reads them, so nothing heavy is imported here."""

from bitextmine.errors import UsageError
from bitextmine.files.formats.names import FORMATS as PAIR_FORMATS
from bitextmine.files.formats.names import JSONL, SUFFIXES, TSV, output_format
from bitextmine.files.location import Location

# Formats that hold all links, one-sided ones too. The others are those of any file of pairs and hold pairs alone.
LINK_FORMATS = {
    "tsv": "read by score and filter",
    "ladder": "hunalign's format",
    "vecalign": "Vecalign's format",
    "json": "an object per document",
}
FORMATS = {
    **LINK_FORMATS,
    **{
        name: "pairs, as other commands write them"
        for name, format in PAIR_FORMATS.items()
        if format.writer and format != TSV
    },
}
_TEXT = ("tsv", "ladder", "vecalign")


def choose_format(wanted: str | None, output: Location) -> str:
    """Return the format of an output file: the wanted one, or the one that its suffix tells.

    Raises:
        UsageError: the suffix tells nothing and no format is given, or the two disagree.
    """
    suffix = "" if output.is_stream else output.suffix
    if not suffix:
        return wanted or "tsv"
    if suffix == ".json":
        allowed: tuple[str, ...] = ("json",)
    elif suffix not in SUFFIXES:
        return wanted or output_format(output).name
    else:
        format = output_format(output)
        allowed = {TSV: _TEXT, JSONL: (JSONL.name, "json")}.get(format, (format.name,))
    if wanted is not None and wanted not in allowed:
        raise UsageError(
            f"-o {output}: this name is for {' or '.join(allowed)}, but --format is {wanted}; change one of them"
        )
    return wanted or allowed[0]
