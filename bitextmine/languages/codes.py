"""Codes of languages, as file names, options, headers and signatures hold them."""

from __future__ import annotations

import re

__all__ = ["is_code"]

_CODE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")


def is_code(text: str) -> bool:
    """Whether a text has the form of a language's code: fr, pt-BR, zh_Hans (the form alone: txt has it, too)."""
    return _CODE.fullmatch(text) is not None
