import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.mining.dedup import Dedup, line_key, unique_lines

words = st.text(st.sampled_from("aA\u00e9e\u0301 \t\u00a0\u200b.1"), max_size=5)


@pytest.mark.parametrize("level", Dedup)
@given(st.lists(words, max_size=12))
def test_rows_and_lines_are_inverse(level, lines):
    unique = unique_lines(iter(lines), level)
    keys = [line_key(line, level) for line in lines]
    expected: dict[object, int] = {}
    for i, key in enumerate(keys):
        if key:
            expected.setdefault((i, key) if level == "none" else key, i)
    assert unique.rows.tolist() == list(expected.values())
    for i, (key, row) in enumerate(zip(keys, unique.line_to_row.tolist(), strict=True)):
        assert (row < 0) == (not key)
        if key:
            assert keys[unique.rows[row]] == key
            assert unique.rows[row] <= i
    assert len(lines) == unique.lines == unique.empty + unique.repeated + len(unique.rows)


def test_exact_is_unicode_form_and_white_space():
    assert line_key(" caf\u00e9\t au  lait\u00a0") == line_key("cafe\u0301 au lait") == "caf\u00e9 au lait"
    assert line_key("Hello.") != line_key("hello.") != line_key("hello")


def test_near_ignores_case_numbers_and_punctuation():
    same = [
        "Article 12, paragraph 3.",
        "article 7 paragraph 45",
        "ARTICLE 1 - PARAGRAPH 2!",
        "\uff21rticle 1 paragraph 1",
    ]
    assert len({line_key(line, "near") for line in same}) == 1
    assert line_key("Article A", "near") != line_key("Article B", "near")
    assert line_key("STRASSE", "near") == line_key("straße", "near")


@pytest.mark.parametrize("blank", ["", " ", "\t\u3000", "\u200b", " \ufeff ", "\u2028", "\x1f", "\0", "\r"])
@pytest.mark.parametrize("level", Dedup)
def test_blank_lines_have_no_key(blank, level):
    assert line_key(blank, level) == ""


def test_lone_surrogates_do_not_stop_it():
    assert unique_lines(["\udc80", "\udc80", "a"]).rows.tolist() == [0, 2]
