"""What languages a sample of texts is in: their scripts, and a guess where a language identifier is installed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitextmine.languages.identify import Languages, is_installed
from bitextmine.languages.scripts import count_scripts

__all__ = ["LanguageSurvey", "survey_language", "wrong_language"]

_TEXTS = 2000
_CHARACTERS = 200
_ENOUGH = 20  # characters; what is shorter is not guessed at
_UNLIKELY = 0.05  # share of its column's language against the next best, below which a text is in another one
_FEW = 10  # texts; of fewer, nothing is said


@dataclass(frozen=True)
class LanguageSurvey:
    """scripts: shares of the letters, the largest first; guesses: shares of the texts guessed at (none
    of fewer than ten), or None where no identifier is installed; texts: how many were guessed at.
    """

    scripts: tuple[tuple[str, float], ...]
    guesses: tuple[tuple[str, float], ...] | None
    texts: int


def survey_language(texts: Sequence[str]) -> LanguageSurvey:
    """Scripts and guessed languages of some texts; of many, the first few thousand."""
    letters = count_scripts(texts[:_TEXTS], _CHARACTERS)
    if not is_installed():
        return LanguageSurvey(_shares(letters), None, 0)
    long_enough = [text for text in texts[:_TEXTS] if len(text.strip()) >= _ENOUGH]
    if len(long_enough) < _FEW:
        return LanguageSurvey(_shares(letters), (), len(long_enough))
    guesses = Counter(Languages().guess(long_enough))
    return LanguageSurvey(_shares(letters), _shares(guesses), len(long_enough))


def wrong_language(texts: Sequence[str], found: LanguageSurvey, letters: int) -> NDArray[np.bool_] | None:
    """(n,) which texts are hardly in the language that more than half of them are in, of those of so many letters or
    more; None where no language can be told or none is that of most."""
    if not found.guesses or found.guesses[0][1] <= 0.5:
        return None
    long = np.fromiter((sum(map(str.isalpha, text)) >= letters for text in texts), bool, len(texts))
    if long.any():
        share = Languages().share(list(itertools.compress(texts, long)), found.guesses[0][0])
        long[long] = share < _UNLIKELY
    return long


def _shares(counts: Counter[str]) -> tuple[tuple[str, float], ...]:
    total = counts.total()
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, count / total) for name, count in ranked)
