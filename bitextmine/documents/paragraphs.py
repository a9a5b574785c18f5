"""Paragraphs of plain text: wrapped lines joined, divided words put together."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set

from bitextmine.languages.scripts import is_spaced
from bitextmine.run import LONGEST_LINE

_WRAPPED = 120  # characters: text with longer lines is not wrapped, and each of them is a paragraph
_RAGGED = 0.9  # of the width: a shorter line with room for the next word was ended on purpose
_SOFT = "\u00ad\u00ac"  # the soft hyphen, and the sign that some old files have for it: no part of a word
_HYPHENS = "-\u2010"
_COMPOUND = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_MOST_COMPOUNDS = 100_000  # that are remembered of a document
# "Vor- und Nachteile": the hyphen stands for a part of the word. A single letter is no part of a divided word.
_SUSPENDED = re.compile(
    r"(?:und|oder|bzw|beziehungsweise|respektive|sowie|wie|bis|noch|als|statt|"
    r"and|or|et|ou|of|och|og|eller|ja|tai|és|vagy|oraz|lub|или|либо|[^\W\d_])(?![\w'’-])"
)
# What keeps its hyphen: other hyphens or marks of an address in the word, "X-ray", "EU-weit", "10-year", "dit-il". The
# letters before a French pronoun tell it from an ending: "cou-leur", "ce-lui", "meis-je", "neu-en" are divided words.
_HYPHENATED = re.compile(r".*[-\u2010/@.\d].*[-\u2010]|(?:.*[^\w'’])?[^\W\d_][-\u2010]")
_CAPITALS = re.compile(r"[^\W\d_]{2,}[-\u2010]$")
_HYPHENATED_AFTER = re.compile(r"\S*\w[-\u2010@]\w")
_FRENCH = re.compile(
    r"(?:[td]-(?:ils?|elles?|on|ce)|[sx]-tu|(?:ai|[éx]|\b[sp]uis|ois)-je|[sz]-(?:y|en)|[eszt]-leur|(?<!\bce)-lui|"
    r"(?:lui|lle|[sx])-ci|(?<!voi)-là|-(?:[nv]ous|[mt]oi|être|mêmes?|midi))(?![\w'’-])"
)

# A line of a table of contents.
_LEADER = re.compile(r"(?:[.·…_]\s?){4}\s*[\divxlc]{1,6}\Z")
_ITEM = re.compile(r"[-*•] |\||(\d{1,3})([.)]) ")


def paragraphs(lines: Iterable[str], width: int = 0) -> Iterator[str]:
    """Yield the paragraphs of a text: blank lines part them, and so do line breaks that no margin forced.

    A line break within a block of short lines is that of wrapped text if the next word would hardly have fitted on the
    line, or if the line ends within a word; not before an item of a list, nor behind a dot leader and its page number.
    Blocks are bounded, as lines are, so a file without blank lines is no harm. A `width` is that of all wrapped lines,
    in characters; it is found out otherwise.
    Words that are divided there are put together, without the hyphen unless the text up to here has them with it.
    """
    compounds: set[str] = set()
    stated = width > 0
    for block in _blocks(lines):
        longest = max(map(len, block))
        if longest > _WRAPPED and not stated:
            yield from block
        else:
            if not stated:  # the widest block so far: one of two lines does not show the margin
                width = max(width, longest)
            for line in block:
                if ("-" in line or "\u2010" in line) and len(compounds) < _MOST_COMPOUNDS:
                    compounds.update(_COMPOUND.findall(_plain(line)))
            yield from _unwrapped(block, width, compounds)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for line in lines:
        line = line.strip()
        if block and (not line or size > LONGEST_LINE):
            yield block
            block, size = [], 0
        if line:
            block.append(line)
            size += len(line)
    if block:
        yield block


def _unwrapped(block: list[str], width: int, compounds: Set[str]) -> Iterator[str]:
    parts: list[str] = []
    for line, following, ends in zip(block, [*block[1:], ""], [*_starts(block)[1:], True], strict=True):
        spaced = is_spaced(line, following)
        word = following.split(" ", 1)[0] if spaced else following[:1]
        short = len(line) + len(word) + spaced <= _RAGGED * width
        if ends or _LEADER.search(line) or (short and not _is_divided(line, following)):
            yield "".join([*parts, line])
            parts = []
        else:
            parts.append(_continued(line, following, compounds) if spaced else line)


def _starts(block: list[str]) -> list[bool]:
    """Return True for each line that begins an item of a list, or a signature."""
    marked = [_ITEM.match(line) for line in block]
    marks = Counter(item[0] for item in marked if item)

    def is_listed(item: re.Match[str]) -> bool:
        if item[1]:
            return any(f"{int(item[1]) + step}{item[2]} " in marks for step in (-1, 1))
        return marks[item[0]] > 1

    return [
        line == "--" or (item is not None and is_listed(item))
        for line, item in zip(block, marked, strict=True)
    ]


def _is_divided(line: str, following: str) -> bool:
    """Return True if a line surely ends within a word, however short it is."""
    if line[-1] in _SOFT:
        return line[-2:-1].isalnum()
    return line[-1] in _HYPHENS and line[-2:-1].isalpha() and following[0].islower()


def _continued(line: str, following: str, compounds: Set[str]) -> str:
    """Return a wrapped line with a space behind it, or what it has of a word that is divided at its end."""
    if not line[-2:-1].isalnum() or line[-1] not in _HYPHENS + _SOFT:
        return f"{line} "
    if line[-1] in _SOFT or (following[0] in _HYPHENS and following[1:2].isalpha()):
        return line[:-1]
    before, after = line.rsplit(None, 1)[-1], following.split(None, 1)[0]
    french = _FRENCH.search(_plain(before + after))
    if not following[0].isalnum() or (_SUSPENDED.match(following) and not french):
        return f"{line} "
    capitals = _CAPITALS.search(before)
    if (
        not following[0].islower()
        or french
        or (capitals and capitals[0].isupper())
        or _HYPHENATED.fullmatch(before)
        or _HYPHENATED_AFTER.match(after)
    ):
        return line
    words = _COMPOUND.finditer(_plain(line + following))
    word = next((compound[0] for compound in words if compound.start() < len(line) < compound.end()), "")
    return line if word in compounds else line[:-1]


def _plain(text: str) -> str:
    return text.lower().replace("\u2010", "-")
