"""Greek and Cyrillic words in Latin letters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.languages.scripts import transliterate

MIXED = st.text(st.sampled_from("abcй ёжщїґάϊςωΣЯé.,-«1\u0301漢"), max_size=40)


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("«Ливингстон»", "«livingston»"),
        ("Джонсон, Мария", "jonson, maria"),
        ("Уильям Йорк", "wilyam york"),
        ("Україна", "ukraina"),
        ("Μπάιντεν", "bainten"),
        ("Ουκρανία", "ukrania"),
        ("Livingston és Łódź", "Livingston és Łódź"),
        ("он, мы и του", "он, мы и του"),  # function words keep their letters
    ],
)
def test_names_and_terms(text, latin):
    assert transliterate(text) == latin


@given(MIXED)
def test_no_long_word_is_left_and_latin_ones_stay(text):
    latin = transliterate(text)
    assert not re.search("[\u0370-\u03ff\u0400-\u052f]{4}", latin)
    assert transliterate(latin) == latin


@given(MIXED)
def test_words_are_transliterated_alone(text):
    assert transliterate(text).split(" ") == [transliterate(word) for word in text.split(" ")]


@given(MIXED)
def test_other_text_stays(text):
    other = re.sub("[\u0370-\u03ff\u0400-\u052f]+", " ", text)
    assert transliterate(other) == other
