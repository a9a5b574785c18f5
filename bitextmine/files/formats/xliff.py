"""XLIFF 1.2 and 2.0 (OASIS), the files of translation tools, to read: a row per segment that has a source.

Read as TMX is. Segments of 1.2 are those that ``seg-source`` and ``target`` mark, or else whole units; matches from
other documents are left out.
"""

from __future__ import annotations

import os

from bitextmine.files.formats.records import RecordRows
from bitextmine.files.formats.tmx import Units, units_as_rows
from bitextmine.files.layout import Columns

_PARENTS = ("trans-unit", "segment")
_SIDES = ("source", "seg-source", "target")


def open_xliff(path: str | os.PathLike[str], columns: Columns) -> RecordRows:
    """Return the rows of a file: source and target of each segment, by language.

    A segment without a target is a bad row.

    Raises:
        BitextmineError: as for `tmx.open_tmx`.
    """
    return units_as_rows(_Segments(path), path, columns)


class _Segments(Units):
    """The segments of a document. In `_texts` those of a unit: by side, and by side and mark."""

    root, unit, kind = "xliff", "trans-unit", "XLIFF"
    _langs = ("", "")
    _side = ""

    @property
    def source(self) -> list[str]:
        """The source language, as the first file has it."""
        return [self._langs[0]]

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""
        if tag == "xliff" and attributes.get("version", "").startswith("2"):
            self.unit = "segment"
            self._langs = attributes.get("srcLang") or "src", attributes.get("trgLang") or "tgt"
        elif tag == "file" and self.unit == "trans-unit":
            self._langs = (
                attributes.get("source-language") or "src",
                attributes.get("target-language") or "tgt",
            )
        elif self._texts is None:
            return
        elif tag in _SIDES and self._open[-2] in _PARENTS:
            self._side, self._part, self._native = tag, [], 0
        elif tag == "mrk" and attributes.get("mtype") == "seg" and self._part is not None:
            self._key, self._part = f"{self._side} {attributes.get('mid', '')}", []

    def finish(self, tag: str) -> None:
        """Take the end of an element of a unit."""
        assert self._texts is not None
        if tag == "mrk" and self._key and self._part is not None:
            self._texts[self._key] = "".join(self._part).strip()
            self._key, self._part = "", []
        elif tag in _SIDES and self._open[-2] in _PARENTS and self._part is not None:
            self._texts[tag] = "".join(self._part).strip()
            self._part = None
        elif tag == self.unit:
            marks = [key.partition(" ")[2] for key in self._texts if key.startswith("seg-source ")]
            if marks and all(f"target {mark}" in self._texts for mark in marks):
                for mark in marks:
                    self._pair(f"seg-source {mark}", f"target {mark}")
            elif "source" in self._texts:
                self._pair("source", "target")

    def _pair(self, *sides: str) -> None:
        assert self._texts is not None
        texts = self._texts
        self.found(
            {lang: texts[side] for lang, side in zip(self._langs, sides, strict=True) if texts.get(side)}, {}
        )
