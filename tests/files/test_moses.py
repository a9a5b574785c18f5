"""Corpora of two files, as Moses has them: every command that takes pairs reads and writes them."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.formats.table import open_pairs, open_table
from bitextmine.files.source import TwoFiles

SIDES = {
    "en": ["The museum is free on Sundays.", "Restart the server first.", "Room 12 is free.", "A tab\tin it"],
    "de": [
        "Das Museum ist sonntags kostenlos.",
        "Sie mag schwarze Katzen sehr.",
        "Zimmer 12 ist frei.",
        "Ein Tab\tdarin",
    ],
}


@pytest.fixture
def corpus(tmp_path):
    for lang, lines in SIDES.items():
        (tmp_path / f"a.{lang}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def test_two_files_through_score_and_filter(bitextmine, corpus):
    scored = bitextmine("score", "a.en", "a.de", cwd=corpus).out
    header, *rows = scored.splitlines()
    assert header.split("\t")[:2] == ["en", "de"]
    assert len(rows) == 4 and rows[3].startswith("A tab in it\tEin Tab darin\t")
    kept = ("filter", "-", "--preset", "none", "--min", "cosine=0.3", "-o", "clean.{lang}.gz")
    bitextmine(*kept, cwd=corpus, stdin=scored.encode())
    for lang, lines in SIDES.items():
        with gzip.open(corpus / f"clean.{lang}.gz", "rt", encoding="utf-8") as file:
            assert file.read().splitlines() == [lines[0], lines[2], lines[3].replace("\t", " ")]


def test_align_and_mine_write_two_files(bitextmine, corpus):
    mine = "mine --src en --tgt de --name a --threshold none -o out.{lang}"
    for command in ("align a.en a.de -o out.{lang}", mine):
        bitextmine(*command.split(), cwd=corpus)
        sides = [(corpus / f"out.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de")]
        assert (SIDES["en"][0], SIDES["de"][0]) in zip(*sides, strict=True)


def test_mistakes(bitextmine, corpus):
    (corpus / "short.de").write_text("nur eine\n")
    assert "a.en has 4 lines, but short.de has 1" in bitextmine.fails("score", "a.en", "short.de", cwd=corpus)
    said = bitextmine("filter", "a.en", "a.de", "-o", "a.{lang}", cwd=corpus, code=2).err
    assert "the input itself" in said
    (corpus / "b.tsv").write_text("a\tb\n")  # neither output has its name
    bitextmine(
        "filter", "b.tsv", "--src", "en", "--tgt", "de", "-o", "b.{lang}", "--preset", "none", cwd=corpus
    )
    assert (corpus / "b.en").read_text() == "a\n" and (corpus / "b.tsv").exists()
    said = bitextmine("filter", "-", "-o", "a.{lang}", cwd=corpus, stdin=b"a\tb\n", code=2).err
    assert "--src and --tgt" in said
    assert "name both files" in bitextmine("score", "a.{lang}", cwd=corpus, code=2).err
    assert "or two" in bitextmine("score", "a.en", "a.de", "a.de", cwd=corpus, code=2).err
    said = bitextmine("score", "a.en", "a.de", "-o", "b.de", cwd=corpus, code=2).err
    assert "'.de' is none of these; write NAME.{lang} for two files" in said


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6))
def test_any_text_goes_round(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("moses")
    pairs = [(one_cell(src), one_cell(tgt)) for src, tgt in pairs]
    for side, lang in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"a.{lang}").write_bytes(text.encode())
    table = open_table(TwoFiles.join(f"{folder}/a.en", f"{folder}/a.de"))
    with open_pairs(folder / "b.{lang}", table.outline(langs=table.langs())) as out:
        for block in table.blocks():
            out.write(block, None, ())
    for lang in ("en", "de"):
        before, after = ((folder / f"{name}.{lang}").read_bytes() for name in "ab")
        assert after == before.removeprefix(b"\xef\xbb\xbf")
