"""Files of pairs in every form: what is written comes back, whatever the text holds; what is none is refused."""

import json
import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import UsageError
from bitextmine.files.formats.blocks import Added, Block, Outline, one_cell
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.names import JSONL, PARQUET, TMX, TSV, format_of, output_format
from bitextmine.files.formats.table import Malformed, open_pairs, open_table
from bitextmine.files.source import Location, Source

from .helpers import pairs_in

FORMS = ["tsv", "jsonl", "tmx", "parquet"]
PACKED = [f"{form}{suffix}" for form in FORMS[:3] for suffix in ("", ".gz", ".bz2", ".xz", ".zst")]
NUMBERS: dict[str, Any] = {"floats": ("score",), "integers": ("src_line",)}
NAMES = ("score", "src_line", "src", "tgt")
OUTLINE = Outline(NAMES, src=2, tgt=3, langs=("en", "fr"), header=True, **NUMBERS)


def put(path, pairs):
    rows = [[1.5 + at, at + 1, src, tgt] for at, (src, tgt) in enumerate(pairs)]
    with open_pairs(path, OUTLINE) as out:
        out.write(Block(OUTLINE.names, rows), None, ())
    return path


def copied(source, target, added=lambda n: [], langs=("", "")):
    """All rows of a file in another."""
    table = open_table(source)
    names = [column.name for column in added(0)]
    outline = table.outline(names, langs=table.langs(*langs), **NUMBERS)
    with open_pairs(target, outline) as out:
        for block in table.blocks():
            out.write(block, None, added(len(block)))
    return target


# Every character but for halves of surrogate pairs, and often those that some form has trouble with.
ODD = st.sampled_from(
    [*"\x00\x01\t\x0b\x0c\r\x1c\x85\u2028\ufffe\uffff\ufeff<>&\"'\\ ", "]]>", "&amp;", "\U0001f600"]
)
TEXT = st.lists(
    st.one_of(ODD, st.characters(exclude_categories=["Cs"], exclude_characters="\n")), max_size=12
).map("".join)
PAIRS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=7)


def in_xml(text):
    """As TMX keeps a text: XML 1.0 has no way to write some characters."""
    return "".join(
        c if c in "\t\r\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "\ufffd"
        for c in one_cell(text)
    )


KEPT = {"tsv": one_cell, "jsonl": str, "tmx": in_xml, "parquet": str}


@pytest.mark.parametrize("form", FORMS)
@given(pairs=PAIRS)
def test_any_text_comes_back(tmp_path_factory, form, pairs):
    """TSV makes a space of a run of line breaks and tabs, TMX also U+FFFD of what XML cannot hold; JSON Lines and
    Parquet keep everything."""
    path = put(tmp_path_factory.mktemp("trip") / f"pairs.{form}", pairs)
    keep = KEPT[form]
    assert pairs_in(path) == [(keep(src), keep(tgt)) for src, tgt in pairs]


@pytest.mark.parametrize("name", [*PACKED, "parquet"])
def test_every_form_compressed_and_not(tmp_path, name):
    pairs = [(f"sentence {at}", f"phrase {at}") for at in range(10)]
    path = put(tmp_path / f"pairs.{name}", pairs)
    assert pairs_in(path) == pairs
    before = path.read_bytes()
    assert put(path, pairs).read_bytes() == before, "the same pairs give the same bytes"


@pytest.mark.parametrize("source", FORMS)
@pytest.mark.parametrize("target", FORMS)
def test_from_each_form_to_each(tmp_path, source, target):
    """Texts, scores and line numbers are the same, and so is a column that is added."""
    pairs = [("Tom & Jerry", "« Tom »"), ("a", "b"), ("", "c")]
    first = put(tmp_path / f"first.{source}", pairs)

    def added(n):
        return [Added("margin", np.array([0.123456, math.nan, 2.0])[:n]), Added("key", ["x", "", "z"][:n])]

    second = copied(first, tmp_path / f"second.{target}", added, ("en", "fr"))
    assert pairs_in(second) == pairs
    table = open_table(second)
    at = {name: place for place, name in enumerate(table.names)}
    assert {"score", "src_line", "margin", "key"} <= at.keys()
    (block,) = table.blocks()
    assert block.numbers(at["score"], range(3)).tolist() == [1.5, 2.5, 3.5]
    assert block.numbers(at["src_line"], range(3)).tolist() == [1, 2, 3]
    margin = block.numbers(at["margin"], range(3))
    assert margin[0] == pytest.approx(0.1235, abs=1e-4) and margin[2] == 2
    assert math.isnan(margin[1])
    assert block.texts(at["key"], range(3)) == ["x", "", "z"]


def jsonl(tmp_path, *rows):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_values_keep_their_types(tmp_path):
    row = {"translation": {"en": "a", "fr": "b"}, "id": 7, "tags": ["x", {"y": None}], "ok": True, "n": None}
    path = jsonl(tmp_path, row)
    assert json.loads(copied(path, tmp_path / "again.jsonl").read_text()) == row
    assert copied(path, tmp_path / "again.tsv").read_text() == (
        'src\ttgt\tid\ttags\tok\tn\na\tb\t7\t["x", {"y": null}]\ttrue\t\n'
    )


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"translation": {"en": "a", "fr": "b", "de": "c"}}, Columns(src="en", tgt="fr")),
        ({"translation": {"de": "c", "fr": "b", "en": "a"}}, Columns(src="3", tgt="2")),
        ({"translation": {"en": "a", "fr": "b"}}, Columns()),
        ({"translation": {"fr": "b", "en": "a"}}, Columns(src="en")),
        ({"translation": {"en": "a", "fr": "b"}}, Columns(src="src", tgt="tgt")),
        ({"src": "a", "tgt": "b", "x": "y"}, Columns()),
        ({"x": "y", "fr": "b", "en": "a"}, Columns(src="en", tgt="fr")),
    ],
)
def test_where_the_texts_are(tmp_path, row, columns):
    assert pairs_in(jsonl(tmp_path, row), columns) == [("a", "b")]


def test_rows_that_are_no_pairs_are_told(tmp_path):
    path = jsonl(
        tmp_path,
        {"translation": {"en": "a", "fr": "b"}},
        "{",
        "[1]",
        {"translation": {"en": "a"}},
        {"translation": {"en": "a", "fr": 3}},
        {"other": 1},
        "[" * 100_000,
        '{"translation": {"en": "half \\ud800", "fr": "b"}}',
    )
    with path.open("ab") as file:
        file.write(b'{"translation": {"en": "\xff", "fr": "b"}}\n\n')
    table = open_table(path)
    (block,) = table.blocks()
    bad = block.bad()
    assert list(bad) == [1, 2, 3, 4, 5, 6, 8, 9]
    reasons = "not a JSON object, no fr, fr is no text, no en, invalid UTF-8"
    assert ", ".join(bad[at] for at in (2, 3, 4, 5, 8)) == reasons
    assert block.texts(table.layout.src, [7]) == ["half \ufffd"]
    assert len(copied(path, tmp_path / "again.tsv").read_text().splitlines()) == 11, "no row is lost"
    kept = copied(path, tmp_path / "again.jsonl").read_text().splitlines()
    assert json.loads(kept[1])["translation"] == {"en": "{"}


def test_tmx_is_read_by_a_parser_and_names_the_languages(tmp_path):
    path = put(tmp_path / "pairs.tmx", [("a < b & \x01", '"c"')])
    tree = ElementTree.fromstring(path.read_bytes())
    assert (tree.tag, tree.get("version"), tree.find("header").get("srclang")) == ("tmx", "1.4", "en")
    (unit,) = tree.iter("tu")
    props = [(prop.get("type"), prop.text) for prop in unit.iter("prop")]
    assert props == [("score", "1.500000"), ("src_line", "1")]
    lang = "{http://www.w3.org/XML/1998/namespace}lang"
    texts = [(tuv.get(lang), tuv.findtext("seg")) for tuv in unit.iter("tuv")]
    assert texts == [("en", "a < b & \ufffd"), ("fr", '"c"')]


@pytest.mark.parametrize(
    ("names", "form"),
    [
        ("pairs pairs.tsv a.b/pairs.TXT.gz pairs.en-fr pairs.en-fr.gz - /dev/stdout /dev/null", TSV),
        ("pairs.jsonl.zst", JSONL),
        ("pairs.tmx.bz2", TMX),
        ("pairs.Parquet pairs.pq", PARQUET),
    ],
)
def test_a_name_tells_the_form(names, form):
    for name in names.split():
        assert output_format(Location(name)) == format_of(Source(name)) == form


def test_a_name_that_tells_nothing_is_refused_for_outputs():
    for name in ("x.docx", "x.csv", "x.json.gz", "x.tsv.zip", "x.html", "x.en-", "x.2024"):
        with pytest.raises(UsageError, match=r"--rejected x\..* written as \.tsv"):
            output_format(Location(name), "--rejected")
        assert format_of(Source(name)).name == ("csv" if name.endswith("csv") else "tsv"), (
            "any name may be read"
        )
    for find in (format_of, output_format):
        with pytest.raises(UsageError, match="already compressed"):
            find(Location("x.parquet.gz"))


@pytest.mark.parametrize("form", FORMS)
def test_no_pairs_at_all(tmp_path, form):
    path = put(tmp_path / f"none.{form}", [])
    table = open_table(path)
    assert table.empty
    assert list(table.blocks()) == []
    Malformed(table).finish()


def test_tmx_needs_two_languages(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    with pytest.raises(UsageError, match="--src and --tgt"):
        copied(tmp_path / "pairs.tsv", tmp_path / "pairs.tmx")
    assert not (tmp_path / "pairs.tmx").exists()
    assert json.loads(copied(tmp_path / "pairs.tsv", tmp_path / "pairs.jsonl").read_text()) == {
        "translation": {"src": "a", "tgt": "b"}
    }
    (tmp_path / "pairs.tsv.json").write_text('{"kind": "bitext", "signature": "src:en|tgt:fr|k:4"}')
    copied(tmp_path / "pairs.tsv", tmp_path / "pairs.tmx")
    assert open_table(tmp_path / "pairs.tmx").langs() == ("en", "fr")


def test_parquet_with_translations(bitextmine, tmp_path):
    """As the library datasets writes and reads them: structs by language, whose order it sorts."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pairs = [("A cat.", "Eine Katze."), ("A dog.", "Ein Hund."), ("Two\nlines", "Zwei\nZeilen")]
    rows = {"id": ["a", "b", "c"], "translation": [{"en": src, "de": tgt} for src, tgt in pairs]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    columns = Columns(src="en", tgt="de")
    assert open_table(tmp_path / "a.parquet", columns).langs() == ("en", "de")
    assert pairs_in(tmp_path / "a.parquet", columns) == pairs
    score = ("score", "a.parquet", "--scol", "en", "--tcol", "de", "--columns", "numbers", "-o", "out.jsonl")
    bitextmine(*score, cwd=tmp_path)
    bitextmine("filter", "out.jsonl", "--preset", "none", "-o", "kept.parquet", cwd=tmp_path)
    kept = parquet.read_table(tmp_path / "kept.parquet").to_pydict()
    assert kept == {**rows, "numbers": [1.0] * 3}
    bitextmine("filter", "out.jsonl", "--min", "numbers=2", "-o", "none.parquet", cwd=tmp_path)
    assert parquet.read_schema(tmp_path / "none.parquet").equals(
        parquet.read_schema(tmp_path / "kept.parquet")
    )
