"""PDF as paragraphs, roughly: the format has letters at places of a page, and neither paragraphs nor headings.

PDFium makes lines of the letters. Page numbers and running heads go, and lines are joined as those of wrapped text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from bitextmine.documents.kinds import Damaged, NoDocument
from bitextmine.documents.office import LARGEST, seekable
from bitextmine.documents.pages import library
from bitextmine.documents.paragraphs import paragraphs
from bitextmine.documents.sentences import begins_small, ending
from bitextmine.files.source import Source

_EDGE = 2  # lines at the top and at the bottom of a page that may be its running head or its number
_NEAR = 4  # pages before and after that are looked at: a running head may be on every second one
_REPEATED = 3  # of these pages have it
_NUMBERED = 0.2  # of all pages show numbers that go up with them
_DIGITS = re.compile(r"\d+|\b[ivxlc]{1,6}\Z")
_NUMBER = re.compile(r"[0-9]{1,4}")
_DIVIDED = re.compile("\ufffe\r?\n?")  # for PDFium the hyphen of a word that two lines share
_USUAL = 0.9  # of the lines are shorter than the usual width
_NARROW = 0.85  # of the usual width: lines have more or fewer letters, as these are wide or narrow


def pdf_paragraphs(source: Source) -> Iterator[str]:
    """Yield the paragraphs of a PDF.

    Raises:
        NoDocument: it needs a password, or is too large; Damaged if it cannot be read.
    """
    pages = _without_heads(_pages(source))
    lengths = sorted(len(line) for page in pages for line in page) or [0]
    width = lengths[int(_USUAL * len(lengths))] * _NARROW
    yield from paragraphs(_lines(pages), width=int(width))


def _pages(source: Source) -> list[list[str]]:
    """Return the lines of each page that are not blank."""
    pdfium = library("pypdfium2", "office")
    pages: list[list[str]] = []
    size = 0
    with seekable(source) as file:
        try:
            document = pdfium.PdfDocument(file)
            for number in range(len(document)):
                page = document[number]
                text = page.get_textpage().get_text_range()
                page.close()
                size += len(text)
                if size > LARGEST:
                    raise NoDocument(f"more than {LARGEST:,} characters")
                lines = map(str.strip, _DIVIDED.sub("-\n", text).splitlines())
                pages.append([line for line in lines if line])
        except pdfium.PdfiumError as error:
            if "password" in str(error):
                raise NoDocument("a PDF that needs a password") from None
            raise Damaged(f"a damaged PDF ({error})") from None
    return pages


def _without_heads(pages: Sequence[list[str]]) -> list[list[str]]:
    """Leave out page numbers and running heads: lines with the number of their page, or with a text of pages nearby."""
    # Places from the top and, below 0, from the bottom, with the lines there.
    edges = [
        {
            at if at < _EDGE else at - len(page): line
            for at, line in enumerate(page)
            if not _EDGE <= at < len(page) - _EDGE
        }
        for page in pages
    ]
    shifts: Counter[int] = Counter()  # of the number of a page from its place in the file
    for at, lines in enumerate(edges):
        shifts.update({number - at for line in lines.values() for number in _numbers(line)})
    usual = {shift for shift, many in shifts.items() if many >= max(_REPEATED, _NUMBERED * len(pages))}
    texts = [{place: _DIGITS.sub("#", line.casefold()) for place, line in lines.items()} for lines in edges]
    kept = []
    for at, page in enumerate(pages):
        near = Counter(item for items in texts[max(0, at - _NEAR) : at + _NEAR + 1] for item in items.items())
        heads = {
            place % len(page)
            for place, line in edges[at].items()
            if near[place, texts[at][place]] >= _REPEATED
            or usual.intersection(n - at for n in _numbers(line))
        }
        kept.append([line for place, line in enumerate(page) if place not in heads])
    return kept


def _numbers(line: str) -> set[int]:
    """Return the numbers that a line begins and ends with."""
    return {int(word) for word in (line.split()[0], line.split()[-1]) if _NUMBER.fullmatch(word)}


def _lines(pages: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield all lines, and a blank one between pages unless a sentence goes on there."""
    last = ""
    for page in pages:
        if last and page and (ending(last) or not (begins_small(page[0]) or last[-1] in "-\u2010\u00ad,")):
            yield ""
        yield from page
        last = page[-1] if page else last
