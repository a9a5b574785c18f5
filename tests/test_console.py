from __future__ import annotations

from bitextmine.console import aligned, tab_separated


def test_numbers_to_the_right_words_to_the_left_no_trailing_blanks():
    table = aligned(["name", "n", "share"], [["a", "1", "0.50 [0.1]"], ["long name", "1,000", "-"]])
    assert table.splitlines() == [
        "name           n       share",
        "a              1  0.50 [0.1]",
        "long name  1,000           -",
    ]
    assert aligned(["only", "head"], []) == "only  head"


def test_tabs():
    assert tab_separated(["a", "b"], [["1", "2"]]) == "a\tb\n1\t2"
