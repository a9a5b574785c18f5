"""Text as an encoder reads it: one form of each letter, and words of many scripts in Latin letters.

Names and shared roots (Livingston, Ливингстон, ლივინგსტონი, लिविंगस्टन, リビングストン) then have pieces in common. Letters
that a script tells apart stay apart, by marks that n-grams ignore.
"""

import re
import unicodedata
from functools import cache
from importlib import resources

from bitextmine.languages.scripts import LATIN

# --- letters that look alike ---

# Pairs of UTS 39's confusables.txt. Crawls are full of words typed with letters of two scripts.
_CYRILLIC = dict(
    zip(
        "aceopxyijhABCEHIJKMOPTXYëïəË",
        "асеорхуіјһАВСЕНІЈКМОРТХУёїәЁ",
        strict=True,
    )
)
_GREEK = dict(zip("ovuipyABEZHIKMNOPTYXó", "ονυιργΑΒΕΖΗΙΚΜΝΟΡΤΥΧό", strict=True))
_LOOKALIKES: dict[str, dict[str, str]] = {
    "Latin": {other: one for table in (_CYRILLIC, _GREEK) for one, other in table.items()},
    "Cyrillic": _CYRILLIC,
    "Greek": _GREEK,
}
_LATIN_RANGE, _GREEK_RANGE, _CYRILLIC_RANGE = "A-Za-zÀ-ÖØ-öø-ʯ", "\u0370-\u03ff\u1f00-\u1fff", "\u0400-\u052f"
_SEAM = re.compile(
    f"[{_LATIN_RANGE}][{_GREEK_RANGE}{_CYRILLIC_RANGE}]|[{_GREEK_RANGE}{_CYRILLIC_RANGE}][{_LATIN_RANGE}]"
)
_MIXED = re.compile(f"[{_LATIN_RANGE}{_GREEK_RANGE}{_CYRILLIC_RANGE}]+")


def fold_lookalikes(text: str) -> str:
    """Return a text whose words are in one script each, where letters that look alike allow it.

    The script is that of the letters that have no lookalike; without any, that of most letters. A word with such
    letters in two scripts stays.
    """
    if text.isascii() or not _SEAM.search(text):
        return text
    return _MIXED.sub(_one_script, text)


def _one_script(found: re.Match[str]) -> str:
    word = found[0]
    letters: dict[str, set[str]] = {"Latin": set(), "Greek": set(), "Cyrillic": set()}
    for letter in word:
        letters["Cyrillic" if "\u0400" <= letter < "\u0530" else "Latin" if letter < "\u0370" else "Greek"].add(letter)
    here = [script for script, some in letters.items() if some]
    if len(here) < 2:
        return word
    certain = [
        script
        for script in here
        if any(all(letter not in _LOOKALIKES[other] for other in here if other != script) for letter in letters[script])
    ]
    if len(certain) > 1:
        return word
    script = certain[0] if certain else max(here, key=lambda one: sum(c in letters[one] for c in word))
    return word.translate(str.maketrans(_LOOKALIKES[script]))


# --- one form of each letter ---

_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040\u17e0"
)


@cache
def _forms() -> dict[int, str | None]:
    """Map digits to ASCII, Traditional and Japanese Han to Simplified, and Arabic and Hebrew letters to bare ones."""
    table: dict[int, str | None] = {ord(zero) + i: str(i) for zero in _ZEROS for i in range(10)}
    han = resources.files("bitextmine.languages").joinpath("han.txt").read_text(encoding="utf-8")
    pairs = han.replace("\n", "")
    table |= dict(zip(map(ord, pairs[::2]), pairs[1::2], strict=True))
    # Vowel signs, which are rarely written, and the stroke that stretches words.
    table |= dict.fromkeys([*range(0x064B, 0x0653), 0x0670, 0x0640, *range(0x0591, 0x05BE), *range(0x05BF, 0x05C8)])
    # Spelled like their Cyrillic counterparts: škola, школа.
    table |= {ord(a): b for a, b in zip("šžčşșŠŽČŞȘ", "sh zh ch sh sh Sh Zh Ch Sh Sh".split(), strict=True)}
    # Alef with and without hamza and madda; Persian and Arabic yeh and kaf.
    return table | {ord(a): b for a, b in zip("أإآٱىیكے", "ااااييکي", strict=True)}


# --- Latin letters ---

_ALPHABETS = LATIN | str.maketrans(
    dict(zip("ηωђћјљњџѕқғңһөәүұ", ["ī", "ō", "đ", "ć", "j", "lj", "nj", "dž", "dz", *"qğñhöäüū"], strict=True))
    | dict(zip("აბგდევზიკლმნოპჟრსტუჯჰ", [*"abgdevziklmnop", "zh", *"rstujh"], strict=True))
    | dict(zip("თფქღყშჩცძწჭხ", ["ť", "f", "ķ", "gh", "q̇", "sh", "ch", "ts", "dz", "tṡ", "cḣ", "kh"], strict=True))
    | dict(zip("աբգդեզէըթիլկհմյնոպջռսվտրւօֆ", "abgdezéëtilkhmynopjřsvťrwōf", strict=True))
    | dict(zip("ժխծձղճշչցփք", ["zh", "kh", "tṡ", "dz", "gh", "cḣ", "sh", "ch", "ts", "ṗ", "ķ"], strict=True))
)
_WITHIN = {
    **{"дж": "j", "кс": "x", "ия": "ia", "ія": "ia"},
    **{"νγκ": "ng", "ου": "u", "αυ": "au", "ευ": "eu", "τζ": "j", "ու": "u", "եւ": "ev"},
}
_FIRST = {"уэ": "we", "уи": "wi", "уо": "wo", "уа": "wa", "ουα": "wa", "ουι": "wi", "ουε": "we"}
_FIRST |= {"μπ": "b", "ντ": "d", "γκ": "g"}

# The scripts of India have one order in Unicode, 128 places each: letters by place, after ISO 15919.
_INDIC: dict[int, str] = dict(enumerate("a ā i ī u ū ṛ ḷ ě ė e ai ŏ ȯ o au".split(), 5))
_INDIC |= {place + 0x38: vowel for place, vowel in _INDIC.items() if place > 5}
_INDIC |= dict(
    enumerate(
        "k kh g gh ṅ ch chh j jh ñ ṭ ṭh ḍ ḍh ṇ t th d dh n ṉ p ph b bh m y r ṟ l ḷ ḻ v śh ṣh s h".split(), 0x15
    )
)
_INDIC |= {0x01: "n̆", 0x02: "n", 0x03: "ḥ", 0x58: "q", 0x59: "k̲h", 0x5A: "ġ", 0x5B: "z", 0x5C: "ṙ", 0x5D: "ṙh"}
_INDIC |= {0x5E: "f", 0x5F: "ẏ", 0x70: "ŕ", 0x71: "v̇"}
_DOTTED = {0x15: 0x58, 0x16: 0x59, 0x17: 0x5A, 0x1C: 0x5B, 0x21: 0x5C, 0x22: 0x5D, 0x2B: 0x5E, 0x2F: 0x5F}
_NUKTA, _VIRAMA = 0x3C, 0x4D

_KANA = dict(
    zip(
        "アイウエオカガキギクグケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドナニヌネノハバパヒビピフブプヘベペホボポマミムメモヤユヨラリルレロワヰヱヲンヴ",
        (
            "a i u e o ka ga ki gi ku gu ke ge ko go sa za shi ji su zu se ze so zo ta da chi ji tsu zu te de to do na ni "
            "nu ne no ha ba pa hi bi pi fu bu pu he be pe ho bo po ma mi mu me mo ya yu yo ra ri ru re ro wa i e o n vu"
        ).split(),
        strict=True,
    )
)
_SMALL = dict(zip("ァィゥェォャュョ", ["a", "i", "u", "e", "o", "ya", "yu", "yo"], strict=True))

_HEADS = "g kk n d tt r m b pp s ss  j jj ch k t p h".split(" ")
_VOWELS = "a ae ya yae ŏ e yŏ ye o wa wae oe yo u wŏ we wi yu ŭ ŭi i".split(" ")
_TAILS = " g gg gs n nj nh d l lg lm lb ls lt lp lh m b bs s ss ng j ch k t p h".split(" ")

_SCRIPTS = {
    # Shorter words are mostly function words, which would become Latin words of other meaning (он, on; में, men).
    "alphabet": f"[{_GREEK_RANGE}{_CYRILLIC_RANGE}ა-ჺԱ-և][{_GREEK_RANGE}{_CYRILLIC_RANGE}ა-ჺԱ-և\u0300-\u036f]{{3,}}",
    "indic": "[\u0901-\u0963\u0981-\u09e3\u0a01-\u0a71\u0a81-\u0ae3\u0b01-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0ce3]{4,}",
    "kana": "[ァ-ヴー]{3,}",
    "hangul": "[가-힣]{2,}",
}
_WORDS = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _SCRIPTS.items()))


def romanize(text: str) -> str:
    """Return a text with look-alike letters folded, one form of digits and letters, and words in Latin letters.

    Words of four letters or more in Greek, Cyrillic, Georgian, Armenian and the scripts of India, of three katakana, and
    of two Hangul syllables are spelled in lower-case Latin letters.
    """
    if text.isascii():
        return text
    return _WORDS.sub(_latin_word, fold_lookalikes(text).translate(_forms()))


def _latin_word(found: re.Match[str]) -> str:
    return _SPELLERS[str(found.lastgroup)](found[0])


def _from_alphabet(word: str) -> str:
    word = unicodedata.normalize("NFKD", word.casefold().replace("йо", "yo"))
    plain = "".join(c for c in word if not unicodedata.combining(c))
    for letters, spelled in _FIRST.items():
        if plain.startswith(letters):
            plain = spelled + plain.removeprefix(letters)
    for letters, spelled in _WITHIN.items():
        plain = plain.replace(letters, spelled)
    return plain.translate(_ALPHABETS)


def _from_indic(word: str) -> str:
    """Spell a word with the inherent vowel between two consonants, and in the south after the last one."""
    places = [ord(letter) & 0x7F for letter in word]
    spelled: list[str] = []
    for i, place in enumerate(places):
        after = places[i + 1] if i + 1 < len(places) else 0
        if after == _NUKTA:
            place, after = _DOTTED.get(place, place), places[i + 2] if i + 2 < len(places) else 0
        spelled.append(_INDIC.get(place, ""))
        consonant = 0x15 <= place <= 0x39 or 0x58 <= place <= 0x5F
        bare = 0x3E <= after <= _VIRAMA or after == 0 and word[0] < "\u0b80"
        if consonant and not bare:
            spelled.append("a")
    return "".join(spelled)


def _from_kana(word: str) -> str:
    spelled = ""
    for letter in word:
        if small := _SMALL.get(letter):
            head = spelled[:-1] if spelled[-1:] in "iueo" else spelled
            spelled = head + (small[-1] if head.endswith(("sh", "ch", "j")) else small)
        else:
            spelled += _KANA.get(letter, "")
    return spelled


def _from_hangul(word: str) -> str:
    codes = [ord(letter) - 0xAC00 for letter in word]
    return "".join(_HEADS[c // 588] + _VOWELS[c // 28 % 21] + _TAILS[c % 28] for c in codes)


_SPELLERS = {"alphabet": _from_alphabet, "indic": _from_indic, "kana": _from_kana, "hangul": _from_hangul}
