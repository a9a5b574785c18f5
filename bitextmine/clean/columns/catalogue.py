"""All the columns by name, and the pairs that they are computed for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.clean.columns import copied, duplicate, lengths, numbers
from bitextmine.clean.columns.quality import LEAST_AROUND, quality, similarity
from bitextmine.errors import UsageError

if TYPE_CHECKING:
    from bitextmine.clean.columns.neighbourhood import Around, Neighbourhood
    from bitextmine.encoder import Encoder
    from bitextmine.languages.identify import Languages

__all__ = ["COLUMNS", "Column", "Pairs", "Tools", "default_columns"]

_BASIC = ("cosine", "margin", "length_ratio", "numbers", "copy")


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


@dataclass(frozen=True)
class Column:
    """One column: its name, what it says (for people), and whether its cells are text.

    encoder, neighbours, languages, identifies: whether it needs an encoder, the neighbourhoods of the vectors, the
    languages that the sides should be in, what languages they look like; better_with_languages: whether it makes use of
    the languages where they are stated.
    """

    name: str
    compute: Callable[[Pairs], Any]
    text: str
    is_text: bool = False
    encoder: bool = False
    neighbours: bool = False
    languages: bool = False
    identifies: bool = False
    better_with_languages: bool = False


class Pairs:
    """Some sentence pairs and their columns, each computed once.

    Blocks of a stream must come in its order: the neighbourhoods are those of the pairs before, too.
    """

    def __init__(self, src: Sequence[str], tgt: Sequence[str], tools: Tools) -> None:
        if len(src) != len(tgt):
            raise ValueError(f"{len(src)} sources but {len(tgt)} targets")
        self.src, self.tgt, self.tools = src, tgt, tools
        self._columns: dict[str, Any] = {}
        self._vectors: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._around: Around | None = None

    def __len__(self) -> int:
        return len(self.src)

    def column(self, name: str) -> Any:
        """The values (n,): float64, or a list of str for a column of text."""
        if name not in self._columns:
            self._columns[name] = COLUMNS[name].compute(self)
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
            self._around = self.tools.neighbourhood.around(self)
        return self._around

    def each(self, function: Callable[[str, str], float]) -> NDArray[np.float64]:
        """A function of two texts, for every pair."""
        return np.fromiter(map(function, self.src, self.tgt), dtype=np.float64, count=len(self))


def _cosine(pairs: Pairs) -> NDArray[np.float64]:
    x, y = pairs.vectors()
    return np.einsum("ij,ij->i", x, y, dtype=np.float64)


def _margin(pairs: Pairs, kind: str | None = None) -> NDArray[np.float64]:
    from bitextmine.mine.margin import margin

    around = pairs.around()
    return margin(pairs.column("cosine"), around.src, around.tgt, kind or pairs.tools.margin)


def _lang(pairs: Pairs) -> NDArray[np.float64]:
    tools = pairs.tools
    src = tools.languages.share(pairs.src, tools.src_lang)
    return np.minimum(src, tools.languages.share(pairs.tgt, tools.tgt_lang)).astype(np.float64)


def _quality(pairs: Pairs) -> NDArray[np.float64]:
    tools = pairs.tools
    usual = lengths.USUAL_LENGTH
    ratio = usual.get(tools.tgt_lang, 1.0) / usual.get(tools.src_lang, 1.0)
    if not (tools.src_lang and tools.tgt_lang):
        ratio = 1.0
    enough = pairs.around().size >= LEAST_AROUND
    return quality(
        similarity(pairs.column("cosine"), _margin(pairs, "ratio") if enough else None),
        pairs.each(lambda s, t: lengths.length_deviation(s, t, ratio)),
        pairs.column("numbers"),
        pairs.column("copy"),
        pairs.column("lang") if tools.src_lang and tools.tgt_lang else None,
    )


COLUMNS = {
    column.name: column
    for column in (
        Column("cosine", _cosine, "cosine of the two sentence vectors", encoder=True),
        Column("margin", _margin, "cosine against those to the nearest neighbours", encoder=True, neighbours=True),
        Column(
            "length_ratio",
            lambda pairs: pairs.each(lengths.length_ratio),
            "characters of the longer side over those of the shorter",
        ),
        Column(
            "numbers",
            lambda pairs: pairs.each(numbers.number_agreement),
            "agreement of the numbers, 0 to 1; 1 without any",
        ),
        Column(
            "copy", lambda pairs: pairs.each(copied.copied), "words that both sides have, 0 to 1; 1 for a copy"
        ),
        Column(
            "lang",
            _lang,
            "the sides are in --src and --tgt: above 0.5 when both look so",
            languages=True,
            identifies=True,
        ),
        Column(
            "quality",
            _quality,
            "all of that in one probability, 0 to 1",
            encoder=True,
            neighbours=True,
            better_with_languages=True,
        ),
        Column(
            "shorter",
            lambda pairs: pairs.each(lambda s, t: min(lengths.lengths(s, t))),
            "characters of the shorter side",
        ),
        Column(
            "longer",
            lambda pairs: pairs.each(lambda s, t: max(lengths.lengths(s, t))),
            "characters of the longer side",
        ),
        Column(
            "letters",
            lambda pairs: pairs.each(lambda s, t: min(lengths.letters(s), lengths.letters(t))),
            "share of letters in the side that has fewer",
        ),
        Column(
            "src_lang",
            lambda pairs: pairs.tools.languages.guess(pairs.src),
            "language that the source looks like",
            is_text=True,
            identifies=True,
        ),
        Column(
            "tgt_lang",
            lambda pairs: pairs.tools.languages.guess(pairs.tgt),
            "language that the target looks like",
            is_text=True,
            identifies=True,
        ),
        Column(
            "key",
            lambda pairs: list(map(duplicate.pair_key, pairs.src, pairs.tgt)),
            "the same for near-duplicate pairs",
            is_text=True,
        ),
    )
}  # fmt: skip


def default_columns(languages: bool) -> tuple[str, ...]:
    """What `score` adds when it is not told; the presets of `filter` rest on these."""
    return (*_BASIC, "lang", "quality") if languages else (*_BASIC, "quality")
