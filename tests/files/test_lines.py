"""Corpora: lines and digests."""

import gzip
import hashlib
import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.files.source import Source, iter_lines, line_digest

from .helpers import PACK


def read_lines(path, errors="strict"):
    return list(Source(str(path), errors).lines())


def put(folder, data, name="corpus.fr"):
    path = folder / name
    path.write_bytes(PACK[path.suffix if path.suffix in PACK else ""](data))
    return path


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\r\n", [""]),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n".encode(), ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"]),
        (b"a\0b\n\0\n", ["a\0b", "\0"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b" a \t\n", [" a \t"]),
    ],
)
def test_a_line_ends_at_a_line_feed_and_nowhere_else(tmp_path, data, lines):
    assert read_lines(put(tmp_path, data)) == lines


text_lines = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")))


@given(
    lines=text_lines,
    final_newline=st.booleans(),
    suffix=st.sampled_from(list(PACK)),
    block=st.integers(1, 40),
)
def test_any_unicode_survives_any_compression_and_any_block_size(
    tmp_path_factory, lines, final_newline, suffix, block
):
    data = "\n".join(lines) + ("\n" if final_newline and lines else "")
    expected = [line.removesuffix("\r") for line in lines]
    if lines and not final_newline and lines[-1] == "":
        expected.pop()  # nothing after the last newline is no line
    if expected:
        expected[0] = data.removeprefix("\ufeff").split("\n")[0].removesuffix("\r")
    if data == "\ufeff" or data == "":
        expected = []
    path = put(tmp_path_factory.mktemp("text"), data.encode(), f"corpus.fr{suffix}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitextmine.files.source.BLOCK_BYTES", block)
        patch.setattr("bitextmine.files.unpacking.PACKED_BYTES", block)
        patch.setattr("bitextmine.files.unpacking.ZSTD_BYTES", -(-block // 2))
        patch.setattr("bitextmine.files.unpacking.UNPACKED_BYTES", -(-block // 3))
        assert read_lines(path) == expected
        assert read_lines(path, errors="replace") == expected


def test_a_line_of_several_megabytes_takes_no_quadratic_time(tmp_path, monkeypatch):
    """Read in blocks of 64 bytes, which would mean to copy 3 terabytes if each were added to what is there."""
    monkeypatch.setattr("bitextmine.files.source.BLOCK_BYTES", 64)
    path = put(tmp_path, b"a\n" + b"x" * 20_000_000 + b"\nb\n")
    assert [len(line) for line in Source(str(path), max_line=1 << 30).lines()] == [1, 20_000_000, 1]


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"\xff", 1, 1),
        (b"a\nb\xe9\n", 2, 2),
        (b"a\n\nabc\xc3\n", 3, 4),  # cut short by the newline
        (b"a\nb\xc3", 2, 2),  # cut short by the end
        (b"ok\n" * 300_000 + b"ab\x80", 300_001, 3),
        (b"ok\n\xed\xa0\x80\n", 2, 1),  # a surrogate
    ],
)
def test_invalid_utf8_names_line_and_byte(tmp_path, data, line, column):
    words = rf"corpus\.fr\.gz: line {line}: .* at byte {column} .*--errors replace"
    with pytest.raises(BitextmineError, match=words):
        list(iter_lines(put(tmp_path, data, "corpus.fr.gz")))


@given(data=st.binary(), block=st.integers(1, 20))
def test_replacing_invalid_bytes_keeps_the_number_of_lines(tmp_path_factory, data, block):
    path = put(tmp_path_factory.mktemp("text"), data)
    body = data.removeprefix(b"\xef\xbb\xbf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bitextmine.files.source.BLOCK_BYTES", block)
        lines = read_lines(path, errors="replace")
    assert len(lines) == body.count(b"\n") + (not body.endswith(b"\n") and body != b"")


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (gzip.compress(b"a\n", mtime=0), "gzip"),
        (lzma.compress(b"a\n"), "xz"),
        (zstandard.ZstdCompressor().compress(b"a\n"), "zstd"),
        ("abc\n".encode("utf-16"), "UTF-16"),
        (b"\x93NUMPY\x01\x00", "NumPy"),
    ],
)
def test_what_is_no_text_is_named(tmp_path, data, hint):
    with pytest.raises(BitextmineError, match=rf"line 1: .*{hint}"):
        read_lines(put(tmp_path, data))


@pytest.mark.parametrize("suffix", list(PACK))
def test_the_digest_is_of_the_lines_and_not_of_the_file(tmp_path, suffix):
    expected = hashlib.sha256("é\nb\n".encode()).hexdigest()
    for data in ("é\nb\n", "é\nb", "é\r\nb\r\n", "\ufeffé\nb\n"):
        assert line_digest(iter_lines(put(tmp_path, data.encode(), f"corpus.fr{suffix}"))) == expected
