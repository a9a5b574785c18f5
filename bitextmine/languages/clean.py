"""Normalised text: no markup, mojibake, control or zero-width characters, ligatures; Unicode NFC; single spaces.

`clean` does all of it, for corpora that are made. `readable` does what matters to an encoder, for lines that are shown
to users as they are; it costs nothing but a look for suspicious characters where there are none.
"""

import functools
import html
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

_INLINE = (
    "a abbr acronym b bdi bdo big bpt cite code del em ept font i img ins kbd mark ph q s samp small span strike "
    "strong sub sup tt u var wbr"
)
_BLOCK = (
    "address article aside blockquote body br button caption center dd div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 head header hr html input label legend li link main meta nav noscript ol option p pre "
    "section select table tbody td tfoot th thead title tr ul video audio iframe script style"
)
# Only the names of real elements: a manual says <file> and <your name>.
_TAG = re.compile(
    rf"</?(?=[a-z])(?:(?P<inline>{'|'.join(_INLINE.split())})|{'|'.join(_BLOCK.split())})(?:\s[^<>]{{0,2000}}+)?/?>",
    re.IGNORECASE,
)
# What holds no text: the opening of a comment, script or style sheet, and what ends each.
_NO_TEXT = re.compile(r"<(?:(!--)|(?:(script)|style)\b[^<>]*+>)", re.IGNORECASE)
_COMMENT_END = re.compile("-->")
_SCRIPT_END, _STYLE_END = (re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in ("script", "style"))
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")

# What ASCII text that needs no step does not have.
_ASCII = re.compile(r"[<&]| (?: |\Z)|\A ")

_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
# Soft hyphen, zero-width space, word joiner, byte order mark, marks of direction. The joiners U+200C and U+200D stay:
# they are letters' shapes in Persian, Hindi and other languages.
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_CONTROL = re.compile(f"[{_CONTROLS}]")
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
# UTF-8 that was read as Windows-1252 or Latin-1: a lead byte's letter and a continuation byte's. Those of `readable`
# are the leads of European alphabets and punctuation, which are rare otherwise.
_FOLLOWING = "[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_LEADS = "ÂÃÄÅÆÇÈÉÎÏÐÑØÙÚ"
_GARBLED = re.compile(f"[{_LEADS}àáâãäåæçèéð]{_FOLLOWING}")
# A capital within or at the end of a word in capitals and a mark behind it may be text: «MAÇÃ», MANHÃ–TARDE, IRMÃ’S. It
# may also be garbled (KÃ–LN), which another sign tells: any other pair of characters, or two such words with a mark
# that opens a quotation before a capital (CANCIÃ“N ESPAÃ‘OLA).
_CAPITAL = "A-ZÀ-ÖØ-ÞĀ-ɏẠ-ỹ"
_MARK = "[\u00a0—–»›”’“‘…™®©°ª•]"
_SIGN = re.compile(
    f"[{_LEADS}àáâãäåæçèéð](?<![{_CAPITAL}«“‘„‚‹(—–][{_LEADS}](?={_MARK}))(?<!É(?={_MARK})){_FOLLOWING}"
)
_WITHIN = re.compile(f"[{_CAPITAL}][{_LEADS}][“‘][{_CAPITAL}]")
# One set of characters first: a search for a set is fast.
_SUSPICIOUS = re.compile(
    f"[{_CONTROLS}{_INVISIBLE}ÂÃÄÅÎÏÐÑâ<&](?:(?<=[{_CONTROLS}{_INVISIBLE}])|(?<=[ÂÃÄÅÎÏÐÑâ]){_FOLLOWING}|"
    "(?<=<)[/a-zA-Z!]|(?<=&)[#a-zA-Z][a-zA-Z0-9]{1,31};)"
)

_LOOKED_AT = 40  # paragraphs of a document, the first ones

# Latin ligatures, of which the text of a PDF is full.
_LIGATURE = re.compile("[\ufb00-\ufb06]")

# Python sorts the combining marks of a run by exchanging neighbours, in quadratic time: 40,000 of them take a second
# and a half, ten times as many two minutes and a half. And one U+FDFA becomes 18 characters. So long texts are
# normalised in pieces, with runs of marks cut short.
_SHORT = 1000  # characters whose marks are sorted in no time
_MOST_MARKS = 30  # UAX 15, section 13, Stream-Safe Text Format; no writing system has as many on a letter
_PIECE = 1 << 14  # characters
_JOINER = "\u034f"  # combining grapheme joiner: shows nothing, and no mark moves across it
_LAST_MARK = 0x1FFFF  # marks that have an order are in the first two planes


def clean(text: str, *, tags: bool = True, is_garbled: bool = False) -> str:
    """Return a line or a paragraph in normal form.

    Args:
        text: a line or a paragraph.
        tags: remove tags; False for the text of a web page, where what looks like one was escaped.
        is_garbled: its document has mojibake elsewhere, so what may be text in capitals is mojibake, too.
    """
    if text.isascii() and text.isprintable() and not _ASCII.search(text):
        return text
    text = _visible(_repaired(_without_markup(text) if tags else _decoded(text), is_garbled))
    if not text.isascii():
        text = _LIGATURE.sub(lambda letters: unicodedata.normalize("NFKC", letters[0]), text)
        text = "".join(unicodedata.normalize("NFC", piece) for piece in normal_pieces(text))
    return _single_spaced(text)


def cleaned(texts: Iterable[str], *, tags: bool = True) -> Iterator[str]:
    """Yield the paragraphs of a document in normal form.

    What may be text in capitals is mojibake if there is other mojibake before it or among the first paragraphs.
    """
    texts = iter(texts)
    head = list(itertools.islice(texts, _LOOKED_AT))
    is_garbled = any(map(_has_mojibake, head))
    for text in itertools.chain(head, texts):
        is_garbled = is_garbled or _has_mojibake(text)
        yield clean(text, tags=tags, is_garbled=is_garbled)


def readable(lines: Sequence[str]) -> Sequence[str]:
    """Return lines without markup, mojibake, control and zero-width characters; the same object if there are none."""
    if not _SUSPICIOUS.search("\n".join(lines)):
        return lines
    return [_read(line) if _SUSPICIOUS.search(line) else line for line in lines]


def _read(line: str) -> str:
    cleaned = _visible(_repaired(_without_markup(line)))
    return line if cleaned == line else _single_spaced(cleaned)


def _without_markup(text: str) -> str:
    for _ in range(2):  # twice: &amp;lt;p&amp;gt; is common
        before = text
        if "<" in text:
            text = _TAG.sub(lambda tag: "" if tag["inline"] else " ", _without_scripts(text))
        text = _decoded(text)
        if text == before:
            break
    return text


def _without_scripts(text: str) -> str:
    """Put a space for each comment, script and style sheet that has an end; linear however many have none."""
    parts: list[str] = []
    done = 0
    endless: set[re.Pattern[str]] = set()
    for opening in _NO_TEXT.finditer(text):
        end = _COMMENT_END if opening[1] else _SCRIPT_END if opening[2] else _STYLE_END
        if opening.start() < done or end in endless:
            continue
        closing = end.search(text, opening.end())
        if closing is None:
            endless.add(end)
        else:
            parts += text[done : opening.start()], " "
            done = closing.end()
    return "".join(parts) + text[done:]


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def _has_mojibake(text: str) -> bool:
    """Return True for a text with mojibake that cannot be capitals."""
    if text.isascii() or not _GARBLED.search(text):
        return False
    return _SIGN.search(text) is not None or len(_WITHIN.findall(text)) > 1


def _repaired(text: str, is_garbled: bool = False) -> str:
    if not _has_mojibake(text) and not (is_garbled and _GARBLED.search(text)):
        return text
    import ftfy

    return ftfy.fix_encoding(text)


def _visible(text: str) -> str:
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub("", _CONTROL.sub(" ", text))


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


def normal_pieces(text: str) -> Iterator[str]:
    """Yield pieces of a text that can be normalised, in any form, one by one.

    A text of up to 1,000 characters or in ASCII is one piece. In a longer one a U+034F is put after each 30 combining
    marks in a row, as in Unicode's stream-safe text format, so that no piece takes more than linear time.
    """
    if len(text) <= _SHORT or text.isascii():
        yield text
        return
    text = _too_many_marks(_MOST_MARKS).sub(rf"\g<0>{_JOINER}", text)
    start = 0
    while start < len(text):
        end = start + _PIECE
        while end < len(text) and not _stands_alone(text[end]):
            end += 1
        yield text[start:end]
        start = end


def _stands_alone(c: str) -> bool:
    """Return True for a character that no normal form moves before the one before it or merges with it."""
    first = unicodedata.normalize("NFKD", c)[0]
    return c == _JOINER or not (unicodedata.category(first)[0] == "M" or "\u1161" <= first <= "\u11ff")


@functools.cache
def _too_many_marks(most: int) -> re.Pattern[str]:
    """Match `most` characters in a row that decompose into marks, if another one follows."""
    ranges: list[list[int]] = []
    for code in range(0x300, _LAST_MARK + 1):
        if 0xD800 <= code < 0xE000 or not unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0]):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(f"[{marks}]{{{most}}}(?=[{marks}])")
