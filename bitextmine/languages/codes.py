"""Codes of languages, as file names, options, headers and signatures hold them."""

from __future__ import annotations

import re

__all__ = ["is_code", "is_short_code"]

_CODE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
_SHORT = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,8})*")


def is_code(text: str) -> bool:
    """Whether a text has the form of a language's code: fr, pt-BR, zh_Hans (the form alone: txt has it, too)."""
    return _CODE.fullmatch(text) is not None


def is_short_code(text: str) -> bool:
    """Whether it is a code of two or three small letters, with parts behind them or without: fr, pt-BR. For where a
    word must not pass for a code, as in the header of a table."""
    return _SHORT.fullmatch(text) is not None
