"""Codes of languages and the table of languages."""

import unicodedata

import pytest

from bitextmine.languages.codes import (
    code_problem,
    count_scripts,
    is_code,
    is_short_code,
    is_stated,
    language,
    languages,
    matches,
    same_code,
    scripts_of,
    usual_length,
)
from bitextmine.languages.identify import Languages
from bitextmine.scoring.columns.numbers import word_values
from bitextmine.shipped import languages_of

ROWS = list(languages().values())
SPELLED = [row.code for row in ROWS if row.units and row.spaces]
ENCODED = languages_of("world56")


def test_forms_of_codes():
    for code in ("fr", "fra", "pt-BR", "zh_Hans"):
        assert is_code(code) and is_short_code(code)
    for text in ("", "f", "fr ", "../fr", "fr-", "one two", "français"):
        assert not is_code(text) and not is_short_code(text)
    for word in ("text", "Note", "sentence", "FR"):
        assert is_code(word) and not is_short_code(word)


@pytest.mark.parametrize(
    ("codes", "same"),
    [
        ("fr FR fr-FR fr_CA fra fre FRA", "fr"),
        ("no nb nor nob no-NO", "nb"),
        ("pt-BR por", "pt"),
        ("zh_Hans cmn zho", "zh"),
        ("he iw IW-IL heb", "he"),
        ("id in ind", "id"),
        ("yi ji ydd", "yi"),
        ("ro mo rum", "ro"),
        ("sr sh srp sr-Latn", "sr"),
        ("tl fil tgl", "tl"),
        ("ms zsm", "ms"),
        ("fa pes prs", "fa"),
        ("xyz XYZ-ab", "xyz"),
    ],
)
def test_codes_of_one_language(codes, same):
    assert {same_code(code) for code in codes.split()} == {same}


@pytest.mark.parametrize(
    ("wanted", "inside", "outside"),
    [
        ("en", "en EN en-US en_GB eng EN-us", "fr english eno"),
        ("en-US", "en-us EN_US en-Latn-US", "en en-GB"),
        ("zh-TW", "zh-Hant-TW", "zh zh-Hans zh-CN"),
        ("zh-Hans", "zh-CN cmn zh_SG zh-Hans-HK", "zh-TW zh-HK zh-Hant"),
        ("sr-Latn", "sr-Latn-RS", "sr sr-RS sr-Cyrl"),
        ("he", "iw IW-IL", "hi"),
        ("source", "source", "source-text source_text"),
        ("xyz", "xyz-AB XYZ", "xy"),
    ],
)
def test_tags_in_a_range(wanted, inside, outside):
    assert [tag for tag in (inside + " " + outside).split() if matches(tag, wanted)] == inside.split()


@pytest.mark.parametrize(("code", "meant"), [("German", "de"), ("jp", "fr or pt-BR"), (7, "fr or pt-BR")])
def test_no_codes(code, meant):
    assert code_problem(code) == f"{code!r} is not a language code such as {meant}"


@pytest.mark.parametrize(
    "code", ["fr", "iw", "sh", "in", "gsw", "qaa", "yue", "und", "mul", "sr-Latn", "zh_Hant_TW"]
)
def test_registered_codes(code):
    assert code_problem(code) is None


@pytest.mark.parametrize("code", ["", None, "und", "UND-Latn", "mul", "mis", "zxx"])
def test_codes_of_no_language(code):
    assert not is_stated(code) and is_stated("zu") and is_stated("un")


def test_no_code_stands_for_two_languages():
    codes = [code for row in ROWS for code in (row.code, *row.aliases)]
    assert len(codes) == len(set(codes)) and all(map(is_short_code, codes))
    assert len({row.name for row in ROWS}) == len(ROWS) > 100


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_rows_are_written_in_their_scripts(row):
    letters = count_scripts([*row.units, *row.tens, *row.numbers, *row.negation], 100)
    assert set(letters) <= row.scripts
    assert scripts_of(row.code) == row.scripts
    assert [unicodedata.numeric(c) for c in row.digits] in ([], [float(i) for i in range(10)])


@pytest.mark.parametrize("code", SPELLED)
def test_number_words(code):
    row = language(code)
    assert row is not None and len(row.units) == 20 and len(row.tens) == 8
    for word, value in [(word, value) for value, word in enumerate(row.units)] + list(row.numbers.items()):
        # A word of English, French, German, Spanish or Italian keeps its value there.
        if word_values(word) in ((), (value,)):
            assert value in word_values(word, code), word
    assert {*range(13), 20, 100, 1000} <= {
        *range(len(row.units)),
        *range(20, 20 + 10 * len(row.tens), 10),
        *row.numbers.values(),
    }


COMPOSED = {
    "ar": {"خمسة وعشرون": 25, "خمس وعشرين": 25, "ثلاث عشرة": 13},
    "ca": {"vint-i-dos": 22, "trenta-quatre": 34, "tres-cents": 300},
    "cs": {"třicet pět": 35, "pětadvacet": 25, "pět set dvacet": 520},
    "da": {"femoghalvtreds": 55, "tyvende": 20},
    "el": {"σαράντα δύο": 42, "διακόσια πενήντα": 250},
    "fi": {"seitsemänkymmentäkaksi": 72},
    "he": {"עשרים ואחת": 21},
    "hu": {"huszonhat": 26, "nyolcvankettő": 82},
    "nl": {"drieëntwintig": 23, "twintigste": 20},
    "pl": {"dziewięćdziesiąt dziewięć": 99, "trzysta dwa": 302},
    "pt": {"oitenta e sete": 87},
    "ru": {"сорок два": 42, "пятьсот один": 501},
    "tr": {"elli beş": 55, "onuncu": 10},
    "uk": {"дев'яносто три": 93},
    "vi": {"hai mươi lăm": 25, "ba trăm năm mươi mốt": 351},
    "bn": {"পঁয়ষট্টি বছর": 65, "সাতটি": 7},
    "hi": {"पैंसठ": 65, "सातवां": 7},
    "ka": {"ოცდახუთი": 25, "სამოცდათხუთმეტი": 75},
    "ko": {"스물세 명": 23, "열두 살": 12},
    "ta": {"முப்பத்தைந்து": 35, "தொண்ணூற்றி மூன்று": 93},
    "ur": {"پینتالیس": 45, "پانچواں": 5},
}


@pytest.mark.parametrize("code", COMPOSED)
def test_composed_number_words(code):
    for text, value in COMPOSED[code].items():
        assert value in word_values(text, code), text


@pytest.mark.parametrize("code", ENCODED)
def test_a_language_of_the_encoder_has_a_whole_row(code):
    row = language(code)
    assert row is not None and row.length and row.negation and (row.units or row.digits or not row.spaces)
    # Swahili counts hours from dawn.
    assert row.scales and (row.clock or code == "sw") and (row.afternoon or code == "sw")
    assert (row.code in Languages().codes) and not row.negation[0].isspace()


def test_words_of_other_languages_are_read_only_where_asked_for():
    assert word_values("to", "da") == (2,) and word_values("to") == ()


def test_usual_lengths():
    assert usual_length("en", "de-AT") == 1.13 and usual_length("fra", "de") == 1
    assert usual_length("de", "en") == 1 / 1.13
    assert usual_length("zh", "en") > 3 > 1 > usual_length("en", "ja")
    assert usual_length("en", "xyz") is usual_length("en", "cy") is None


def test_languages_without_spaces():
    assert {row.code for row in ROWS if not row.spaces} >= {"zh", "ja", "th"}
    assert language("ko").spaces and language("hi").spaces
