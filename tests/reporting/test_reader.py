"""Finding the columns of a file of pairs, and reading its rows."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
import zstandard

from bitextmine.errors import BitextmineError
from bitextmine.files.layout import Columns
from bitextmine.reporting.reader import PairReader


def read(path, columns=None):
    file = PairReader(path, columns or Columns())
    rows = []
    for block in file.blocks():
        scores = [None if np.isnan(s) else s for s in block.score]
        rows += zip(block.row, scores, block.src, block.tgt, strict=True)
    return file, rows


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("1.5\ta\tb", Columns()),
        ("a\tb\t1.5", Columns()),
        ("1.5\t7\t9\ta\tb", Columns()),
        ("x\tb\tx\ta\t1.5", Columns("5", "4", "2")),
        ("b\ta\t1.5", Columns(src="2", tgt="1")),
    ],
)
def test_the_usual_shapes(tmp_path, line, columns):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{line}\n" * 3)
    assert read(path, columns)[1] == [(n, 1.5, "a", "b") for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("tgt\tscore\tsrc", Columns()),
        ("Target\tMargin\tSource", Columns()),
        ("T\tcos\tS", Columns("cos", "S", "T")),
        ("T\tcos\tS", Columns("2", "3", "1", header=True)),
    ],
)
def test_headers(tmp_path, header, columns):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{header}\nb\t1.5\ta\n")
    file, rows = read(path, columns)
    assert rows == [(2, 1.5, "a", "b")]
    assert file.layout is not None
    assert file.layout.names == tuple(header.split("\t"))


def test_a_header_of_languages(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("score\ten\tfr\n1.5\ta\tb\n")
    file, rows = read(path)
    assert rows == [(2, 1.5, "a", "b")]
    assert file.layout is not None
    assert (file.layout.src_lang, file.layout.tgt_lang) == ("en", "fr")


def test_a_sentence_is_no_header(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("score\tnote\nen\tfr\n")
    assert [row[2:] for row in read(path)[1]] == [("score", "note"), ("en", "fr")]
    path.write_text("score\ttarget\nx\ty\n")
    assert len(read(path, Columns(header=False))[1]) == 2


def test_pairs_without_scores(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\n")
    file, rows = read(path)
    assert rows == [(1, None, "a", "b")]
    assert file.odd_scores == {}


def test_scores_that_are_none_are_counted_by_kind(tmp_path):
    path = tmp_path / "pairs.tsv"
    cells = ["1", "", "nan", "NaN", "inf", "-inf", "abc", "None", "-1e3"]
    path.write_text("".join(f"{cell}\ta\tb\n" for cell in cells))
    file, rows = read(path)
    assert [row[1] for row in rows] == [1, *[None] * 7, -1000]
    assert file.odd_scores == {"missing": (2, 2), "NaN": (2, 3), "infinite": (2, 5), "not a number": (1, 7)}


def test_short_and_wide_lines_are_counted(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("1\ta\tb\n\n1\ta\n1\ta\tb\tc\n1\ta\tb\n")
    file, rows = read(path)
    assert [row[0] for row in rows] == [1, 4, 5]
    assert (file.short, file.wide, file.lines) == ((2, 2), (1, 4), 5)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("gz", gzip.compress),
        ("xz", lzma.compress),
        ("zst", zstandard.ZstdCompressor().compress),
        ("tsv", bytes),
    ],
)
def test_compression_changes_nothing(tmp_path, suffix, compress):
    plain = "".join(f"{i / 7}\tsource {i}\ttarget\u2028 {i}\r\n" for i in range(20_000)).encode()
    path = tmp_path / f"pairs.{suffix}"
    path.write_bytes(compress(plain))
    file, rows = read(path)
    assert len(rows) == 20_000
    assert rows[-1] == (20_000, 19_999 / 7, "source 19999", "target\u2028 19999")
    (tmp_path / "plain").write_bytes(plain)
    assert file.digest == read(tmp_path / "plain")[0].digest


def test_an_empty_file_has_no_rows(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.touch()
    file, rows = read(path)
    assert (rows, file.layout, file.lines) == ([], None, 0)


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("only one column\n", Columns(), ["line 1", "--scol", "1 column"]),
        ("a\tb\tc\td\n", Columns(), ["line 1", "--scol", "4 column"]),
        ("a\tb\n", Columns(src="text"), ["no column is called 'text'", "a, b"]),
        ("a\tb\n", Columns(src="text", header=False), ["'text'", "no header"]),
        ("a\tb\n", Columns(src="0"), ["columns count from 1"]),
        ("a\tb\n", Columns(src="2", tgt="2"), ["same column, 2"]),
        ("a\tb\n", Columns(src="1", tgt="9"), ["no line has"]),
    ],
)
def test_columns_that_are_not_there(tmp_path, text, columns, words):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(BitextmineError) as caught:
        read(path, columns)
    for word in [*words, "pairs.tsv"]:
        assert word in str(caught.value)
