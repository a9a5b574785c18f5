"""A document, whatever it comes from."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from bitextmine.errors import BitextmineError


class NoDocument(BitextmineError):
    """A file, or a record of one, that holds no document; in a folder or a crawl the others are read."""


@dataclass(frozen=True)
class Document:
    """A document, whose text is read only when asked for.

    Attributes:
        name: the file, with the number of the record behind ``#`` if there are several.
        url: its address ("": none known).
        lang: the language that the name tells (None: it does not).
        paragraphs: returns its paragraphs; NoDocument if the record holds none.
    """

    name: str
    url: str
    lang: str | None
    paragraphs: Callable[[], Iterable[str]]

    @classmethod
    def broken(cls, name: str, problem: str) -> Document:
        """Return a document whose paragraphs raise NoDocument with that message."""
        return cls(name, "", None, functools.partial(_fail, problem))


def _fail(problem: str) -> NoReturn:
    raise NoDocument(problem)


def library(name: str, extra: str) -> Any:
    """Import a module of an optional package; BitextmineError names the extra to install."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise BitextmineError(
            f"these documents need the package {name.partition('.')[0]}; install it with pip install "
            f"'bitextmine[{extra}]'"
        ) from None
