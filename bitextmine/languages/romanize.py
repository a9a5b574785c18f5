"""Text as an encoder reads it: one form of each letter, and words of many scripts in Latin letters.

Names and shared roots (Livingston, Ливингстон, ლივინგსტონი, リビングストン) then have pieces in common. Letters
that a script tells apart stay apart, by marks that n-grams ignore.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib import resources

# --- letters that look alike ---

# Pairs of UTS 39's confusables.txt. Crawls are full of words typed with letters of two scripts.
_CYRILLIC = dict(zip("aceopxyijhABCEHIJKMOPTXYëïəË", "асеорхуіјһАВСЕНІЈКМОРТХУёїәЁ", strict=True))
_GREEK = dict(zip("ovuipyABEZHIKMNOPTYXó", "ονυιργΑΒΕΖΗΙΚΜΝΟΡΤΥΧό", strict=True))
_LOOKALIKES: dict[str, dict[str, str]] = {
    "Latin": {letter: latin for table in (_CYRILLIC, _GREEK) for latin, letter in table.items()},
    "Cyrillic": _CYRILLIC,
    "Greek": _GREEK,
}
_LATIN_RANGE, _GREEK_RANGE, _CYRILLIC_RANGE = "A-Za-zÀ-ÖØ-öø-ʯ", "\u0370-\u03ff\u1f00-\u1fff", "\u0400-\u052f"
_SEAM = re.compile(
    f"[{_LATIN_RANGE}][{_GREEK_RANGE}{_CYRILLIC_RANGE}]|[{_GREEK_RANGE}{_CYRILLIC_RANGE}][{_LATIN_RANGE}]"
)
_LATIN_LETTER = re.compile(f"[{_LATIN_RANGE}]")
_OTHER_LETTER = re.compile(f"[{_GREEK_RANGE}{_CYRILLIC_RANGE}]")
_TELUGU_ZERO = re.compile("(?<=[\u0c01-\u0c61])\u0c66")  # typed for the sign of a nasal, U+0C02
_MIXED = re.compile(f"[{_LATIN_RANGE}{_GREEK_RANGE}{_CYRILLIC_RANGE}]+")


def fold_lookalikes(text: str) -> str:
    """Return a text whose words are in one script each, where letters that look alike allow it.

    The script is that of the letters that have no lookalike; without any, that of most letters. A word with such
    letters in two scripts stays.
    """
    if text.isascii():
        return text
    if "\u0c66" in text:
        text = _TELUGU_ZERO.sub("\u0c02", text)
    # The first searches are fast, and most texts are in one script.
    if not (_OTHER_LETTER.search(text) and _LATIN_LETTER.search(text) and _SEAM.search(text)):
        return text
    return _MIXED.sub(_one_script, text)


def _one_script(match: re.Match[str]) -> str:
    word = match[0]
    letters: dict[str, set[str]] = {"Latin": set(), "Greek": set(), "Cyrillic": set()}
    for letter in word:
        letters[
            "Cyrillic" if "\u0400" <= letter < "\u0530" else "Latin" if letter < "\u0370" else "Greek"
        ].add(letter)
    here = [script for script, present in letters.items() if present]
    if len(here) < 2:
        return word
    certain = [
        script
        for script in here
        if any(
            all(letter not in _LOOKALIKES[other] for other in here if other != script)
            for letter in letters[script]
        )
    ]
    if len(certain) > 1:
        return word
    script = certain[0] if certain else max(here, key=lambda name: sum(c in letters[name] for c in word))
    return word.translate({ord(letter): other for letter, other in _LOOKALIKES[script].items()})


# --- one form of each letter ---

_ZEROS = "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040\u17e0"
# Letters by what they become. The first ones make Slavic words alike in both scripts: škola, школа. The others are alef
# with hamza, madda or wasla, and Persian and Arabic yeh and kaf.
_VARIANTS = {"sh": "šşș", "zh": "ž", "ch": "č", "Sh": "ŠŞȘ", "Zh": "Ž", "Ch": "Č"}
_VARIANTS |= {"ا": "أإآٱ", "ي": "ىیے", "ک": "ك"}
# Vowel signs, which are rarely written, and the stroke that stretches words.
_UNWRITTEN = [*range(0x064B, 0x0653), 0x0670, 0x0640, *range(0x0591, 0x05BE), *range(0x05BF, 0x05C8)]


@cache
def _forms() -> dict[int, str | None]:
    """Map digits to ASCII, Traditional and Japanese Han to Simplified, and Arabic and Hebrew letters to bare ones."""
    table: dict[int, str | None] = {ord(zero) + i: str(i) for zero in _ZEROS for i in range(10)}
    pairs = _read("han.txt").replace("\n", "")
    table |= dict(zip(map(ord, pairs[::2]), pairs[1::2], strict=True))
    table |= {ord(letter): form for form, letters in _VARIANTS.items() for letter in letters}
    return table | dict.fromkeys(_UNWRITTEN)


def _read(name: str) -> str:
    return resources.files("bitextmine.languages").joinpath(name).read_text(encoding="utf-8")


# --- Latin letters, and consonants ---

# Rough Latin spellings of Greek and Cyrillic letters, and of Latin letters without an accent to lose. Names are then
# spelled alike in all scripts (обама, obama).
LATIN = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфхцыэіґ", "abvgdeziiklmnoprstufhcyeig", strict=True))
    | {"ж": "zh", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya", "є": "ye", "ъ": "", "ь": ""}
    | dict(zip("αβγδεζηικλμνξοπρσςτυφω", "avgdeziiklmnxoprsstyfo", strict=True))
    | {"θ": "th", "χ": "ch", "ψ": "ps", "ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"}
)


@cache
def _letters() -> tuple[dict[int, str], dict[int, str]]:
    """Return the Latin spelling of letters, and the sound of consonants; "" for vowels.

    letters.tsv has them by letter, with "-" for nothing.
    """
    rows = [line.split("\t") for line in _read("letters.tsv").splitlines()[1:]]
    latin, sounds = ({ord(row[0]): row[i].strip("-") for row in rows if row[i]} for i in (1, 2))
    return latin, sounds


def latin(word: str) -> str:
    """Return a word in lower-case Latin letters without accents, where the table of letters has them."""
    if word.isascii():  # fast
        return word.lower()
    spelled = _bare(word.casefold()).translate(_letters()[0])
    return spelled if spelled.isascii() else _bare(spelled).translate(LATIN)


def _bare(word: str) -> str:
    """Return a word without accents, and Hangul in its parts."""
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


# Spelled like names and terms in Latin letters: дж as j (джон), ия as ia (мария), ου as u (ουκρανια).
_WITHIN = {"дж": "j", "кс": "x", "ия": "ia", "ія": "ia", "νγκ": "ng", "ου": "u", "αυ": "au", "ευ": "eu"}
_WITHIN |= {"τζ": "j", "ու": "u", "եւ": "ev"}
_FIRST = {"уэ": "we", "уи": "wi", "уо": "wo", "уа": "wa", "ουα": "wa", "ουι": "wi", "ουε": "we"}
_FIRST |= {"μπ": "b", "ντ": "d", "γκ": "g"}
_SMALL_KANA = dict(zip("ァィゥェォャュョ", ["a", "i", "u", "e", "o", "ya", "yu", "yo"], strict=True))

_ALPHABETS = f"{_GREEK_RANGE}{_CYRILLIC_RANGE}ა-ჺԱ-և"
# Shorter words are mostly function words, which would become Latin words of other meaning (он, on; мы, my).
_TERM = re.compile(f"[{_GREEK_RANGE}{_CYRILLIC_RANGE}][{_GREEK_RANGE}{_CYRILLIC_RANGE}\u0300-\u036f]{{3,}}")
_WORDS = re.compile(
    f"(?P<alphabet>[{_ALPHABETS}][{_ALPHABETS}\u0300-\u036f]{{3,}})|(?P<kana>[ァ-ヴー]{{3,}})|(?P<hangul>[가-힣]{{2,}})"
)


def transliterate(text: str) -> str:
    """Return a text with its Greek and Cyrillic words of four letters or more in Latin letters, in lower case."""
    return _TERM.sub(lambda term: _from_alphabet(term[0], LATIN), text)


def romanize(text: str) -> str:
    """Return a text with look-alike letters folded, one form of digits and letters, and words in Latin letters.

    Words of four letters or more in Greek, Cyrillic, Georgian and Armenian, of three katakana, and of two Hangul
    syllables are spelled in lower-case Latin letters.
    """
    if text.isascii():
        return text
    return _WORDS.sub(_latin_word, fold_lookalikes(text).translate(_forms()))


def _latin_word(match: re.Match[str]) -> str:
    word, latin = match[0], _letters()[0]
    if match["hangul"]:
        return unicodedata.normalize("NFD", word).translate(latin)
    return _from_kana(word, latin) if match["kana"] else _from_alphabet(word, latin)


def _from_alphabet(word: str, latin: Mapping[int, str]) -> str:
    plain = _bare(word.casefold().replace("йо", "yo"))
    for letters, spelled in _FIRST.items():
        if plain.startswith(letters):
            plain = spelled + plain.removeprefix(letters)
    for letters, spelled in _WITHIN.items():
        plain = plain.replace(letters, spelled)
    return plain.translate(latin)


def _from_kana(word: str, latin: dict[int, str]) -> str:
    spelled = ""
    for letter in word:
        if small := _SMALL_KANA.get(letter):
            head = spelled[:-1] if spelled[-1:] in "iueo" else spelled
            spelled = head + (small[-1] if head.endswith(("sh", "ch", "j")) else small)
        else:
            spelled += latin.get(ord(letter), "")
    return spelled


_SOUNDS = "BDFGKLMNRST"
_DOUBLE = re.compile("([A-Z])\\1+")


@cache
def _no_sound(kept: str) -> re.Pattern[str]:
    return re.compile(f"[^{_SOUNDS}{kept}]")


def consonants(text: str, kept: str = "") -> str:
    """Return the consonants of a text without accents, each sound once, in capitals of ``CONSONANTS``.

    Those that scripts do not tell apart are one, and vowels, which are not always written, are left out: Livingston,
    ليفينغستون, ליווינגסטון and ลิฟวิงสตัน are LFNGSTN. Other characters are NUL, but for those ``kept``.
    """
    spelled = text.replace("ph", "f").translate(_letters()[1])
    return _DOUBLE.sub(r"\1", _no_sound(kept).sub("\0", spelled))


CONSONANTS = frozenset(_SOUNDS)
