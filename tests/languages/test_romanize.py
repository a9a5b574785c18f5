"""Text as an encoder reads it: look-alike letters, digits, and words in Latin letters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.languages.romanize import fold_lookalikes, romanize, transliterate

MIXED = st.text(st.sampled_from("aejčß ёжшјљаеορηცსաेनिマン가각中語٣ีة.,-\u0301\u094d"), max_size=30)
EUROPEAN = st.text(st.sampled_from("abcй ёжщїґάϊςωΣЯé.,-«1\u0301漢"), max_size=40)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("држaвe", "државе"),  # Latin a, e
        ("Mocквa и Pига", "Москва и Рига"),
        ("раураl", "paypal"),  # the l is Latin for certain
        ("Αθήvα", "Αθήνα"),
        ("స౦వత్సర౦ ౨౦౦౫, ౦", "సంవత్సరం ౨౦౦౫, ౦"),  # a zero behind a letter is a nasal
        ("jе", "je"),  # letters of both scripts, as many of each: the first
        ("Windows-система iPhoneом", "Windows-система iPhoneом"),  # letters of two scripts for certain
        ("plain, мир, élan", "plain, мир, élan"),
    ],
)
def test_lookalikes_join_the_script_of_their_word(text, folded):
    assert fold_lookalikes(text) == folded


@pytest.mark.parametrize(
    ("text", "latin"),
    [
        ("Ливингстон, Джонсон", "livingston, jonson"),
        ("Његош и Ђорђе", "njegosh и đorđe"),
        ("Njegoš", "Njegosh"),  # Serbian is alike in both scripts
        ("қазақстан", "qazaqstan"),
        ("Αθήνα των", "athīna των"),
        ("ლივინგსტონი", "livingstoni"),
        ("Լիվինգսթոն Երևան", "livingston erevan"),
        ("लिविंगस्टन भारत में", "लिविंगस्टन भारत में"),
        ("オバマ シャープ ファミリー です", "obama shapu famiri です"),
        ("오바마는 리빙스턴", "obamanŭn ribingsŭtŏn"),
        ("發展 経済", "发展 经济"),
        ("١٢٣ २०२० ๓", "123 2020 3"),
        ("كِتاب أحمد آب", "کتاب احمد اب"),
        ("کتاب علی", "کتاب علي"),
        ("שָׁלוֹם", "שלום"),
        ("Livingston és Łódź", "Livingston és Łódź"),
    ],
)
def test_words_by_script(text, latin):
    assert romanize(text) == latin


@given(MIXED)
def test_words_are_read_alone(text):
    for change in (romanize, transliterate):
        assert change(text).split(" ") == [change(word) for word in text.split(" ")]


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


@given(EUROPEAN)
def test_no_long_word_is_left_and_latin_ones_stay(text):
    latin = transliterate(text)
    assert not re.search("[\u0370-\u03ff\u0400-\u052f]{4}", latin)
    assert transliterate(latin) == latin
