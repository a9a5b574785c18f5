"""What languages a sample of texts is in: their scripts, and a guess where a language identifier is installed."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bitextmine.languages.identify import Languages, is_installed

__all__ = ["LanguageSurvey", "survey_language"]

_TEXTS = 2000
_CHARACTERS = 200
_ENOUGH = 20  # characters; what is shorter is not guessed at
_FEW = 10  # texts; of fewer, nothing is said

# How the names of letters in the Unicode Character Database begin, where that is not the name of their script.
_SCRIPTS = {"CJK": "Han", "FULLWIDTH": "Latin", "HALFWIDTH": "Katakana", "IDEOGRAPHIC": "Han"}


@dataclass(frozen=True)
class LanguageSurvey:
    """scripts: shares of the letters, the largest first; guesses: shares of the texts guessed at (none
    of fewer than ten), or None where no identifier is installed; texts: how many were guessed at.
    """

    scripts: tuple[tuple[str, float], ...]
    guesses: tuple[tuple[str, float], ...] | None
    texts: int


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    first = unicodedata.name(letter, "UNKNOWN").split(" ", 1)[0]
    return _SCRIPTS.get(first, first.capitalize())


def survey_language(texts: Sequence[str]) -> LanguageSurvey:
    """Scripts and guessed languages of some texts; of many, the first few thousand."""
    letters: Counter[str] = Counter()
    for text in texts[:_TEXTS]:
        letters.update(_script(c) for c in text[:_CHARACTERS] if c.isalpha())
    if not is_installed():
        return LanguageSurvey(_shares(letters), None, 0)
    long_enough = [text for text in texts[:_TEXTS] if len(text.strip()) >= _ENOUGH]
    if len(long_enough) < _FEW:
        return LanguageSurvey(_shares(letters), (), len(long_enough))
    guesses = Counter(Languages().guess(long_enough))
    return LanguageSurvey(_shares(letters), _shares(guesses), len(long_enough))


def _shares(counts: Counter[str]) -> tuple[tuple[str, float], ...]:
    total = counts.total()
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, count / total) for name, count in ranked)
