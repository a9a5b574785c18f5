"""Join sentence pairs to pairs of paragraphs or documents, by the origins that `mine --origin` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.cells import DECIMALS, one_cell
from bitextmine.files.formats.protocol import Block, Outline, Writer
from bitextmine.files.formats.records import RecordBlock
from bitextmine.files.streams import display_name
from bitextmine.files.tables import Table

_PLACE = re.compile(r"(.+) (\d+)\.(\d+)(?:-\d+\.\d+)?")  # document or URL, paragraph, first sentence
_COLUMNS = ("score", "src", "tgt", "src_origin", "tgt_origin")
_BLOCK = 8192

Place = tuple[int, int]


class Joiner:
    """Collects sentence pairs, and joins those of one pair of paragraphs or documents.

    Args:
        table: the sentence pairs.
        unit: "paragraph" or "document".

    Raises:
        BitextmineError: the table has no columns of origin.
    """

    def __init__(self, table: Table, unit: str) -> None:
        places = table.layout.places
        if not {"src_origin", "tgt_origin"} <= places.keys():
            raise BitextmineError(
                f"{display_name(table.path)}: --join needs the columns src_origin and tgt_origin; make the "
                "pairs with 'mine --origin'"
            )
        self._columns = [table.layout.src, table.layout.tgt, places["src_origin"], places["tgt_origin"]]
        self._score = places.get("score")
        self._unit = unit
        self._found: dict[tuple[str, str], tuple[dict[Place, str], dict[Place, str], list[float]]] = {}

    def add(self, block: Block, rows: NDArray[np.int64]) -> None:
        """Take rows of a block; those without an origin on both sides are left out."""
        cells = [block.texts(column, rows) for column in self._columns]
        scores = [np.nan] * len(rows) if self._score is None else block.numbers(self._score, rows).tolist()
        for src, tgt, *origins, score in zip(*cells, scores, strict=True):
            src_place, tgt_place = (_PLACE.fullmatch(origin) for origin in origins)
            if src_place is None or tgt_place is None:
                continue
            key = self._name(src_place), self._name(tgt_place)
            joined = self._found.setdefault(key, ({}, {}, []))
            for side, place, text in ((joined[0], src_place, src), (joined[1], tgt_place, tgt)):
                side.setdefault((int(place[2]), int(place[3])), text)
            joined[2].append(score)

    def _name(self, place: re.Match[str]) -> str:
        return place[1] if self._unit == "document" else f"{place[1]} {place[2]}.1"

    def outline(self, langs: tuple[str, str], *, header: bool) -> Outline:
        """Return the columns to write."""
        return Outline(_COLUMNS, 1, 2, langs, header=header, floats=("score",))

    def write(self, out: Writer) -> int:
        """Write the joined pairs, in the order of their first sentence pairs; return their number.

        The sentences are in the order of their document. The score is the mean of the sentence pairs.
        """
        rows = list(self._rows())
        for start in range(0, len(rows), _BLOCK):
            out.write(RecordBlock(_COLUMNS, rows[start : start + _BLOCK], start + 1), None, ())
        return len(rows)

    def _rows(self) -> Iterator[list[object]]:
        for names, (src, tgt, scores) in self._found.items():
            score = float(np.mean(scores))
            yield [None if np.isnan(score) else round(score, DECIMALS), _text(src), _text(tgt), *names]


def _text(sentences: dict[Place, str]) -> str:
    ordered: Sequence[str] = [sentences[place] for place in sorted(sentences)]
    return one_cell(" ".join(ordered))
