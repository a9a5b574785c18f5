"""Tables and progress bars."""

from bitextmine.console import aligned, progress


def test_numbers_to_the_right_words_to_the_left_no_trailing_blanks():
    table = aligned(["name", "n", "share"], [["a", "1", "0.50 [0.1]"], ["long name", "1,000", "-"]])
    assert table.splitlines() == [
        "name           n       share",
        "a              1  0.50 [0.1]",
        "long name  1,000           -",
    ]
    assert aligned(["only", "head"], []) == "only  head"


def test_progress_is_silent_where_nobody_looks(capfd):
    with progress(10, "embed", "lines") as bar:
        bar.update(10)
    assert capfd.readouterr() == ("", "")
