"""A document, whatever it comes from; plain text as paragraphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from bitextmine.errors import BitextmineError
from bitextmine.files.streams import longest_line
from bitextmine.languages.scripts import is_spaced

_WRAPPED = 120  # characters: text with longer lines is not wrapped, and each of them is a paragraph
_RAGGED = 0.9  # of the width: a shorter line with room for the next word was ended on purpose


class NoDocument(BitextmineError):
    """A file, or a record of one, that holds no document; in a folder or a crawl the others are read."""


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
    def broken(cls, name: str, problem: str) -> Document:
        """Return a document whose paragraphs raise NoDocument with that message."""
        return cls(name, "", None, functools.partial(_fail, problem))


def _fail(problem: str) -> NoReturn:
    raise NoDocument(problem)


# --- plain text ---


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Yield the paragraphs of a text: blank lines part them, and so do line breaks that no margin forced.

    A line break within a block of short lines is that of wrapped text if the next word would hardly have fitted on the
    line. Blocks are bounded, as `streams.longest_line` bounds lines, so a file without blank lines is no harm.
    """
    width = 0  # of the widest block of short lines so far: a block of two lines does not show the margin
    for block in _blocks(lines):
        longest = max(map(len, block))
        if longest > _WRAPPED:
            yield from block
        else:
            width = max(width, longest)
            yield from _unwrapped(block, width)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    most = longest_line()
    block: list[str] = []
    size = 0
    for line in lines:
        line = line.strip()
        if block and (not line or size > most):
            yield block
            block, size = [], 0
        if line:
            block.append(line)
            size += len(line)
    if block:
        yield block


def _unwrapped(block: list[str], width: int) -> Iterator[str]:
    parts: list[str] = []
    for line, following in zip(block, [*block[1:], ""], strict=True):
        parts.append(line)
        spaced = is_spaced(line, following)
        word = following.split(" ", 1)[0] if spaced else following[:1]
        if not following or len(line) + len(word) + spaced <= _RAGGED * width:
            yield "".join(parts)
            parts = []
        elif spaced:
            parts.append(" ")
