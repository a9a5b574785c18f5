"""Numbers written in words or Roman numerals, in the languages whose number words are known.

The tables only ever excuse a digit that the other side has in words; that a word of one language looks like a
number of another ("once", eleven in Spanish) therefore punishes nobody.
"""

from __future__ import annotations

import functools
import re
import unicodedata

__all__ = ["roman_value", "word_values"]

_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
    "dix-huit dix-neuf",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici "
    "sedici diciassette diciotto diciannove",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingt quatre-vingt-dix",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
}
# Forms that follow no rule: inflected, ordinal, fractions and multiples.
_OTHERS = {
    "en": "first 1 second 2 third 3 fourth 4 fifth 5 sixth 6 seventh 7 eighth 8 ninth 9 tenth 10 eleventh 11 "
    "twelfth 12 thirteenth 13 fourteenth 14 fifteenth 15 sixteenth 16 seventeenth 17 eighteenth 18 nineteenth 19 "
    "twentieth 20 thirtieth 30 a 1 an 1 once 1 twice 2 double 2 pair 2 both 2 dozen 12 hundred 100 thousand 1000 "
    "twenties 20 thirties 30 forties 40 fifties 50 sixties 60 seventies 70 eighties 80 nineties 90",
    "fr": "une 1 premier 1 première 1 premiers 1 premières 1 second 2 seconde 2 double 2 quatre-vingts 80 cent 100 "
    "cents 100 mille 1000 neuvième 9 douzaine 12 dizaine 10 vingtaine 20 trentaine 30 centaine 100 millier 1000",
    "de": "eins 1 eine 1 einen 1 einem 1 einer 1 eines 1 zwo 2 beide 2 beiden 2 doppelt 2 erste 1 dritte 3 siebte 7 "
    "achte 8 dreissig 30 hundert 100 einhundert 100 tausend 1000 eintausend 1000 dutzend 12 einmal 1 zweimal 2",
    "es": "un 1 una 1 primer 1 primero 1 primera 1 segundo 2 segunda 2 tercer 3 tercero 3 tercera 3 cuarto 4 cuarta 4 "
    "quinto 5 quinta 5 sexto 6 sexta 6 séptimo 7 séptima 7 octavo 8 octava 8 noveno 9 novena 9 décimo 10 décima 10 "
    "veintiún 21 cien 100 ciento 100 mil 1000 doble 2 ambos 2 ambas 2 docena 12 decena 10 centenar 100",
    "it": "un 1 una 1 primo 1 prima 1 primi 1 prime 1 secondo 2 seconda 2 terzo 3 terza 3 quarto 4 quarta 4 quinto 5 "
    "quinta 5 sesto 6 sesta 6 settimo 7 settima 7 ottavo 8 ottava 8 nono 9 nona 9 decimo 10 decima 10 ventuno 21 "
    "ventotto 28 cento 100 mille 1000 mila 1000 doppio 2 entrambi 2 dozzina 12 decina 10 centinaio 100",
}
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ROMAN = re.compile(r"(?=[IVXLC])(C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?:e|er|ème|th|st|nd|rd)?\.?")
_HUNDREDS = {0: 0, 1: 100, 2: 200, 3: 300}
_ROMAN_TENS = {
    "": 0,
    "X": 10,
    "XX": 20,
    "XXX": 30,
    "XL": 40,
    "L": 50,
    "LX": 60,
    "LXX": 70,
    "LXXX": 80,
    "XC": 90,
}
_ROMAN_UNITS = {"": 0, "I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7, "VIII": 8, "IX": 9}


def _plain(text: str) -> str:
    """Case, accents and hyphens away: "Dix-Sept" -> "dixsept"."""
    return "".join(
        c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c) and c != "-"
    )


@functools.cache
def _words() -> dict[str, int]:
    words: dict[str, int] = {}
    for language, names in _UNITS.items():
        units = [_plain(name) for name in names.split()]
        tens = [_plain(name) for name in _TENS[language].split()]
        for value, name in enumerate(units):
            words.setdefault(name, value)
        for ten, name in enumerate(tens, start=2):
            words.setdefault(name, 10 * ten)
            for unit in range(1, 20 if language == "fr" and ten in (6, 8) else 10):
                value = 10 * ten + unit
                joined = {
                    "de": f"{units[unit]}und{name}",
                    "it": f"{name[:-1] if units[unit][0] in 'aeiou' else name}{units[unit]}",
                    "es": f"{name[:-1]}i{units[unit]}" if ten == 2 else f"{name}y{units[unit]}",
                }.get(language, f"{name}{units[unit]}")
                words.setdefault(joined, value)
                if language == "fr" and unit in (1, 11):
                    words.setdefault(f"{name}et{units[unit]}", value)
        listed = _OTHERS[language].split()
        for name, value in zip(listed[::2], map(int, listed[1::2]), strict=True):
            words.setdefault(_plain(name), value)
    # Ordinals by rule: deuxième, vierte(r/n/s), zwanzigste(r/n/s), undicesimo
    ordinals: dict[str, int] = {}
    for word, value in words.items():
        for ending in ("ieme", "iemes", "te", "ten", "ter", "tes", "ste", "sten", "ster", "stes"):
            ordinals.setdefault(word + ending, value)
            ordinals.setdefault(word.removesuffix("e") + ending, value)
        for ending in ("esimo", "esima"):
            ordinals.setdefault(word[:-1] + ending, value)
    for word, value in ordinals.items():
        words.setdefault(word, value)
    for extra, value in (
        ("cinquieme", 5),
        ("ersten", 1),
        ("erster", 1),
        ("erstes", 1),
        ("dritten", 3),
        ("dritter", 3),
    ):
        words[extra] = value
    return words


def word_values(text: str) -> list[int]:
    """The numbers that a text has in words: each word by itself, and two or three in a row taken as one number
    ("twenty one", "vingt et un", "cuarenta y dos")."""
    known = _words()
    tokens = [_plain(token) for token in _WORD.findall(text)]
    found: list[int] = []
    for i, token in enumerate(tokens):
        if token in known:
            found.append(known[token])
        pair = "".join(tokens[i : i + 2])
        if i + 1 < len(tokens) and pair in known:
            found.append(known[pair])
        triple = "".join(tokens[i : i + 3])
        if i + 2 < len(tokens) and triple in known:
            found.append(known[triple])
    return found


def roman_value(word: str) -> int:
    """The value (1 to 399) of a Roman numeral in capitals, an ordinal ending and a full stop allowed; 0 for any
    other word."""
    match = _ROMAN.fullmatch(word)
    if match is None:
        return 0
    hundreds, tens, units = match.groups()
    return _HUNDREDS[len(hundreds)] + _ROMAN_TENS[tens] + _ROMAN_UNITS[units]
