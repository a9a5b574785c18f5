"""Sentence pairs as columns see them: texts, vectors and neighbourhoods, each made once; and the tools for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import UsageError
from bitextmine.scoring.columns.around import Around, Neighbourhood

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder
    from bitextmine.languages.identify import Languages

__all__ = ["Column", "PairTexts", "Tools"]


@dataclass(frozen=True)
class Column:
    """One column: its name, how it is computed, and whether its cells are text.

    encoder, neighbours, languages, identifies: whether it needs an encoder, the neighbourhoods of the vectors, the
    languages that the sides should be in, what languages they look like; better_with_languages: whether it makes use of
    the languages where they are stated.
    """

    name: str
    compute: Callable[[PairTexts], Any]
    is_text: bool = False
    encoder: bool = False
    neighbours: bool = False
    languages: bool = False
    identifies: bool = False
    better_with_languages: bool = False


@dataclass
class Tools:
    """What columns are computed with; whatever a wanted column needs must be there.

    src_lang, tgt_lang: the languages that the sides should be in, "" for not stated.
    """

    encoder: Encoder | None = None
    neighbourhood: Neighbourhood | None = None
    margin: str = "ratio"
    src_lang: str = ""
    tgt_lang: str = ""
    device: str = "auto"
    batch_tokens: int | None = None
    _languages: Languages | None = field(default=None, repr=False)

    @property
    def languages(self) -> Languages:
        """Made when it is first asked for, as its model takes a moment to load; BitextmineError where it is missing."""
        if self._languages is None:
            from bitextmine.languages.identify import Languages

            self._languages = Languages()
        return self._languages

    def prepare(self, columns: Iterable[Column]) -> None:
        """Make sure, before the first row is read, that these columns can tell languages and are told which.

        Raises BitextmineError where py3langid is missing, UsageError where a column needs the languages of the sides
        and they are not stated, and for languages that cannot be told.
        """
        columns = list(columns)
        stated = bool(self.src_lang and self.tgt_lang)
        if any(column.languages for column in columns) and not stated:
            raise UsageError(
                "the column lang needs both languages: pass --src and --tgt, as in --src en --tgt fr"
            )
        if stated and any(column.languages or column.better_with_languages for column in columns):
            self.src_lang, self.tgt_lang = self._known(self.src_lang), self._known(self.tgt_lang)
        elif any(column.identifies for column in columns):
            _ = self.languages

    def _known(self, language: str) -> str:
        code = self.languages.code(language)
        if code is None:
            codes = sorted(self.languages.codes)
            raise UsageError(
                f"language '{language}' is none of the {len(codes)} that can be told: {', '.join(codes)}"
            )
        return code


class PairTexts:
    """Some sentence pairs and their columns, each computed once. catalogue: those that there are, by name.

    Blocks of a stream must come in its order: the neighbourhoods are those of the pairs before, too.
    """

    def __init__(
        self, src: Sequence[str], tgt: Sequence[str], tools: Tools, catalogue: Mapping[str, Column]
    ) -> None:
        if len(src) != len(tgt):
            raise ValueError(f"{len(src)} sources but {len(tgt)} targets")
        self.src, self.tgt, self.tools = src, tgt, tools
        self._catalogue = catalogue
        self._columns: dict[str, Any] = {}
        self._vectors: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._around: Around | None = None

    def __len__(self) -> int:
        return len(self.src)

    def column(self, name: str) -> Any:
        """The values (n,): float64, or a list of str for a column of text."""
        if name not in self._columns:
            self._columns[name] = self._catalogue[name].compute(self)
        return self._columns[name]

    def vectors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Unit vectors of both sides, (n, d) each."""
        if self._vectors is None:
            encoder = self.tools.encoder
            if encoder is None:
                raise ValueError("no encoder")
            tokens = self.tools.batch_tokens
            self._vectors = (
                encoder.encode(self.src, batch_tokens=tokens),
                encoder.encode(self.tgt, batch_tokens=tokens),
            )
        return self._vectors

    def around(self) -> Around:
        """The neighbourhoods of the pairs."""
        if self._around is None:
            if self.tools.neighbourhood is None:
                raise ValueError("no neighbourhood")
            self._around = self.tools.neighbourhood.around(self.src, self.tgt, self.vectors())
        return self._around

    def each(self, function: Callable[[str, str], float]) -> NDArray[np.float64]:
        """A function of two texts, for every pair."""
        return np.fromiter(map(function, self.src, self.tgt), dtype=np.float64, count=len(self))
