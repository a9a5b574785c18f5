"""Codes of languages and the table of languages."""

import unicodedata

import pytest

from bitextmine.languages.codes import (
    is_code,
    is_short_code,
    language,
    languages,
    matches,
    same_code,
    usual_length,
)
from bitextmine.languages.scripts import count_scripts, scripts_of
from bitextmine.scoring.columns.numbers import word_values

ROWS = list(languages().values())
TWENTY = [row.code for row in ROWS if row.units]


@pytest.mark.parametrize("code", ["fr", "fra", "pt-BR", "zh_Hans"])
def test_codes(code):
    assert is_code(code)
    assert is_short_code(code)


@pytest.mark.parametrize("text", ["", "f", "fr ", "../fr", "fr-", "one two", "français"])
def test_texts_that_are_no_codes(text):
    assert not is_code(text)
    assert not is_short_code(text)


@pytest.mark.parametrize("word", ["text", "Note", "sentence", "FR"])
def test_a_word_is_no_short_code(word):
    assert is_code(word)
    assert not is_short_code(word)


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
        ("he", "iw IW-IL", "hi"),
        ("source", "source", "source-text source_text"),
        ("xyz", "xyz-AB XYZ", "xy"),
    ],
)
def test_tags_in_a_range(wanted, inside, outside):
    assert [tag for tag in (inside + " " + outside).split() if matches(tag, wanted)] == inside.split()


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


@pytest.mark.parametrize("code", TWENTY)
def test_number_words_of_the_twenty(code):
    row = language(code)
    assert row is not None and row.spaces and row.length and row.negation
    for word, value in [(word, value) for value, word in enumerate(row.units)] + list(row.numbers.items()):
        if word != "once":  # eleven in Spanish, 1 in English, which comes first
            assert value in word_values(word, code), word
    assert {*range(13), 20, 100, 1000} <= {
        *range(len(row.units)),
        *range(20, 20 + 10 * len(row.tens), 10),
        *row.numbers.values(),
    }


def test_words_of_other_languages_are_read_only_where_asked_for():
    assert word_values("to", "da") == [2] and word_values("to") == []


def test_usual_lengths():
    assert usual_length("en", "de-AT") == 1.13 and usual_length("fra", "de") == 1
    assert usual_length("de", "en") == 1 / 1.13
    assert usual_length("zh", "en") > 3 > 1 > usual_length("en", "ja")
    assert usual_length("en", "xyz") is usual_length("en", "cy") is None


def test_languages_without_spaces():
    assert {row.code for row in ROWS if not row.spaces} >= {"zh", "ja", "th"}
    assert language("ko").spaces and language("hi").spaces
