"""What the limits of a recipe's key say: least, most, above, below (numbers) and choices (words)."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["limits_in_words", "within"]

HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "least": operator.ge,
    "most": operator.le,
    "above": operator.gt,
    "below": operator.lt,
    "choices": lambda value, choices: value in choices,
}
WORDS = {"least": "at least {:,}", "most": "at most {:,}", "above": "above {:,}", "below": "below {:,}"}


def within(value: Any, limits: Mapping[str, Any]) -> bool:
    """Whether a value keeps to all of the limits."""
    return all(HOLDS[name](value, limit) for name, limit in limits.items())


def limits_in_words(limits: Mapping[str, Any]) -> str:
    """at least 8, at most 1,000,000; "unigram" or "bpe"; nothing for no limits."""
    if "choices" in limits:
        return " or ".join(json.dumps(choice) for choice in limits["choices"])
    return ", ".join(WORDS[name].format(limit) for name, limit in limits.items())
