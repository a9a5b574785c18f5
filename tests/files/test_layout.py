"""Which column is which: what the user said, else the header, else the shape of the first rows."""

import pytest

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.layout import Columns, find_layout


def rows(text):
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a\tb", {"src": 0, "tgt": 1}),
        ("12\t13", {"src": 0, "tgt": 1}),
        ("a\tb\t1.5", {"src": 0, "tgt": 1, "score": 2}),
        ("1.5\ta\tb", {"score": 0, "src": 1, "tgt": 2}),
        ("1.5\t7\t9\ta\tb", {"score": 0, "src_line": 1, "tgt_line": 2, "src": 3, "tgt": 4}),
        # the same, scored without a header
        ("a\tb\t0.7\t1.5\tinf", {"src": 0, "tgt": 1}),
        ("1.5\ta\tb\t0.7\t1.5", {"score": 0, "src": 1, "tgt": 2}),
        ("1.5\t7\t9\ta\tb\t0.7\t1", {"score": 0, "src_line": 1, "tgt_line": 2, "src": 3, "tgt": 4}),
        # a bad row among good ones, empty scores of rows that are no pairs
        ("1.5\ta\tb\n1.4\tc\td\n1.3\te\tf\n1.2\tg\th\nx\ti\tj", {"score": 0, "src": 1, "tgt": 2}),
        ("a\tb\t0.7\t\n\xff\tb\t\t", {"src": 0, "tgt": 1}),
    ],
)
def test_shapes(text, places):
    layout = find_layout(rows(text))
    assert layout.places == places
    assert layout.names == ()


@pytest.mark.parametrize("text", ["a", "", "a\tb\tc", "a\tb\tc\td", "url\turl\ta\tb\t0.5", "1.5\ta\tb\tc"])
def test_what_cannot_be_told_is_not_guessed(text):
    layout = find_layout(rows(text) or [[""]], None, "x.tsv")
    for side in ("src", "tgt"):
        with pytest.raises(BitextmineError, match=r"x\.tsv: line 1: cannot tell .*--scol and --tcol"):
            getattr(layout, side)


@pytest.mark.parametrize(
    ("header", "places"),
    [
        ("src\ttgt", {"src": 0, "tgt": 1}),
        ("id\tTarget\tsource", {"src": 2, "tgt": 1}),
        (
            "score\tsrc_line\ttgt_line\tsrc\ttgt\tmargin",
            {"score": 0, "src_line": 1, "tgt_line": 2, "src": 3, "tgt": 4},
        ),
        ("src\ttgt\tcosine\tmargin\tquality", {"src": 0, "tgt": 1, "score": 3}),
        ("score\ten\tfr", {"score": 0, "src": 1, "tgt": 2}),
    ],
)
def test_headers(header, places):
    width = header.count("\t") + 1
    layout = find_layout([header.split("\t"), ["1"] * width])
    assert layout.places == places
    assert layout.names == tuple(header.split("\t"))
    assert layout.column_names(("x",)) == layout.names
    assert not find_layout([header.split("\t")] * 3, Columns(header=False)).names


@pytest.mark.parametrize(
    ("header", "first"),
    [
        ("en\tfr", 0),
        ("en\tfr\tnumbers\tkey", 0),
        ("en\txa\tlength_ratio", 0),
        ("id\ten\tde", 1),
        ("id\ten", 0),
    ],
)
def test_a_header_names_two_languages(header, first):
    """They come before the columns of `score`; a column "id" before them is not Indonesian."""
    names = header.split("\t")
    found = find_layout([names, ["1"] * len(names)])
    assert (found.src, found.tgt) == (first, first + 1)
    assert [found.src_lang, found.tgt_lang] == names[first : first + 2]


def test_unknown_languages_are_names_where_a_header_is_said_to_be():
    head = rows("xa\txb\na\tb\n")
    assert find_layout(head).names == ()
    said = find_layout(head, Columns(header=True))
    assert (said.names, said.src_lang, said.tgt_lang) == (("xa", "xb"), "xa", "xb")


@pytest.mark.parametrize("row", ["no\tno", "en\tfr\t0.5", "en\tfr\tTwo words", "a\ten\tfr", "en\tfr\tde"])
def test_other_lines_with_codes_are_no_header(row):
    assert not find_layout([row.split("\t")] * 2).names


def test_names_where_there_is_no_header():
    mined = find_layout(rows("1.5\t7\t9\ta\tb"))
    assert mined.column_names() == ("score", "src_line", "tgt_line", "src", "tgt")
    other = find_layout(rows("u\ta\tx\tb"), Columns(src="2", tgt="4"))
    assert other.column_names() == ("column_1", "src", "column_3", "tgt")
    scored = find_layout(rows("a\tb\tkey\t0.5"), Columns(last=("key", "value")))
    assert scored.column_names(("key", "quality")) == ("src", "tgt", "key", "quality")


def test_the_width_is_that_of_most_rows():
    head = rows("a\tb\tc\td\te\n" + "a\tb\n" * 3 + "one cell\n" * 9)
    assert find_layout(head).width == 2
    assert find_layout(head, Columns(src="4", tgt="5")).width == 5, "the others do not have column 5"
    assert find_layout(rows("one\none\na\tb\n")).width == 2


def test_what_the_user_says_comes_first():
    head = rows("1.5\ta\tb\n1.4\tc\td\n")
    assert find_layout(head, Columns(src="3", tgt="2")).places == {"score": 0, "src": 2, "tgt": 1}
    assert find_layout(head, Columns(src="1", tgt="2")).score is None
    named = find_layout(rows("x\ty\n1\t2"), Columns(src="y", tgt="x"))
    assert (named.src, named.tgt, named.names) == (1, 0, ("x", "y"))


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        (Columns(src="1", tgt="9"), BitextmineError, "there is no column 9 "),
        (Columns(score="9" * 5000), BitextmineError, "there is no column 9999999999 "),
        (Columns(src="0"), BitextmineError, "--scol 0: columns count from 1"),
        (Columns(src="en"), BitextmineError, "no column is called 'en'; there are a, b"),
        (Columns(src="en", header=False), UsageError, "'en' is asked for by name"),
        (Columns(tgt="3", header=True), BitextmineError, "no column 3 (--tcol): the header names 2: a, b"),
        (Columns(src="2", tgt="2"), BitextmineError, "the same column, 2"),
    ],
)
def test_columns_that_are_not_there(columns, error, words):
    with pytest.raises(error) as caught:
        find_layout(rows("a\tb\nc\td"), columns, "x.tsv")
    assert words in str(caught.value)
    assert str(caught.value).startswith("x.tsv: ")


@pytest.mark.parametrize("asked", [("fr", "en"), ("fra", ""), ("", "en-US")])
def test_stated_languages_choose_the_columns_that_a_file_names(asked):
    found = find_layout(rows("en\tfr\na\tb"), Columns(langs=asked))
    assert (found.src, found.tgt, found.src_lang, found.tgt_lang) == (1, 0, "fr", "en")
    same = find_layout(rows("en\tfr\na\tb"), Columns(src="fr", tgt="en", langs=asked))
    assert (same.src_lang, same.tgt_lang) == ("fr", "en"), "languages follow columns that are named"
    with pytest.raises(BitextmineError, match="its languages are en, fr, not de and es"):
        find_layout(rows("en\tfr\na\tb"), Columns(langs=("de", "es")))
