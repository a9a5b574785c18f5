"""Message catalogues of gettext (PO), to read: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html."""

import math
import re
from collections.abc import Iterator

import polib

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.records import TRANSLATION, Record, RecordRows
from bitextmine.files.source import Source
from bitextmine.languages.codes import is_code

_BREAKS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")  # polib ends a line at these, too
# A text without its closing quotation mark: polib takes the last letter for it.
_OPEN = re.compile(
    r'[ \t]*+(?:#~[ \t]*+)?(?:msg[a-z_]++(?:\[\d+\])?[ \t]*+)?"(?!(?:[^"\\]|\\.)*+"[ \t\r]*+\Z).*'
)
_CHARSET = re.compile(rb'"Content-Type:[^"\n]*charset=([\w.:-]+)')


def open_po(source: Source, columns: Columns) -> RecordRows:
    """Return the messages of a catalogue: each plural form is a row; columns for the context and the flags.

    Flags are those of gettext, such as fuzzy, and ``obsolete``. The languages are those of the header; few catalogues
    name that of the source (X-Source-Language).

    Raises:
        BitextmineError: the file is no catalogue, or in an unknown encoding.
    """
    raw = b"".join(source.blocks()).removeprefix(b"\xef\xbb\xbf")
    charset = _CHARSET.search(raw)
    encoding = charset[1].decode() if charset and charset[1] != b"CHARSET" else "utf-8"
    try:
        text = _BREAKS.sub(" ", raw.decode(encoding))
        catalogue = polib.pofile(text + "\n")
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
    cut = [number for number, line in enumerate(text.splitlines(), 1) if _OPEN.fullmatch(line)]
    ends = [*(entry.linenum for entry in catalogue[1:]), math.inf]
    records = (
        record
        for entry, end in zip(catalogue, ends, strict=False)  # without entries there is an end all the same
        for record in _messages(entry, src, tgt, next((n for n in cut if entry.linenum <= n < end), 0))
    )
    return RecordRows(source, records, columns, (src, tgt), fields=("context", "flags"))


def _messages(entry: polib.POEntry, src: str, tgt: str, cut: int) -> Iterator[Record]:
    """Yield the pairs of an entry: the singular with the first form, the plural with each of the others.

    cut: the line of a text without an end, 0 for none.
    """
    if cut:
        yield Record(None, len(entry.msgid), f"line {cut}: no closing quotation mark", entry.msgid)
        return
    flags = [*entry.flags, *(["obsolete"] if entry.obsolete else [])]
    values = {"context": entry.msgctxt, "flags": ", ".join(flags) or None}
    pairs = [(entry.msgid, entry.msgstr)]
    if entry.msgid_plural:
        forms = [entry.msgstr_plural[number] for number in sorted(entry.msgstr_plural)]
        sole = len(forms) == 1  # a language without plurals
        pairs = [
            (entry.msgid_plural if number or sole else entry.msgid, form) for number, form in enumerate(forms)
        ]
    for source, target in pairs:
        texts = {src: source, tgt: target} if target else {src: source}
        yield Record({TRANSLATION: texts, **values}, len(source) + len(target))
