"""The columns to compute and their settings, which a worker can be sent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.arguments import one_of, whole_number
from bitextmine.errors import UsageError
from bitextmine.files.tables import Block
from bitextmine.mining.choices import Margin
from bitextmine.scoring.choices import default_columns
from bitextmine.scoring.columns.catalogue import COLUMNS, Tools, identifier
from bitextmine.scoring.columns.neighbourhood import IndexNeighbourhood, WindowNeighbourhood

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

# Rows scored together, and the pairs among which a margin's neighbours are searched. A constant, so that a score does
# not depend on the speed of a pipe.
WINDOW = 4096


@dataclass(frozen=True)
class Request:
    """Columns to compute.

    Attributes:
        names: columns of the catalogue.
        src_lang, tgt_lang: the languages that the sides should be in, both or neither ("").
        margin, k, window: the margin, over the `k` nearest among the last `window` pairs.
        indexes: two embedded corpora whose neighbours are taken instead.
        batch_tokens: subword pieces encoded together.
    """

    names: tuple[str, ...] = ()
    src_lang: str = ""
    tgt_lang: str = ""
    margin: str = "ratio"
    k: int = 4
    window: int = WINDOW
    indexes: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None
    batch_tokens: int | None = None

    def checked(self) -> Request:
        """Return the request with codes that the language identifier knows, before the first row is read.

        Raises:
            BitextmineError: the language identifier is needed and missing.
            UsageError: a bad value, one language without the other, or a language that cannot be identified.
        """
        one_of("margin", self.margin, tuple(Margin))
        whole_number("k", self.k)
        whole_number("window", self.window)
        if bool(self.src_lang) != bool(self.tgt_lang):
            option = "--src" if self.src_lang else "--tgt"
            raise UsageError(f"{option} alone says nothing: give both languages, --src and --tgt, or neither")
        columns = [COLUMNS[name] for name in self.names]
        if any(column.languages for column in columns) and not self.src_lang:
            raise UsageError(
                "the column lang needs both languages: pass --src and --tgt, as in --src en --tgt fr"
            )
        if self.src_lang and self.uses("languages", "better_with_languages"):
            return replace(self, src_lang=_known(self.src_lang), tgt_lang=_known(self.tgt_lang))
        if self.uses("identifies"):
            identifier()
        return self

    def uses(self, *needs: str) -> bool:
        """Return True if any column has one of these needs (attributes of `Column`)."""
        return any(getattr(COLUMNS[name], need) for name in self.names for need in needs)

    @property
    def looks_back(self) -> bool:
        """Return True if a block is compared with the pairs before it."""
        return self.indexes is None and self.uses("neighbours")

    def tools(self, encoder: Encoder | None = None) -> Tools:
        """Return the tools that compute the columns."""
        tools = Tools(encoder, None, self.margin, self.src_lang, self.tgt_lang, self.batch_tokens)
        if encoder is not None and self.uses("neighbours"):
            tools.neighbourhood = (
                WindowNeighbourhood(self.k, self.window)
                if self.indexes is None
                else IndexNeighbourhood(*self.indexes, encoder, self.k)
            )
        return tools


def _known(language: str) -> str:
    code = identifier().code(language)
    if code is None:
        raise UsageError(
            f"unsupported language code '{language}'; supported: {', '.join(sorted(identifier().codes))}"
        )
    return code


def column_names(columns: str | Sequence[str] | None, languages: bool) -> tuple[str, ...]:
    """Return the names in a comma-separated list, or the default ones; UsageError for an unknown or repeated name."""
    if columns is None:
        return default_columns(languages)
    asked: list[Any] = [columns]
    if isinstance(columns, Iterable):
        asked = columns.split(",") if isinstance(columns, str) else list(columns)
    if not all(isinstance(name, str) for name in asked):
        raise UsageError(f"columns (--columns): expected names of columns, found {columns!r}")
    names = tuple(name.strip() for name in asked)
    if unknown := [name for name in names if name not in COLUMNS]:
        raise UsageError(
            f"columns (--columns): no column is called '{unknown[0]}'; there are {', '.join(COLUMNS)}"
        )
    if len(set(names)) < len(names):
        raise UsageError(f"columns (--columns): a column is named twice in {','.join(names)}")
    return names


def good_rows(block: Block) -> NDArray[np.int64]:
    """Return the rows of a block that can be read."""
    bad = block.bad()
    return np.array([row for row in range(len(block)) if row not in bad], dtype=np.int64)
