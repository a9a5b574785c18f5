"""Files of translation units, TMX or XLIFF, as rows."""

import itertools

from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.records import RecordRows
from bitextmine.files.formats.tmx import Tmx
from bitextmine.files.formats.xliff import Xliff
from bitextmine.files.formats.xml import UnitStream
from bitextmine.files.source import Source


def open_units(source: Source, columns: Columns) -> RecordRows:
    """Return the rows of a file; its first element tells which of the formats it is in."""
    stream = UnitStream(source, (Tmx(), Xliff()))
    records = iter(stream)
    first = list(itertools.islice(records, 1))  # the languages are declared before it
    vocabulary = stream.vocabulary
    return RecordRows(
        source, itertools.chain(first, records), columns, vocabulary.declared, fields=vocabulary.columns
    )
