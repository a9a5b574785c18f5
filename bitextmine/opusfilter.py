"""The columns of `bitextmine score` and the rules of `bitextmine filter` as a filter of OpusFilter.

In its configuration (mine/other-tools.md has one that runs):

    - type: filter
      parameters:
        inputs: [all.en.gz, all.fr.gz]
        outputs: [clean.en.gz, clean.fr.gz]
        filters:
          - BitextFilter:
              languages: [en, fr]
              preset: mild
            module: bitextmine.opusfilter
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from opusfilter import CLEAN_HIGH, ConfigurationError, FilterABC

from bitextmine.errors import BitextmineError
from bitextmine.mining.options import Margin
from bitextmine.run import Run
from bitextmine.scoring.columns.catalogue import COLUMNS
from bitextmine.scoring.compute import PairRows, PairScorer
from bitextmine.scoring.options import WINDOW, ScoreOptions, column_names
from bitextmine.scoring.rules import choose_rules
from bitextmine.scoring.score import open_scorer, request_of

__all__ = ["BitextFilter"]


class BitextFilter(FilterABC):  # type: ignore[misc]  # the library has no types
    """Score pairs with columns of `bitextmine score`, and accept those that pass rules of `bitextmine filter`.

    Repeated pairs are left to OpusFilter's remove_duplicates. The other arguments are as for `bitextmine score`.

    Args:
        languages: the languages of the two sides, for the column lang; a rule on it is skipped without them.
        preset: cheap, mild, strict or none. By default mild, unless there are other rules.
        min, max: further rules, {column: limit}; one replaces that of the preset.
        columns: columns to score besides those of the rules.
        options: name and workdir, from OpusFilter.

    Raises:
        ConfigurationError: an unknown column or preset, or a bad value.
    """

    score_direction = CLEAN_HIGH  # cosine, margin, quality, numbers and lang
    accept_threshold = reject_threshold = None

    def __init__(
        self,
        languages: Sequence[str] = ("", ""),
        preset: str | None = None,
        min: Mapping[str, float] | None = None,
        max: Mapping[str, float] | None = None,
        columns: str | Sequence[str] = (),
        model: str = "auto",
        margin: str = "ratio",
        k: int = 4,
        window: int = WINDOW,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        limits = {"min": (min or {}).items(), "max": (max or {}).items()}
        try:
            src, tgt = languages
            rules = choose_rules(preset, None, limits, None).rules
            self._rules = tuple(rule for rule in rules if src or not COLUMNS[rule.column].languages)
            names = dict.fromkeys([*(rule.column for rule in self._rules), *column_names(columns)])
            if texts := [rule for rule in self._rules if COLUMNS[rule.column].is_text]:
                raise BitextmineError(f"rule {texts[0]}: the column {texts[0].column} holds text")
            self._options = ScoreOptions(
                columns=tuple(names), src=src, tgt=tgt, model=model, k=k, margin=Margin(margin), window=window
            )
            self._request, _notes = request_of(self._options, None)
        except KeyError as e:
            raise ConfigurationError(
                f"BitextFilter: no column is called {e}; there are {', '.join(COLUMNS)}"
            ) from None
        except (BitextmineError, ValueError) as e:
            raise ConfigurationError(f"BitextFilter: {e}") from e

    @cached_property
    def _scorer(self) -> PairScorer:
        return open_scorer(self._request, self._options, self._request.langs, "auto")

    def score(self, pairs: Iterable[Sequence[str]]) -> Iterator[dict[str, float | str]]:
        """Yield the columns of each pair, by name; NaN where there is no value."""
        for _pair, scores in self._scored(pairs):
            yield scores

    def accept(self, score: Mapping[str, Any]) -> bool:
        """Return True if all rules are passed; a pair without a value passes none on it."""
        return all(rule.met(score[rule.column]) for rule in self._rules)

    def filter(self, pairs: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield accepted pairs."""
        return (pair for pair, scores in self._scored(pairs) if self.accept(scores))

    def filterfalse(self, pairs: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield pairs that are not accepted."""
        return (pair for pair, scores in self._scored(pairs) if not self.accept(scores))

    def _scored(
        self, pairs: Iterable[Sequence[str]]
    ) -> Iterator[tuple[Sequence[str], dict[str, float | str]]]:
        """Yield pairs with their columns, computed for a window of pairs at a time."""
        rows = PairRows(("src", "tgt"), map(list, pairs))
        for block, added in self._scorer.scored(rows.blocks(self._request.window), rows.layout, Run()):
            every, cells = range(len(block)), [column.values for column in added]
            for src, tgt, *values in zip(block.texts(0, every), block.texts(1, every), *cells, strict=True):
                yield (src, tgt), dict(zip(self._request.names, values, strict=True))
