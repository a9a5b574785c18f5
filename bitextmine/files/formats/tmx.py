"""TMX 1.4b (https://www.gala-global.org/tmx-14b): its elements, and a writer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from bitextmine.files.formats.cells import Added, cell_text, cells_of, one_cell
from bitextmine.files.formats.names import TMX
from bitextmine.files.formats.protocol import Outline
from bitextmine.files.formats.records import TRANSLATION, RecordWriter
from bitextmine.files.formats.xml import Unit, UnitFormat, sub_units, text_of
from bitextmine.version import __version__

# What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TmxWriter(RecordWriter):
    """Writes a unit per row; other columns are its properties, as the cells of TSV.

    A side without a text is left out. Line breaks of any kind become spaces, and characters that XML cannot hold
    U+FFFD.
    """

    def __init__(self, out: Any, outline: Outline) -> None:
        super().__init__(out, outline, outline.langs)
        TMX.check_languages(outline.langs)
        head = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
            f'<header creationtool="bitextmine" creationtoolversion={quoteattr(__version__)} segtype="sentence" '
            f'o-tmf="plain" adminlang="en" srclang={quoteattr(outline.langs[0])} datatype="plaintext"/>\n<body>\n'
        )
        out.write(head.encode())

    def unit(self, sides: Sequence[tuple[str, Any]], extras: Mapping[str, Any]) -> str:
        """Return a row as a unit."""
        props = ((name, cell_text(name, value)) for name, value in extras.items())
        named = (f"<prop type={quoteattr(_plain(n))}>{escape(_plain(v))}</prop>" for n, v in props if v)
        texts = (
            f"<tuv xml:lang={quoteattr(lang)}><seg>{escape(_plain(str(text)))}</seg></tuv>"
            for lang, text in sides
        )
        return f"<tu>{''.join(named)}{''.join(texts)}</tu>\n"

    def column(self, added: Added) -> Sequence[Any]:
        """Return the values of an added column as cells."""
        return cells_of(added.values)

    def close(self) -> None:
        """Write the end of the document."""
        self._out.write(b"</body>\n</tmx>\n")


def _plain(text: str) -> str:
    return _NOT_XML.sub("\ufffd", one_cell(text))


class Tmx(UnitFormat):
    """TMX: texts by language, properties by type."""

    name, root, unit, parents = "TMX", "tmx", "tu", ("body",)

    def begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the source language from the header."""
        if tag == "header" and (lang := attributes.get("srclang", "")) != "*all*":
            self.declared = (lang,)

    def units(self, element: Element, above: Sequence[Mapping[str, str]]) -> Iterator[Unit]:
        """Yield the pair of a unit, and those within its markup."""
        segments: dict[str, Element] = {}
        bad = ""
        for tuv in element.iter("tuv"):
            lang = tuv.get("xml:lang") or tuv.get("lang") or ""
            if not lang:
                bad = bad or "a tuv without xml:lang"
            elif lang in segments:
                bad = bad or f"two texts in {lang}"
            if (seg := next(tuv.iter("seg"), None)) is not None:
                segments.setdefault(lang, seg)
        props: dict[str, str] = {}
        for prop in element.findall("prop"):
            props.setdefault(prop.get("type", "prop"), text_of(prop))
        props.pop(TRANSLATION, None)
        yield Unit({lang: text_of(seg) for lang, seg in segments.items()}, props, bad)
        if not bad:
            yield from sub_units(segments)
