"""What language each side is in, told by py3langid (the extra ``languages``), whose model is inside its package."""

from __future__ import annotations

import functools
from typing import Any

from bitextmine.errors import BitextmineError

__all__ = ["LanguageGuesser"]

_CHARACTERS = 240  # more does not make the guess better
_REMEMBERED = 1 << 14


class LanguageGuesser:
    """Guesses languages; raises BitextmineError where py3langid is not installed.

    A language is an ISO 639 code; what follows a hyphen or underscore (``fr-CA``) is left out.
    """

    def __init__(self) -> None:
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise BitextmineError(
                "telling languages needs the package py3langid; install it with pip install 'bitextmine[languages]'"
            ) from None
        self._identifier: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self.languages = frozenset(self._identifier.labels)
        # Crawls repeat themselves, and both the code and the probability may be asked for.
        self._rank = functools.lru_cache(maxsize=_REMEMBERED)(self._ranked)

    def check(self, language: str) -> str:
        """The code as the model knows it; BitextmineError for a language that it does not know."""
        code = language.replace("_", "-").partition("-")[0].lower()
        if code not in self.languages:
            raise BitextmineError(
                f"language '{language}' is none of the {len(self.languages)} that can be told: "
                f"{', '.join(sorted(self.languages))}"
            )
        return code

    def guess(self, text: str) -> str:
        """The code of the most probable language, "und" for a text without letters."""
        ranked = self._rank(_sample(text))
        return ranked[0][0] if ranked else "und"

    def probability(self, text: str, language: str) -> float:
        """P(language) / (P(language) + P(the most probable other one)): above 0.5 when it is the best guess.

        0.5 for a text without letters: nothing speaks for or against.
        """
        ranked = self._rank(_sample(text))
        if not ranked:
            return 0.5
        own = next(p for code, p in ranked if code == language)
        other = ranked[0][1] if ranked[0][0] != language else ranked[1][1]
        return own / (own + other) if own + other > 0 else 0.5

    def _ranked(self, sample: str) -> tuple[tuple[str, float], ...]:
        if not any(map(str.isalpha, sample)):
            return ()
        return tuple((str(code), float(p)) for code, p in self._identifier.rank(sample))


def _sample(text: str) -> str:
    text = text.strip()[:_CHARACTERS]
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
