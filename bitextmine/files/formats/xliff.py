"""XLIFF 1.x and 2.x (OASIS), to read, and the reader of both formats of translation units."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.records import RecordRows
from bitextmine.files.formats.tmx import Tmx
from bitextmine.files.formats.xml import Unit, UnitFormat, UnitStream, sub_units, text_of
from bitextmine.files.source import Source

_CONFIRMED = {"1": "yes", "0": "no"}


class Xliff(UnitFormat):
    """The segments that have a source, by language, each with its state.

    Segments of 1.x are those that ``seg-source`` and ``target`` mark, or else whole units; matches from other documents
    are left out. Columns: ``state`` as the file has it, the program's own where there is one (memoQ, SDL);
    ``approved`` as it has it, or Phrase's ``confirmed``; ``translate``, inherited from the elements around.
    """

    name, root, unit, parents = "XLIFF", "xliff", "trans-unit", ("file",)
    columns = ("state", "approved", "translate")

    def begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the version and the languages; ValueError for a version to come."""
        if tag == "xliff":
            version = attributes.get("version", "1.2")
            if version.partition(".")[0] not in ("1", "2"):
                raise ValueError(f"XLIFF {version[:20]}: versions 1 and 2 can be read; export one of them")
            if version.startswith("2"):
                self.unit = "unit"
        langs = _languages(attributes)
        if all(langs) and not self.declared:
            self.declared = langs

    def units(self, element: Element, above: Sequence[Mapping[str, str]]) -> Iterator[Unit]:
        """Yield the pairs of the segments of a unit, and those within their markup."""
        src, tgt = "", ""
        for attributes in above:
            src, tgt = (
                inner or outer for inner, outer in zip(_languages(attributes), (src, tgt), strict=True)
            )
        translate = [a["translate"] for a in (*above, element.attrib) if "translate" in a]
        shared = {"approved": _approved(element.attrib), "translate": translate[-1] if translate else "yes"}
        for source, target, state in _segments(element):
            sides = {src or "src": source}
            if target is not None:
                sides[tgt or target.get("xml:lang") or "tgt"] = target
            segments = {lang: side for lang, side in sides.items() if text_of(side).strip()}
            texts = {lang: text_of(side).strip() for lang, side in segments.items()}
            yield Unit(texts, {"state": state, **shared})
            for unit in sub_units(segments):
                yield unit._replace(values={"state": state, **shared})


def _languages(attributes: Mapping[str, str]) -> tuple[str, str]:
    """Return the languages of source and target that an element states, empty where it does not."""
    names = (("source-language", "srcLang"), ("target-language", "trgLang"))
    src, tgt = (next((attributes[name] for name in keys if name in attributes), "") for keys in names)
    return src, tgt


def _segments(unit: Element) -> Iterator[tuple[Element, Element | None, str | None]]:
    """Yield source, target and state of the segments of a unit."""
    if unit.tag == "unit":
        for segment in unit.iter("segment"):
            if (source := segment.find("source")) is not None:
                yield source, segment.find("target"), segment.get("state")
        return
    source, target = unit.find("source"), unit.find("target")
    marked = [
        {}
        if side is None
        else {mark.get("mid"): mark for mark in side.iter("mrk") if mark.get("mtype") == "seg"}
        for side in (unit.find("seg-source"), target)
    ]
    state = (
        _local(unit.attrib, "status")
        if target is None
        else target.get("state", _local(unit.attrib, "status"))
    )
    if marked[0] and marked[0].keys() <= marked[1].keys():
        states = {segment.get("id"): segment.get("conf") for segment in unit.iter("seg")}  # SDL
        for mid, mark in marked[0].items():
            yield mark, marked[1][mid], state or states.get(mid)
    elif source is not None:
        yield source, target, state


def _approved(attributes: Mapping[str, str]) -> str | None:
    return attributes.get("approved") or _CONFIRMED.get(_local(attributes, "confirmed") or "")


def _local(attributes: Mapping[str, str], name: str) -> str | None:
    """Return the value of an attribute that has this name and a prefix."""
    return next((value for key, value in attributes.items() if key.endswith(f":{name}")), None)


def open_units(source: Source, columns: Columns) -> RecordRows:
    """Return the rows of a file; its first element tells if it is TMX or XLIFF."""
    stream = UnitStream(source, (Tmx(), Xliff()))
    records = iter(stream)
    first = list(itertools.islice(records, 1))  # the languages are declared before it
    declared, fields = stream.format.declared, stream.format.columns
    return RecordRows(source, itertools.chain(first, records), columns, declared, fields=fields)
