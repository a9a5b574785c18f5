"""Normalisation in pieces: the same as that of the whole text, in linear time."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.languages import clean as normalize
from bitextmine.languages.clean import normal_pieces
from bitextmine.mining.dedup import line_key

FORMS = ("NFC", "NFD", "NFKC", "NFKD")

# What makes normal forms hard: marks of several orders, jamo, marks that join a letter from behind, halfwidth marks,
# ligatures that become many characters, and some that are ordinary.
HARD = "aé1 _\n\u0301\u0316\u0327\u0344\u034f\u0f73\u0f75\u09c7\u09be\u1100\u1161\u11a8가\uff76\uff9e\uff9f\ufdfaﬁ²"
texts = st.text(st.one_of(st.sampled_from(HARD), st.characters(exclude_categories=["Cs"])), max_size=80)


def normal(form, text):
    return "".join(unicodedata.normalize(form, piece) for piece in normal_pieces(text))


@given(text=texts, piece=st.integers(1, 8))
def test_normalising_the_pieces_is_normalising_the_whole(text, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalize, "_SHORT", 0)
        patch.setattr(normalize, "_PIECE", piece)
        patch.setattr(normalize, "_MOST_MARKS", 1000)
        for form in FORMS:
            assert normal(form, text) == unicodedata.normalize(form, text)


def test_every_character_may_stand_behind_every_kind_of_other():
    """Every character but ideographs, behind one that takes part in a kind of composition, with a cut allowed there."""
    before = "a", "\u1100", "가", "\u09c7", "\uff76", "e\u0316", "\u0928", "\u1133\u1173"
    for code in [
        *range(0x80, 0x3400),
        *range(0xA000, 0xB000),
        *range(0xD7A0, 0xD800),
        *range(0xE000, 0x1F200),
    ]:
        c = chr(code)
        if normalize._stands_alone(c):
            for left in before:
                for form in ("NFC", "NFKC"):
                    apart = unicodedata.normalize(form, left) + unicodedata.normalize(form, c)
                    assert apart == unicodedata.normalize(form, left + c), hex(code)


def test_no_character_of_a_composition_s_second_half_stands_alone():
    seconds = [
        chr(int(parts[1], 16))
        for code in range(0x110000)
        if len(parts := unicodedata.decomposition(chr(code)).split()) == 2 and "<" not in parts[0]
    ]
    assert len(seconds) > 800
    assert not any(map(normalize._stands_alone, seconds))


def test_more_marks_than_any_letter_has_are_cut_in_long_texts_only():
    marks = "\u0301\u0316" * 40
    assert list(normal_pieces("a" + marks)) == ["a" + marks]
    text = "".join(normal_pieces("é" * 1000 + marks))
    assert text.count("\u034f") == 2
    assert text.replace("\u034f", "") == "é" * 1000 + marks
    thirty = "é" * 1000 + "\u0301\u0316" * 15
    assert "".join(normal_pieces(thirty)) == thirty


@given(texts)
def test_a_line_s_key_is_the_same_in_pieces(text):
    text = text.replace("\n", "")
    expected = {level: line_key(text, level) for level in ("exact", "near")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalize, "_SHORT", 0)
        patch.setattr(normalize, "_PIECE", 3)
        patch.setattr(normalize, "_MOST_MARKS", 1000)
        assert {level: line_key(text, level) for level in expected} == expected


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


@pytest.mark.parametrize("line", ["a" + "\u0301\u0316" * 10_000, "\ufdfa" * 20_000], ids=["marks", "FDFA"])
@pytest.mark.parametrize("level", ["exact", "near"])
def test_eight_times_as_long_a_line_takes_about_eight_times_as_long(line, level):
    """In processor time; quadratic time would be 64 times as long."""
    line_key(line, level)  # what is made once
    once = min(seconds(lambda: line_key(line, level)) for _ in range(3))
    assert seconds(lambda: line_key(line * 8, level)) < 30 * once
