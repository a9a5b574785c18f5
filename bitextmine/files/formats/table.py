"""Files of sentence pairs as streams of blocks of rows, in any of the formats of `names`."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.blocks import Block, Outline, Rows, Writer
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.names import MOSES, TSV, Format, format_of, output_format
from bitextmine.files.output import Destination
from bitextmine.files.source import Source

__all__ = ["Block", "Malformed", "Rows", "Writer", "check_pairs_output", "open_pairs", "open_table"]

_NEARLY_ALL = 0.95
_FEW = 20  # of so many rows, a good one is enough
_MANY = 4096  # after so many rows it is clear what a stream is made of


def open_table(path: str | os.PathLike[str], columns: Columns | None = None) -> Rows:
    """Open a file of pairs (``-``: stdin) in the format that its suffix tells and find its columns.

    Raises:
        BitextmineError: the file cannot be opened, or a column is not there (`layout.find_layout`).
        UsageError: columns are named, and there is no header.
    """
    source = Source.of(path)
    format, columns = format_of(source), columns or Columns()
    rows: Rows = format.load(format.reader)(source, columns)
    rows.source, rows.format, rows.names = source, format, rows.layout.column_names(columns.last)
    return rows


class Malformed:
    """Counts the rows that cannot be read, and raises when nearly all are: these are not pairs, or other columns.

    Rows that only lack the text in one of the languages, as in a memory of many, are counted apart.
    """

    def __init__(self, table: Rows) -> None:
        self._name = str(table.source)
        self._text = table.format.lines
        self._before = int(table.header_line)
        self.rows = self.count = self.untranslated = 0
        self.first = self.first_untranslated = ""  # which row it was, and what was wrong with it

    def add(self, block: Block) -> None:
        """Count a block; raise BitextmineError after many rows, nearly all of them malformed."""
        bad, untranslated = block.bad(), block.untranslated
        if untranslated and not self.first_untranslated:
            self.first_untranslated = self._row(block, untranslated[0])
        if len(bad) > len(untranslated) and not self.first:
            self.first = self._row(block, min(set(bad).difference(untranslated)))
        self.rows += len(block)
        self.untranslated += len(untranslated)
        self.count += len(bad) - len(untranslated)
        if self.rows >= _MANY:
            self._check()

    def _row(self, block: Block, at: int) -> str:
        number = block.start + at + self._before
        return f"{self._name}: {'line' if self._text else 'row'} {number}: {block.bad()[at]}"

    def finish(self) -> None:
        """Raise BitextmineError if nearly all rows were malformed, or none has both texts."""
        if self.rows and self.untranslated + self.count == self.rows and self.untranslated:
            raise BitextmineError(
                f"{self.first_untranslated}; none of {counted(self.rows, 'row')} has a text in both languages"
            )
        if self.rows >= _FEW or self.count == self.rows:
            self._check()

    def notes(self) -> list[str]:
        """Return a note on the rows without a text in one of the languages, which are not counted as malformed."""
        if not self.untranslated:
            return []
        rows = counted(self.untranslated, "row has", "rows have")
        return [f"{rows} no text in one of the languages; the first: {self.first_untranslated}"]

    def _check(self) -> None:
        rows = self.rows - self.untranslated
        if self.count > _NEARLY_ALL * rows:
            good = rows - self.count
            check = "that tabs separate the cells, and --scol, --tcol and --header"
            check = check if self._text else "what the file is"
            raise BitextmineError(
                f"{self.first}; {'none' if not good else f'only {good:,}'} of {rows:,} rows can be read as a "
                f"pair: check {check}"
            )


def check_pairs_output(output: Destination, option: str = "-o", *, only_added: bool = False) -> Format:
    """Return the format of a file to write, and check that it can be written; ask before the work.

    `option` names it; with `only_added`, added columns alone are written, which only lines of text can hold.

    Raises:
        UsageError: the suffix names no format.
        BitextmineError: the file cannot be written, or a package is missing.
    """
    format = output_format(output, option)
    if only_added and format is not TSV:
        raise UsageError(f"{output}: --score-only writes text, to be pasted beside other text")
    output.check()
    format.load(format.writer)
    return format


@contextlib.contextmanager
def open_pairs(
    path: str | os.PathLike[str], outline: Outline, format: Format | None = None
) -> Iterator[Writer]:
    """Open a file of pairs to write (``-``: stdout), in a format or in the one of its suffix; complete or not there.

    Moses is two files, with the languages in place of ``{lang}``.
    """
    output = Destination.of(path)
    format = format or output_format(output)
    format.check_languages(outline.langs)
    with contextlib.ExitStack() as stack:
        if format is MOSES:
            names = [output.text.replace("{lang}", lang) for lang in outline.langs]
            out: Any = [stack.enter_context(Destination(name).open()) for name in names]
        else:
            out = stack.enter_context(output.open())
        writer: Writer = format.load(format.writer)(out, outline)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.discard()
            raise
