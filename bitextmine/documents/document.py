"""A document, whatever it comes from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from bitextmine.errors import BitextmineError


class NoDocument(BitextmineError):
    """A file, or a record of one, that holds no document; in a folder or a crawl the others are read."""


class Damaged(NoDocument):
    """A file or a record that cannot be read, or not to its end."""


@dataclass(frozen=True)
class Document:
    """A document, whose text is read only when asked for.

    Attributes:
        name: the file, with the number of the record behind ``#`` if there are several.
        url: its address ("": none known).
        lang: the language that the name tells.
        paragraphs: returns its paragraphs; NoDocument if the record holds none.
        tags: they may hold tags, which are no text; those of a web page are removed already.
    """

    name: str
    url: str
    lang: str | None
    paragraphs: Callable[[], Iterable[str]]
    tags: bool = True

    @classmethod
    def broken(cls, name: str, problem: str, *, damaged: bool = False) -> Document:
        """Return a document whose paragraphs raise NoDocument, or Damaged, with that message."""
        return cls(name, "", None, functools.partial(_fail, Damaged if damaged else NoDocument, problem))


def _fail(error: type[NoDocument], problem: str) -> NoReturn:
    raise error(problem)
