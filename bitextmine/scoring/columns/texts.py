"""Sentence pairs as columns see them: texts, vectors and neighbourhoods, each made once, and the tools for that."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder
    from bitextmine.languages.identify import Languages
    from bitextmine.scoring.columns.quality import Quality

# Unit vectors of the sources and of the targets, float32 (n, d) each.
Vectors = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Column:
    """A column: its name, its function, and its needs.

    Attributes:
        is_text: the cells are text, not numbers.
        encoder, neighbours: it needs an encoder, or neighbourhoods of vectors.
        languages: it needs the languages that the sides should be in.
        identifies: it identifies languages.
        better_with_languages: it uses the languages if they are stated.
    """

    name: str
    compute: Callable[[PairTexts], Any]
    is_text: bool = False
    encoder: bool = False
    neighbours: bool = False
    languages: bool = False
    identifies: bool = False
    better_with_languages: bool = False


@dataclass(frozen=True)
class Around:
    """Neighbourhoods of pairs.

    Attributes:
        src, tgt: the mean cosine of each source to its nearest targets, and the reverse, float64 (n,).
        size: the number of texts that these were chosen from, on the smaller side.
    """

    src: NDArray[np.float64]
    tgt: NDArray[np.float64]
    size: int


class Neighbourhood(Protocol):
    """Finds the neighbourhood of each pair of a stream."""

    def around(self, src: Sequence[str], tgt: Sequence[str], vectors: Vectors) -> Around:
        """Return the neighbourhoods of the next pairs: texts (n,) with the vectors of both sides."""


@dataclass
class Tools:
    """The tools that columns are computed with; languages are "" if not stated."""

    encoder: Encoder | None = None
    neighbourhood: Neighbourhood | None = None
    margin: str = "ratio"
    src_lang: str = ""
    tgt_lang: str = ""
    batch_tokens: int | None = None

    @functools.cached_property
    def quality(self) -> Quality:
        """The networks of the column quality for the encoder."""
        from bitextmine.scoring.columns.quality import Quality

        assert self.encoder is not None
        return Quality(self.encoder)


@functools.cache
def identifier() -> Languages:
    """Return the language identifier, loaded once; BitextmineError if it is not installed."""
    from bitextmine.languages.identify import Languages

    return Languages()


class PairTexts:
    """Sentence pairs and their columns, each computed once.

    Blocks of a stream must come in order: their neighbourhoods include the pairs before them.
    """

    def __init__(
        self, src: Sequence[str], tgt: Sequence[str], tools: Tools, catalogue: Mapping[str, Column]
    ) -> None:
        self.src, self.tgt, self.tools = src, tgt, tools
        self._catalogue = catalogue
        self._columns: dict[str, Any] = {}
        self._vectors: Vectors | None = None
        self._around: Around | None = None

    def __len__(self) -> int:
        return len(self.src)

    def column(self, name: str) -> Any:
        """Return the values (n,): float64, or a list of str for a column of text."""
        if name not in self._columns:
            self._columns[name] = self._catalogue[name].compute(self)
        return self._columns[name]

    @functools.cached_property
    def lengths(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The characters of both sides (n,), without blanks at the ends."""
        src, tgt = (
            np.array([len(text.strip()) for text in side], np.float64) for side in (self.src, self.tgt)
        )
        return src, tgt

    def vectors(self) -> Vectors:
        """Return the unit vectors of both sides, (n, d) each."""
        if self._vectors is None:
            encoder, tokens = self.tools.encoder, self.tools.batch_tokens
            assert encoder is not None
            self._vectors = (
                encoder.encode(self.src, batch_tokens=tokens),
                encoder.encode(self.tgt, batch_tokens=tokens),
            )
        return self._vectors

    def around(self) -> Around:
        """Return the neighbourhoods of the pairs."""
        if self._around is None:
            assert self.tools.neighbourhood is not None
            self._around = self.tools.neighbourhood.around(self.src, self.tgt, self.vectors())
        return self._around

    def each(self, function: Callable[[str, str], float]) -> NDArray[np.float64]:
        """Return a function of two texts for every pair."""
        return np.fromiter(map(function, self.src, self.tgt), dtype=np.float64, count=len(self))
