"""`bitextmine split`."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pytest
import zstandard

from .helpers import Here

TEXT = """Mr. Reed came at noon. Nobody was
there to open the door!

He went home.
"""
SENTENCES = "Mr. Reed came at noon.\nNobody was there to open the door!\nHe went home.\n"
PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
def bm(bitextmine, tmp_path):
    """The installed command in the test's folder; splitting needs no model."""
    return Here(bitextmine, tmp_path, {})


@pytest.mark.parametrize("suffix", PACK)
def test_one_file_to_standard_output(bm, tmp_path, suffix):
    (tmp_path / f"book.en.txt{suffix}").write_bytes(PACK[suffix](TEXT.encode()))
    result = bm("split", f"book.en.txt{suffix}")
    assert result.out == SENTENCES
    assert "1 document, 2 paragraphs, 3 sentences" in result.err


def test_standard_input_needs_a_language(bm):
    assert bm("split", "-", "--lang", "en", stdin=TEXT.encode()).out == SENTENCES
    assert "--lang" in bm.fails("split", "-", stdin=TEXT.encode())


def test_corpora_and_their_origins(bm, tmp_path):
    (tmp_path / "site" / "deep").mkdir(parents=True)
    (tmp_path / "site" / "a.en.txt").write_text(TEXT)
    (tmp_path / "site" / "deep" / "b.fr.txt").write_text("M. Petit est là. Il dort.")
    (tmp_path / "site" / "c.en.txt").write_text("  \n\n")
    (tmp_path / "site" / ".hidden").write_bytes(b"\x00")
    err = bm("split", "site", "-o", "corpus.{lang}").err
    assert (tmp_path / "corpus.en").read_text() == SENTENCES
    assert (tmp_path / "corpus.fr").read_text() == "M. Petit est là.\nIl dort.\n"
    origins = [line.split("\t") for line in (tmp_path / "corpus.en.origin.tsv").read_text().splitlines()]
    assert origins == [["a.en.txt", "", *place] for place in ("11", "12", "21")]
    assert (tmp_path / "corpus.fr.origin.tsv").read_text() == "deep/b.fr.txt\t\t1\t1\ndeep/b.fr.txt\t\t1\t2\n"
    assert "2 documents, 3 paragraphs, 5 sentences (en 3, fr 2); 1 document without text" in err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("corpus")) == [
        "corpus.en",
        "corpus.en.origin.tsv",
        "corpus.fr",
        "corpus.fr.origin.tsv",
    ]


def test_ids_paragraphs_and_compressed_output(bm, tmp_path):
    (tmp_path / "book.en").write_text(TEXT)
    rows = [line.split("\t") for line in bm("split", "book.en", "--ids").out.splitlines()]
    assert rows[1] == ["book.en", "", "1", "2", "Nobody was there to open the door!"]
    bm("split", "book.en", "--join", "paragraph", "-o", "out.{lang}.gz")
    lines = gzip.decompress((tmp_path / "out.en.gz").read_bytes()).decode().splitlines()
    assert lines == ["Mr. Reed came at noon. Nobody was there to open the door!", "He went home."]
    assert (tmp_path / "out.en.origin.tsv").read_text() == "book.en\t\t1\t1\nbook.en\t\t2\t1\n"


def test_by_language(bm, tmp_path):
    documents = {
        "a": "The weather was cold this morning, and the children stayed in the house.",
        "b": "Das Wetter war heute Morgen kalt, und die Kinder blieben im Haus.",
        "c": "El tiempo era frío esta mañana y los niños se quedaron en la casa.",
        "d": "12 34 56",
    }
    (tmp_path / "mixed").mkdir()
    for name, text in documents.items():
        (tmp_path / "mixed" / name).write_text(text)
    bm("split", "mixed", "--by-language", "-o", "all.{lang}")
    found = {path.suffix[1:]: path.read_text().strip() for path in tmp_path.glob("all.??")}
    assert found == {"en": documents["a"], "de": documents["b"], "es": documents["c"]}
    err = bm("split", "mixed", "--by-language", "--lang", "de", "-o", "some.{lang}").err
    assert [path.name for path in tmp_path.glob("some.??")] == ["some.de"] and "3 documents in other" in err
    assert "-o corpus.{lang}" in bm("split", "mixed", "--by-language", code=2).err


def test_normalisation_is_counted_and_can_be_left_out(bm, tmp_path):
    (tmp_path / "page.en").write_text("<p>Fish &amp; chips.\u200b</p>\n\nItâ€™s  fine.\n")
    result = bm("split", "page.en")
    assert result.out == "Fish & chips.\nIt’s fine.\n"
    for step in (
        "tags and entities 1",
        "mojibake 1",
        "control and zero-width characters 1",
        "runs of spaces 2",
    ):
        assert step in result.err
    assert bm("split", "page.en", "--no-normalize").out == "<p>Fish &amp; chips.\u200b</p>\nItâ€™s  fine.\n"


# --- bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.en.txt", b"PK\x03\x04word/document.xml", "pandoc"),
        ("a.en.txt", b"%PDF-1.7\n", "pdftotext"),
        ("a.en.txt", b"{\\rtf1 x", "pandoc"),
        ("a.en.txt", b'<?xml version="1.0"?>\n<xliff version="1.2">', "xliff2po"),
        ("a.en.txt", b"text\0\0\0", "zero bytes"),
        ("a.en.txt", "Ça va".encode("latin-1"), "invalid UTF-8"),
        ("a.en.txt", gzip.compress(b"text"), "name it .gz"),
        ("a.en.txt.gz", gzip.compress(b"text")[:-9], "truncated"),
        ("a.en.txt.gz", gzip.compress(b"x" * (1 << 25)), "longer than"),
        ("a.en.txt", None, "no such file"),
    ],
)
def test_what_is_no_text_is_named(bm, tmp_path, name, content, advice):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    message = bm.fails("split", name)
    assert name in message and advice in message
    assert bm("split", name, "-o", "out.{lang}", code=1).out == ""
    assert not list(tmp_path.glob("out*"))


def test_a_folder_goes_on_without_its_bad_files(bm, tmp_path):
    (tmp_path / "site").mkdir()
    for name, content in (("a.en.txt", TEXT.encode()), ("b.pdf", b"%PDF-1.7"), ("c.docx", b"PK\x03\x04")):
        (tmp_path / "site" / name).write_bytes(content)
    result = bm("split", "site", "--lang", "en")
    assert result.out == SENTENCES
    assert "pdftotext" in result.err and "pandoc" in result.err and "b.pdf" in result.err
    (tmp_path / "site" / "a.en.txt").unlink()
    assert "b.pdf" in bm.fails("split", "site", "--lang", "en")


def test_contradictions_are_usage_errors(bm, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.en").write_text(TEXT)
    (tmp_path / "b.en").write_text(TEXT)
    assert "--by-language" in bm("split", "b.en", "--lang", "en", "--lang", "fr", code=2).err
    assert "inside the folder" in bm("split", "site", "-o", "site/out.{lang}", code=2).err
    assert "the input itself" in bm("split", "b.en", "-o", "b.en", code=2).err
    (tmp_path / "empty").mkdir()
    assert "no files" in bm.fails("split", "empty")


def test_python_gives_what_the_command_gives(bm, tmp_path):
    import bitextmine

    (tmp_path / "book.en.txt").write_text(TEXT)
    found = list(bitextmine.split(tmp_path / "book.en.txt"))
    assert "".join(f"{one.text}\n" for one in found) == SENTENCES
    assert (found[1].document, found[1].paragraph, found[1].sentence) == (str(tmp_path / "book.en.txt"), 1, 2)
    assert json.dumps([one.lang for one in found]) == '["en", "en", "en"]'
