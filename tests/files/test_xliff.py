"""XLIFF 1.2 and 2.0 as pairs."""

from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.table import open_table

OLD = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" target-language="de"
 original="a" datatype="plaintext"><header><note>A note</note></header><body><group>
<trans-unit id="1"><source>A <g id="1">red</g> <ph id="2">{0}</ph>bicycle<x id="3"/></source>
<target state="final">Ein <g id="1">rotes</g> <ph id="2">{0}</ph>Fahrrad<x id="3"/></target>
<alt-trans><source>No</source><target>Nein</target></alt-trans><note>Not this</note></trans-unit>
<trans-unit id="2"><source>Untranslated</source></trans-unit>
<trans-unit id="3"><source>One. Two.</source>
<seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>
<target><mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">Zwei.</mrk></target></trans-unit>
</group></body></file></xliff>"""

NEW = """<?xml version="1.0"?>
<xlf:xliff xmlns:xlf="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="pt-BR"
 xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><xlf:file id="f"><xlf:unit id="1">
<mtc:matches><mtc:match><xlf:source>Old</xlf:source><xlf:target>Velho</xlf:target></mtc:match></mtc:matches>
<xlf:originalData><xlf:data id="d">code</xlf:data></xlf:originalData>
<xlf:segment><xlf:source>A <xlf:pc id="1">red</xlf:pc> bicycle</xlf:source>
<xlf:target>Uma bicicleta <xlf:pc id="1">vermelha</xlf:pc></xlf:target></xlf:segment>
<xlf:ignorable><xlf:source> </xlf:source></xlf:ignorable>
<xlf:segment><xlf:source>Done &amp; dusted</xlf:source><xlf:target>Feito</xlf:target></xlf:segment>
</xlf:unit></xlf:file></xlf:xliff>"""


def pairs(path):
    table = open_table(path)
    found: list[tuple[str, str] | str] = []
    for block in table.rows.blocks():
        bad = block.bad()
        for row in range(len(block)):
            pair = (
                []
                if row in bad
                else [block.texts(at, [row])[0] for at in (table.layout.src, table.layout.tgt)]
            )
            found.append((pair[0], pair[1]) if pair else bad[row])
    return table.langs(), found


def test_both_versions_are_read(tmp_path):
    for name, text in (("old.xlf", OLD), ("new.xliff", NEW)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    langs, found = pairs(tmp_path / "old.xlf")
    assert langs == ("en", "de")
    assert found[0] == ("A red bicycle", "Ein rotes Fahrrad")
    assert isinstance(found[1], str) and "de" in found[1]
    assert found[2:] == [("One.", "Eins."), ("Two.", "Zwei.")]
    langs, found = pairs(tmp_path / "new.xliff")
    assert langs == ("en", "pt-BR")
    assert found == [("A red bicycle", "Uma bicicleta vermelha"), ("Done & dusted", "Feito")]


def test_a_command_takes_it(bitextmine, tmp_path):
    (tmp_path / "new.xlf").write_text(NEW, encoding="utf-8")
    scored = bitextmine("score", "new.xlf", "--columns", "lang,numbers", cwd=tmp_path).out.splitlines()
    assert scored[0] == "src\ttgt\tlang\tnumbers"  # the languages are in the file
    assert scored[1].startswith("A red bicycle\tUma bicicleta vermelha\t")
    said = bitextmine("filter", "new.xlf", "-o", "b.xlf", cwd=tmp_path, code=2).err
    assert ".xlf" not in said.partition("written as")[2].partition(";")[0]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<tmx/>", "where XLIFF begins with <xliff>"),
        (OLD[:400], "is it a whole XLIFF file"),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]><xliff/>', "declares the entity 'a'"),
    ],
)
def test_damaged_files(text, error, tmp_path):
    (tmp_path / "a.xlf").write_text(text)
    with pytest.raises(BitextmineError, match=error):
        pairs(tmp_path / "a.xlf")


TEXT = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=9)
LINE = TEXT.map(str.strip).filter(bool)


@given(rows=st.lists(st.tuples(LINE, LINE), min_size=1, max_size=5))
def test_any_text_is_read(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("xliff") / "a.xlf"
    units = "".join(
        f"<unit><segment><source>{escape(s)}</source><target>{escape(t)}</target></segment></unit>"
        for s, t in rows
    )
    text = f'<xliff version="2.1" srcLang="en" trgLang="de"><file>{units}</file></xliff>'
    path.write_text(text, encoding="utf-8")
    assert pairs(path) == (("en", "de"), rows)
