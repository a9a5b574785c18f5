"""Cut a paragraph into sentences.

The library sentencex brings the abbreviations of a hundred languages; the table of languages adds the common ones that
it lacks. Quotations, initials, ordinal numbers and scripts without spaces are decided here: sentencex finds no sentence
inside a quotation, and takes every apostrophe for the start of one.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from bitextmine.languages.codes import language, same_code

_STOPS = ".!?…‽⁇⁈⁉。！？｡．؟۔।॥။።፧፨՝։᙮᠃᠉"
_WIDE = "。！？｡．"  # in scripts without spaces
_QUESTIONS = "!?‽⁇⁈⁉！？؟፧"
_CLOSING = "\"'”’»›“‘«‹)\\]}）」』】〉》"
_WIDE_CLOSING = "”’)\\]）」』】〉》"
_OPENING = "\"'“‘«‹„‚([{¿¡—–-「『（【 \u00a0\u202f"
# Marks that end a sentence, with the quotation marks and brackets that belong to it, and the spaces behind.
_END = (
    rf"[{_STOPS}]+(?:[{_CLOSING}{_WIDE}]|(?<=\S)[ \u00a0\u202f][»›\"”](?!\w))*\s+(?=\S)"
    rf"|[{_WIDE}]+[{_WIDE_CLOSING}{_WIDE}]*\s*(?=\S)"
)
_ENDS = {"el": re.compile(_END.replace(_STOPS, f"{_STOPS};"))}  # the Greek question mark
_ANY_END = re.compile(_END)
_BETWEEN_WORDS = re.compile(r"[\s(\[\"'“„«»—/]")
_INITIAL = re.compile(r"(?:[^\W\d_]\.-)?[^\W\d_]")
_NUMBER = re.compile(r"\d{1,2}|[IVX]+")
# The label of a list item: a number or a letter with nothing before it.
_LABEL = re.compile(r"\W*(?:\d{1,3}|[IVXivx]{1,4}|\w)(?:\.\d{1,3})*\W*")
_PLAIN_END = re.compile(r"(?:^|[\s(\[\"'“„«»—/¿¡-])([^\W\d_]{5,})\.\s+\Z")
_LOOKED_BACK = 30
_LONGEST_OPENING = 10
_LONGEST_ABBREVIATION = 8  # characters, the full stop aside
# Languages that write ordinal numbers with a full stop before words in upper case.
_ORDINALS = re.compile(r"de|lb|cs|sk|hu|pl|fi|et|lv|da|nb|nn|is|fo|sl|hr|sr|bs|tr")
# Abbreviations that stand at the end of a sentence as often as inside.
_MAY_END = re.compile(
    r"etc|usw|osv|itd|atd|stb|vb|vs|jne|enz|ff|m\.m|o\.l|т\.д|т\.п|a\.m|p\.m|κ\.λπ|κτλ|κ\.ά"
)


def sentences(paragraph: str, lang: str) -> list[str]:
    """Return the sentences of a paragraph in the language `lang`, without the spaces between them."""
    return list(_sentences(paragraph, same_code(lang)))


def _sentences(text: str, lang: str) -> Iterator[str]:
    start = 0
    for found in _ENDS.get(lang, _ANY_END).finditer(text):
        at = found.start()
        if (
            begins_small(text, found.end())
            and not begins_small(text, start)
            and text[at] not in _WIDE
            and not _ends_plainly(text[max(start, at - _LOOKED_BACK) : found.end()])
        ):
            continue
        if _LABEL.fullmatch(text, start, at):
            continue
        single = text[at] == "." and text[at + 1] != "."
        if single and _is_short(_BETWEEN_WORDS.split(text[max(start, at - _LOOKED_BACK) : at])[-1], lang):
            continue
        yield text[start : found.end()].strip()
        start = found.end()
    if rest := text[start:].strip():
        yield rest


def begins_small(text: str, start: int = 0) -> bool:
    """Return True if the first letter from `start` on is in lower case."""
    return text[start : start + _LONGEST_OPENING].lstrip(_OPENING)[:1].islower()


def ending(text: str) -> int:
    """Return the kind of mark that ends a text: 2 for a question or an exclamation, 1 for a full stop, 0 for others."""
    last = text.rstrip(f"{_CLOSING}{_WIDE_CLOSING}*_ \u00a0\u202f")[-1:]
    return 0 if not last or last not in _STOPS else 2 if last in _QUESTIONS else 1


def _ends_plainly(text: str) -> bool:
    """Return True for a full stop after a word in lower case, too long for most abbreviations.

    It ends a sentence before lower case, too.
    """
    found = _PLAIN_END.search(text)
    return found is not None and found[1].islower()


def _is_short(word: str, lang: str) -> bool:
    """Return True if a full stop after `word` shows that it is an abbreviation, an initial or an ordinal number."""
    if _INITIAL.fullmatch(word):
        return True
    if _ORDINALS.fullmatch(lang) and _NUMBER.fullmatch(word):
        return True
    return 0 < len(word) <= _LONGEST_ABBREVIATION and not word.isdigit() and _is_abbreviation(word, lang)


@lru_cache(maxsize=1 << 16)
def _is_abbreviation(word: str, lang: str) -> bool:
    """Return True for an abbreviation that is in the table of languages or known to sentencex."""
    if _MAY_END.fullmatch(word.lower()):
        return False
    row = language(lang)
    if row is not None and word in row.abbreviations:
        return True
    import sentencex

    return len(sentencex.segment(lang, f"Aa {word}. Aa")) == 1
