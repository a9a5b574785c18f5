"""CSV of spreadsheets and PO of gettext as pairs; formats recognised by their first bytes."""

import csv
import gzip
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.names import CSV, JSONL, PO, TMX, TSV, XLIFF, format_of
from bitextmine.files.formats.table import open_table
from bitextmine.files.source import Source

from .helpers import pairs_in

PAIRS = [
    ('He said "yes".', 'Er sagte "ja".'),
    ("Two\nlines", "Zwei\nZeilen"),
    ("One, two; three", "Eins\t zwei"),
]
READ = [(one_cell(src), one_cell(tgt)) for src, tgt in PAIRS]


def written(path, delimiter, *, quoting=csv.QUOTE_MINIMAL, encoding="utf-8", end="\n", head=""):
    with path.open("w", newline="", encoding=encoding) as file:
        file.write(head)
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
        writer.writerows([("en", "de"), *PAIRS])
    return path


# LibreOffice quotes cells that need it; Excel has a byte order mark and CR LF, semicolons where the comma is decimal.
PROGRAMS = {
    "LibreOffice": {"delimiter": ","},
    "LibreOffice, all quoted": {"delimiter": ",", "quoting": csv.QUOTE_ALL},
    "LibreOffice, tabs": {"delimiter": "\t"},
    "Excel": {"delimiter": ",", "encoding": "utf-8-sig", "end": "\r\n"},
    "Excel, German": {"delimiter": ";", "encoding": "utf-8-sig", "end": "\r\n", "head": "sep=;\r\n"},
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.data"])
def test_cells_in_quotation_marks(tmp_path, program, name):
    if name != "a.csv" and "head" in program:
        program = {**program, "head": ""}
    path = written(tmp_path / name, **program)
    assert pairs_in(path) == READ
    assert open_table(path).langs() == ("en", "de")


@pytest.mark.parametrize("head", ["", "sep=|\n"])
def test_cells_between_bars(tmp_path, head):
    assert pairs_in(written(tmp_path / "a.csv", "|", head=head)) == READ


CELL = st.text(st.sampled_from('"\n\r\t,; aé\u2028'), min_size=1, max_size=6)


@given(pairs=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8))
def test_any_cells_come_back(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("src", "tgt"), *pairs])
    assert pairs_in(path) == [(one_cell(src), one_cell(tgt)) for src, tgt in pairs]


@pytest.mark.parametrize(
    "lines",
    [
        '"Yes."\t"Ja."\n"No."\t"Nein."\n',
        '"Yes," he said.\t„Ja“, sagte er.\n',
        '5" screen\t5" Bildschirm\n"a ""b"\tc\n',
        'a""b\tc\n"d\te\n',
    ],
)
def test_quotations_are_no_quoting(tmp_path, lines):
    """Lines for cut and paste stay as they are, byte for byte."""
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    table = open_table(tmp_path / "a.tsv")
    assert table.format is TSV
    assert [line for block in table.blocks() for line in block.lines()] == lines.encode().splitlines()


def test_a_cell_without_an_end_takes_no_rows_along(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\nc,"d\ne,f\ng,h\n')
    with pytest.raises(BitextmineError, match=r"line 2: .*quotation mark without an end"):
        pairs_in(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(b"a,b\rc,d\r")
    with pytest.raises(BitextmineError, match=r"line 1: not CSV \(a carriage return .*; convert it with tr"):
        pairs_in(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text('a,b\n"c\n"d,e"f"')
    assert pairs_in(tmp_path / "a.csv") == [("a", "b"), ("c d", 'e"f"')]
    (tmp_path / "a.csv").write_text('a,b\n"c,d\n' + "e,f\n" * 1000)
    with pytest.raises(BitextmineError, match="is there a quotation mark without an end"):
        pairs_in(Source(str(tmp_path / "a.csv"), max_line=1000))
    (tmp_path / "b.csv").write_bytes(b"a,b\n\xff,d\n")
    assert pairs_in(tmp_path / "b.csv", Columns(src="1", tgt="2")) == [("a", "b"), "invalid UTF-8"]


GETTEXT = """# German translations for hello.
# Copyright (C) 2024
#
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: hello 2.12\\n"
"PO-Revision-Date: 2024-01-01 10:00+0100\\n"
"Language: de\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#: src/hello.c:170
#, c-format
msgid "%d file is \\"open\\"\\n"
msgid_plural "%d files are open\\n"
msgstr[0] "%d Datei ist »offen«\\n"
msgstr[1] "%d Dateien sind geöffnet\\n"

#: src/hello.c:180
#, fuzzy
#| msgid "Colour"
msgid "Color"
msgstr "Farbe"

#~ msgid "Old"
#~ msgstr "Alt"
"""
POEDIT = """msgid ""
msgstr ""
"Project-Id-Version: shop\\n"
"X-Source-Language: en_GB\\n"
"Language: ja\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"
"X-Generator: Poedit 3.4\\n"

#. Verb
msgctxt "button"
msgid "Open"
msgstr "開く"

msgctxt "state"
msgid ""
"Open since "
"Monday"
msgstr ""

msgid "%d item"
msgid_plural "%d items"
msgstr[0] "%d\u2028個"
"""


def test_catalogues(tmp_path):
    (tmp_path / "a.po").write_text(GETTEXT, encoding="latin-1")
    assert pairs_in(tmp_path / "a.po") == [
        ('%d file is "open"\n', "%d Datei ist »offen«\n"),
        ("%d files are open\n", "%d Dateien sind geöffnet\n"),
        ("Color", "Farbe"),
        ("Old", "Alt"),
    ]
    table = open_table(tmp_path / "a.po")
    (block,) = table.blocks()
    assert table.names == ("src", "tgt", "context", "flags")
    assert block.texts(3, range(4)) == ["c-format", "c-format", "fuzzy", "obsolete"]
    assert table.langs("en", "de") == ("en", "de")
    (tmp_path / "b.po").write_text(POEDIT, encoding="utf-8", newline="\r\n")
    assert pairs_in(tmp_path / "b.po") == [("Open", "開く"), "no ja", ("%d items", "%d 個")]
    table = open_table(tmp_path / "b.po")
    assert table.langs() == ("en_GB", "ja")
    assert next(table.blocks()).texts(2, range(3)) == ["button", "state", ""]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('msgid "a"\nmsgstr\n', "a.po: not a message catalogue .*line 2"),
        ('msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=klingon\\n"\n', "encoding klingon"),
        ("Once upon a time\n", "a.po: not a message catalogue"),
    ],
)
def test_damaged_catalogues(tmp_path, text, error):
    (tmp_path / "a.po").write_text(text)
    with pytest.raises(BitextmineError, match=error):
        pairs_in(tmp_path / "a.po")


def test_an_empty_catalogue(tmp_path):
    (tmp_path / "a.po").touch()
    assert pairs_in(tmp_path / "a.po") == []


def test_messages_without_a_closing_quotation_mark_are_malformed(tmp_path):
    texts = (
        'msgid "a"\nmsgstr "b"',
        'msgid "Bad\nmsgstr "x"',
        '#~ msgid "c\\""\n#~ msgstr ""\n#~ "d"',
        'msgid "e"\nmsgstr "f\\"',
    )
    (tmp_path / "a.po").write_text("\n\n".join(texts))
    cut = "line {}: no closing quotation mark"
    assert pairs_in(tmp_path / "a.po") == [("a", "b"), cut.format(4), ('c"', "d"), cut.format(12)]


XML = '<?xml version="1.0"?>\n'
TEXT_XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit><source>a</source>'
    "<target>b</target></trans-unit></body></file></xliff>"
)
TEXT_TMX = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de">'
    "<seg>b</seg></tuv></tu></body></tmx>"
)
CONTENTS = {
    "XLIFF": (XLIFF, XML + TEXT_XLIFF),
    "XLIFF with a prefix": (XLIFF, TEXT_XLIFF.replace("xliff", "x:xliff")),
    "TMX": (TMX, XML + "<!DOCTYPE tmx>" + TEXT_TMX),
    "PO": (PO, '# Note\n\n#, fuzzy\nmsgid "a"\nmsgstr "b"\n'),
    "JSON Lines": (JSONL, '{"translation": {"en": "a", "de": "b"}}\n'),
    "CSV": (CSV, "en,de\na,b\n"),
    "CSV with semicolons": (CSV, "en;de\na;b\n"),
    "TSV": (TSV, "a\tb\n"),
}


@pytest.mark.parametrize(("format", "text"), CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("name", ["a.unknown", "a.txt.gz"])
def test_content_tells_the_format(tmp_path, name, format, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert format_of(Source.of(path)) is format
    assert pairs_in(path) == [("a", "b")]


@pytest.mark.parametrize("key", ["XLIFF", "TMX", "PO", "JSON Lines", "CSV"])
def test_standard_input_and_pipes(bitextmine, tmp_path, key):
    """Standard input is read in its format; a named pipe, of which the first bytes cannot be looked at, is named."""
    format, text = CONTENTS[key]
    out = bitextmine("filter", "--preset", "none", "--min", "shorter=0", stdin=text.encode()).out.splitlines()
    assert out[-1].startswith("a\tb")
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,), daemon=True)
    feeder.start()
    with pytest.raises(BitextmineError, match=f"pipe: looks like {format.name.upper()}; name the file"):
        open_table(tmp_path / "pipe")
    feeder.join()


# Rows behind those that tell the format, and those of them that are no pairs.
CELLS = {
    ('"Two', 'lines"\tZwei', "a\tb"): {0, 1},
    ('"Two', "", 'lines"\t"Zwei', 'Zeilen"', "a\tb"): {0, 1, 2, 3},
    ('"Two', 'lines"\t"Zwei', 'Zeilen"', '"One"\t"Eins"', 'lines"\tStill a pair.'): {0, 1, 2},
    ('One\t"Zwei', "oder", 'drei"', "a\tb"): {0, 1, 2},
    # Quotations that go on in the next sentence.
    ('"I go.\t"Ich gehe.', 'Now."\tJetzt."', "a\tb"): set(),
    ('He: "I go.\tEr: "Ich gehe.', 'Now."', "a\tb"): {1},
    ('a\t"Ich gehe.', "one cell", "a\tb"): {1},
}


@pytest.mark.parametrize(("lines", "bad"), CELLS.items())
def test_parts_of_a_late_cell_are_no_pairs(tmp_path, lines, bad):
    path = tmp_path / "a.tsv"
    path.write_bytes("\r\n".join(["x\ty"] * 300 + list(lines)).encode())
    blocks = list(open_table(path).blocks())
    assert {block.start + row - 301 for block in blocks for row in block.bad()} == bad


def test_a_late_cell_that_begins_in_the_block_before(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("x\ty\n" * 300 + '"Two\nor three\nlines"\tZwei\na\tb\n')
    blocks = open_table(path).blocks(301)
    assert [block.start + row - 301 for block in blocks for row in block.bad()] == [0, 1, 2]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.en-de"])
def test_pairs_in_utf_16_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text("Hello.\tHallo.\nGood night.\tGute Nacht.\n" * 2, encoding="utf-16")
    with pytest.raises(BitextmineError, match=r"line 1: .*UTF-16"):
        pairs_in(path)
