"""Join wrapped lines of plain text to paragraphs, and cut paragraphs into sentences.

The library sentencex brings the abbreviations of a hundred languages; the table of languages adds the common ones that
it lacks. Quotations, initials, ordinal numbers and scripts without spaces are decided here: sentencex finds no sentence
inside a quotation, and takes every apostrophe for the start of one.

Quantifiers are possessive, and a run of marks is looked at from its first mark only: time is linear in the text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

from bitextmine.languages.codes import CLOSING, STOPS, WIDE_STOPS, is_spaced, language, same_code
from bitextmine.run import LONGEST_LINE

_QUESTIONS = "!?‽⁇⁈⁉！？؟፧"
_CLOSING = re.escape(CLOSING)
_WIDE_CLOSING = "”’)\\]）」』】〉》｣"
_QUOTES = frozenset("\"'”’»›“‘«‹」』》｣")
_OPENING = "\"'“‘«„‚([{¿¡—–-「『（【 \u00a0\u202f"
# Marks that end a sentence, full stops with spaces between them as one; then the quotation marks, brackets and
# reference marks ("[12]", "²") that belong to it; then spaces, the end of the text, or nothing after a wide mark.
_END = (
    rf"[{STOPS}](?<![{STOPS}][{STOPS}])[{STOPS}]*+(?:[ \u00a0][.…]++(?!\w))*+"
    rf"(?P<closing>[{WIDE_STOPS}{_WIDE_CLOSING}]*+"
    rf"(?:(?:[{_CLOSING}]|(?<=\S)[ \u00a0\u202f][»›\"”](?!\w))*+"
    r"(?:\[[^\[\]\s][^\[\]]{0,30}\]|[²³¹⁰⁴-⁹†‡])*+(?:\s++|\Z)"
    rf"|(?:\[\d{{1,3}}\])*+(?<=[{WIDE_STOPS}{_WIDE_CLOSING}])))"
)
# The Greek question mark; a colon is typed for the Armenian full stop.
_ENDS = {
    lang: re.compile(_END.replace(STOPS, f"{STOPS}{mark}")) for lang, mark in {"el": ";", "hy": ":"}.items()
}
_ANY_END = re.compile(_END)
_BETWEEN_WORDS = re.compile(r"[(\[\"'“„«»—/]")
_INITIAL = re.compile(r"(?:[^\W\d_]\.-)?[^\W\d_]")
_NUMBER = re.compile(r"\d{1,2}|[IVX]+")
# The label of a list item: a number or a letter with nothing before it.
_LABEL = re.compile(r"\W*+(?:\d{1,3}|[IVXivx]{1,4}|\w)(?:\.\d{1,3})*+\W*+")
_LONGEST_LABEL = 30
_PLAIN_END = re.compile(r"(?:^|[\s(\[\"'“„«»—/¿¡-])([^\W\d_]{5,})\.\s+\Z")
_LOOKED_BACK = 30
_LONGEST_OPENING = 10
_LONGEST_ABBREVIATION = 8  # characters, the full stop aside
# Dots that lead to a page number; as many with spaces between them lead there whatever follows.
_LEADER, _LONG_LEADER = 4, 6
_PAGE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,6})(?!\w)")
_ASCII_OR_WIDE = re.compile(r"[0-9A-Za-z０-９Ａ-Ｚａ-ｚ]")
# Languages that write ordinal numbers with a full stop before words in upper case.
_ORDINALS = re.compile(r"de|lb|cs|sk|hu|pl|fi|et|lv|da|nb|nn|is|fo|sl|hr|sr|bs|tr")
# Abbreviations that stand at the end of a sentence as often as inside.
_MAY_END = re.compile(
    r"etc|usw|osv|itd|atd|stb|vb|vs|jne|enz|ff|m\.m|o\.l|т\.д|т\.п|a\.m|p\.m|κ\.λπ|κτλ|κ\.ά"
)
# Letters, digits and the vowel signs that Python does not count among them.
_IN_WORD = r"\w\u0591-\u05c7\u064b-\u0652\u0900-\u0963\u0966-\u0dff"
_QUOTATION = '"“”„«»'
_CASED = {"Latin", "Cyrillic", "Greek", "Armenian"}
_FOLLOWING = 80  # characters


def sentences(paragraph: str, lang: str) -> list[str]:
    """Return the sentences of a paragraph in the language `lang`, without the spaces between them."""
    return list(_sentences(paragraph.strip(), same_code(lang)))


def _sentences(text: str, lang: str) -> Iterator[str]:
    start = 0
    for mark in _ENDS.get(lang, _ANY_END).finditer(text):
        if mark.end() == len(text):
            break
        if _is_inside(text, start, mark, lang):
            continue
        yield text[start : mark.end()].strip()
        start = mark.end()
    if rest := text[start:]:
        yield rest


def _is_inside(text: str, start: int, mark: re.Match[str], lang: str) -> bool:
    """Return True for marks inside the sentence that begins at `start`: of abbreviations, numbers, quotations."""
    at, closing, end = mark.start(), mark.start("closing"), mark.end()
    stops = text[at:closing]
    wide = stops[-1] in WIDE_STOPS
    if not text[end - 1].isspace() and (not wide or _is_point(text, at, end)):
        return True
    if _QUOTES.intersection(mark["closing"]) and _goes_on(text, end, stops, lang):
        return True
    if (
        not wide
        and begins_small(text, end)
        and not begins_small(text, start)
        and not _ends_plainly(text[max(start, at - _LOOKED_BACK) : end])
    ):
        return True
    dots = stops.count(".") + 3 * stops.count("…")
    if dots >= _LEADER and (_PAGE.match(text, end) or (dots >= _LONG_LEADER and dots < len(stops))):
        return True
    if stops in ".．" and at - start <= _LONGEST_LABEL and _LABEL.fullmatch(text, start, at):
        return True
    before = text[max(start, at - _LOOKED_BACK) : at]
    if stops != "." or not before or before[-1].isspace():
        return False
    word = _BETWEEN_WORDS.split(before.rsplit(None, 1)[-1])[-1]
    if _QUOTES.intersection(mark["closing"]) and word.isalpha() and len(word) > 1:  # "No." is a sentence
        return False
    return _is_short(word, lang)


def unmarked(lang: str) -> str:
    """Return a sentence about a language whose script marks no ends of sentences, "" for others."""
    row = language(lang)
    if row is None or row.scripts.isdisjoint({"Thai", "Lao", "Khmer"}):
        return ""
    return f"{row.name} has no mark at the end of a sentence: a paragraph is one line"


def begins_small(text: str, start: int = 0) -> bool:
    """Return True if the first letter from `start` on is in lower case."""
    first = text[start : start + _LONGEST_OPENING].lstrip(_OPENING)[:1]
    return first.islower() and not "ა" <= first <= "ჿ"  # no Georgian sentence begins with a capital


def ending(text: str) -> int:
    """Return the kind of mark that ends a text: 2 for a question or an exclamation, 1 for a full stop, 0 for others."""
    last = text.rstrip(f"{_CLOSING}{_WIDE_CLOSING}*_ \u00a0\u202f")[-1:]
    return 0 if not last or last not in STOPS else 2 if last in _QUESTIONS else 1


def _is_point(text: str, at: int, end: int) -> bool:
    """Return True for a wide full stop within a number or an address, as in ３．１４."""
    return text[at:end] == "．" and at > 0 and all(map(_ASCII_OR_WIDE.match, (text[at - 1], text[end])))


def _goes_on(text: str, end: int, stops: str, lang: str) -> bool:
    """Return True if a sentence goes on at `end`, after a quotation that ended with the marks `stops`."""
    if begins_small(text, end):
        return True
    pattern = _speech(lang)
    speech = pattern.match(text[end : end + _FOLLOWING]) if pattern else None
    if speech is None or not speech["name"]:
        return speech is not None
    # Where there are capitals a comma is written for a full stop.
    return stops != "." and all(word[0].isupper() for word in speech["name"].split())


@lru_cache
def _speech(lang: str) -> re.Pattern[str] | None:
    """Return how a sentence goes on after a quotation, with the name before a verb; None if letter case alone tells."""
    row = language(lang)
    if row is None or not row.speech:
        return None
    words: dict[str, list[str]] = {"~": [], "!": [], "": []}
    for word in row.speech:
        mark = word[0] if word[0] in "~!" else ""
        words[mark].append(re.escape(word.removeprefix(mark)).replace(r"\*", r"\w{0,2}"))
    verbs, excluded, plain = ("|".join(forms) or "(?!)" for forms in words.values())
    if not row.spaces:
        return re.compile(rf"(?!{excluded})(?P<name>)(?:{plain}|\w{{0,6}}?(?:{verbs})[。，；！]|[、，；])")
    end = rf"(?![{_IN_WORD}])"
    cased = not row.scripts.isdisjoint(_CASED)
    if not cased:  # "Zaid said: “..." begins the next sentence
        end += rf"(?!\s?[:,،]\s?[{_QUOTATION}])"
    name = "?P<name>" if cased else "?P<name>)(?:"
    subject = rf"({name}(?:[^\s{STOPS.replace('.', '')}{_QUOTATION}]{{1,20}} ){{0,3}}?)"
    return re.compile(rf"(?!(?:{excluded})(?![{_IN_WORD}]))(?:{plain}|{subject}(?:{verbs})){end}")


def _ends_plainly(text: str) -> bool:
    """Return True for a full stop after a word in lower case, too long for most abbreviations.

    It ends a sentence before lower case, too.
    """
    word = _PLAIN_END.search(text)
    return word is not None and word[1].islower()


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


# --- paragraphs ---

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
_DOT_LEADER = re.compile(r"(?:[.·…_]\s?){4}\s*[\divxlc]{1,6}\Z")
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
        if ends or _DOT_LEADER.search(line) or (short and not _is_divided(line, following)):
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
