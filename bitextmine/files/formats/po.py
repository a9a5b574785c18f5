"""Message catalogues of gettext (PO), to read: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html."""

import re
from collections.abc import Iterator

import polib

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows
from bitextmine.files.source import Source
from bitextmine.languages.codes import is_code

_BREAKS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # polib ends a line at these, too
_CHARSET = re.compile(rb'"Content-Type:[^"\n]*charset=([\w.:-]+)')


def open_po(source: Source, columns: Columns) -> RecordRows:
    """Return the messages of a catalogue, each plural form as a row; fuzzy and obsolete ones are left out.

    The languages are those of the header; few catalogues name that of the source (X-Source-Language).

    Raises:
        BitextmineError: the file is no catalogue, or in an unknown encoding.
    """
    raw = b"".join(source.blocks()).removeprefix(b"\xef\xbb\xbf")
    charset = _CHARSET.search(raw)
    encoding = charset[1].decode() if charset and charset[1] != b"CHARSET" else "utf-8"
    try:
        catalogue = polib.pofile(_BREAKS.sub(" ", raw.decode(encoding)) + "\n")
    except (UnicodeDecodeError, LookupError) as e:
        raise BitextmineError(
            f"{source}: not in the encoding {encoding} ({e}); correct its Content-Type"
        ) from None
    except OSError as e:
        problem = str(e).replace("None ", "").strip()
        raise BitextmineError(
            f"{source}: not a message catalogue ({problem}); check it with msgfmt -c"
        ) from None
    stated = [catalogue.metadata.get(key, "") for key in ("X-Source-Language", "Language")]
    src, tgt = (lang if is_code(lang) else other for lang, other in zip(stated, ("src", "tgt"), strict=True))
    if src == tgt:
        src, tgt = "src", "tgt"
    pairs = (pair for entry in catalogue if not (entry.fuzzy or entry.obsolete) for pair in _pairs(entry))
    records = (
        Record({TRANSLATION: {src: source, tgt: target or None}}, len(source) + len(target))
        for source, target in pairs
    )
    return RecordRows(source, records, columns, (src, tgt))


def _pairs(entry: polib.POEntry) -> Iterator[tuple[str, str]]:
    """Yield the singular with the first form, the plural with each of the others."""
    if not entry.msgid_plural:
        yield entry.msgid, entry.msgstr
        return
    forms = [entry.msgstr_plural[number] for number in sorted(entry.msgstr_plural)]
    for number, form in enumerate(forms):
        sole = len(forms) == 1  # a language without plurals
        yield entry.msgid_plural if number or sole else entry.msgid, form
