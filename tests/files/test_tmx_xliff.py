"""TMX and XLIFF as several programs write them, damaged ones included, and the languages that they declare."""

import time

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.layout import Columns
from bitextmine.files.formats.table import Malformed, open_table
from bitextmine.files.source import Source

from .helpers import pairs_in


def column(path, name):
    table = open_table(path)
    return [v for b in table.blocks() for v in b.texts(table.names.index(name), range(len(b)))]


OMEGAT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="OmegaT" o-tmf="OmegaT TMX" adminlang="EN-US" datatype="plaintext"
 creationtoolversion="6.0.1_0_c1d7f" segtype="sentence" srclang="EN-US"/>
  <body>
<!-- Default translations -->
    <tu>
      <tuv xml:lang="EN-US">
        <seg>The <bpt i="0" x="0">&lt;b0&gt;</bpt>red<ept i="0">&lt;/b0&gt;</ept> bicycle</seg>
      </tuv>
      <tuv xml:lang="DE" changeid="anna" changedate="20240101T101112Z">
        <seg>Das <bpt i="0" x="0">&lt;b0&gt;</bpt>rote<ept i="0">&lt;/b0&gt;</ept> Fahrrad</seg>
      </tuv>
    </tu>
<!-- Alternative translations -->
  </body>
</tmx>
"""
TRADOS = """<?xml version="1.0" encoding="utf-16"?>
<tmx version="1.4"><header creationtool="SDL Language Platform" creationtoolversion="8.0" o-tmf="SDL TM8 Format"
 datatype="xml" segtype="sentence" adminlang="en-US" srclang="en-US"><prop type="x-Recognizers">All</prop></header>
<body><tu creationdate="20240101T101112Z" usagecount="1"><prop type="x-ConfirmationLevel">ApprovedTranslation</prop>
<tuv xml:lang="en-US"><seg>Press the <bpt i="1" type="3" x="1" />red<ept i="1" /> button<ph x="2" type="4" />Then wait.
</seg></tuv><tuv xml:lang="de-DE"><seg>Drücken Sie den <bpt i="1" type="3" x="1" />roten<ept i="1" /> Knopf<ph x="2"
 type="4" />Dann warten.</seg></tuv></tu></body></tmx>""".replace("wait.\n", "wait.").replace("\n", "\r\n")
SDL = """<?xml version="1.0" encoding="utf-8"?><xliff xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0"
 xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2" sdl:version="1.0"><file original="C:\\a.docx"
 datatype="x-sdlfilterframework2" source-language="en-US" target-language="de-DE"><header/><body>
<trans-unit id="0f" translate="no"><source>1.2</source></trans-unit>
<trans-unit id="a3"><source><g id="5">One house. Two houses.</g></source><seg-source><g id="5"><mrk mtype="seg"
 mid="1">One house.</mrk> <mrk mtype="seg" mid="2">Two houses.</mrk></g></seg-source><target><g id="5"><mrk mtype="seg"
 mid="1">Ein Haus.</mrk> <mrk mtype="seg" mid="2"/></g></target><sdl:seg-defs><sdl:seg id="1" conf="Translated"
 origin="tm" percent="100"/><sdl:seg id="2" conf="Draft"/></sdl:seg-defs></trans-unit></body></file></xliff>"""
MEMOQ = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:mq="MQXliff">
<file original="a.docx" source-language="en" target-language="de" datatype="x-memoq"><body>
<trans-unit id="1" mq:status="ManuallyConfirmed" mq:segmentguid="75"><source xml:space="preserve">A <bpt id="1">{}</bpt
>red<ept id="1">{}</ept> door<x id="2"/>Open it</source><target xml:space="preserve">Eine <bpt id="1">{}</bpt
>rote<ept id="1">{}</ept> Tür<x id="2"/>Öffnen</target></trans-unit>
<trans-unit id="2" mq:status="NotStarted"><source xml:space="preserve">Closed</source><target xml:space="preserve"
></target></trans-unit></body></file></xliff>"""
PHRASE = """<?xml version='1.0' encoding='UTF-8'?>
<xliff xmlns:m="http://www.memsource.com/mxlf/2.0" xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"
 m:version="2.4"><file original="a.html" source-language="en" target-language="de" datatype="x-mxlf"><body><group
 id="1"><context-group><context context-type="x-key">k</context></context-group><trans-unit id="u:1" m:confirmed="1"
 m:locked="false"><source>Read {1}</source><target>Lies {1}</target><alt-trans origin="memsource-tm"><target>Lese
</target></alt-trans></trans-unit></group></body></file></xliff>"""
KNOPF = "Drücken Sie den roten Knopf Dann warten."
BICYCLE = ("A red bicycle", "Uma bicicleta vermelha")
OASIS = """<?xml version="1.0"?>
<xlf:xliff xmlns:xlf="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="pt-BR"
 xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0"><xlf:file id="f"><xlf:unit id="1">
<mtc:matches><mtc:match><xlf:source>Old</xlf:source><xlf:target>Velho</xlf:target></mtc:match></mtc:matches>
<xlf:originalData><xlf:data id="d">code</xlf:data></xlf:originalData>
<xlf:segment state="final"><xlf:source>A <xlf:pc id="1">red</xlf:pc> bicycle</xlf:source>
<xlf:target>Uma bicicleta <xlf:pc id="1">vermelha</xlf:pc></xlf:target></xlf:segment>
<xlf:ignorable><xlf:source> </xlf:source></xlf:ignorable>
<xlf:segment><xlf:source>Done &amp; dusted</xlf:source><xlf:target>Feito</xlf:target></xlf:segment>
</xlf:unit><xlf:group translate="no"><xlf:unit id="2"><xlf:segment><xlf:source>GmbH</xlf:source>
</xlf:segment></xlf:unit></xlf:group></xlf:file></xlf:xliff>"""


@pytest.mark.parametrize(
    ("name", "text", "langs", "found"),
    [
        ("a.tmx", OMEGAT, ("EN-US", "DE"), [("The red bicycle", "Das rote Fahrrad")]),
        ("a.tmx", TRADOS, ("en-US", "de-DE"), [("Press the red button Then wait.", KNOPF)]),
        ("a.sdlxliff", SDL, ("en-US", "de-DE"), ["no de-DE", ("One house.", "Ein Haus."), "no de-DE"]),
        ("a.mqxliff", MEMOQ, ("en", "de"), [("A red door Open it", "Eine rote Tür Öffnen"), "no de"]),
        ("a.mxliff", PHRASE, ("en", "de"), [("Read {1}", "Lies {1}")]),
        ("a.xliff", OASIS, ("en", "pt-BR"), [BICYCLE, ("Done & dusted", "Feito"), "no pt-BR"]),
    ],
    ids=["OmegaT", "Trados", "SDL", "memoQ", "Phrase", "2.0"],
)
def test_files_of_programs(tmp_path, name, text, langs, found):
    path = tmp_path / name
    path.write_text(text, encoding="utf-16" if text == TRADOS else "utf-8", newline="")
    assert (open_table(path).langs(), pairs_in(path)) == (langs, found)


def test_states_are_columns(tmp_path):
    def values(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return [column(tmp_path / name, key) for key in ("state", "approved", "translate")]

    assert values("a.sdlxliff", SDL) == [["", "Translated", "Draft"], [""] * 3, ["no", "yes", "yes"]]
    assert values("a.mqxliff", MEMOQ) == [["ManuallyConfirmed", "NotStarted"], [""] * 2, ["yes"] * 2]
    assert values("a.mxliff", PHRASE) == [[""], ["yes"], ["yes"]]
    assert values("a.xliff", OASIS) == [["final", "", ""], [""] * 3, ["yes", "yes", "no"]]
    stated = MEMOQ.replace("<target ", '<target state="translated" ')
    stated = stated.replace('id="2"', 'id="2" approved="no"')
    assert values("a.xlf", stated)[:2] == [["translated"] * 2, ["", "no"]]


def test_a_command_takes_it(bitextmine, tmp_path):
    (tmp_path / "new.xlf").write_text(OASIS, encoding="utf-8")
    scored = bitextmine("score", "new.xlf", "--columns", "lang,numbers", cwd=tmp_path)
    assert scored.out.splitlines()[0] == "src\ttgt\tstate\tapproved\ttranslate\tlang\tnumbers"
    assert scored.out.splitlines()[1].startswith("A red bicycle\tUma bicicleta vermelha\tfinal\t\tyes\t")
    assert "1 row has no text in one of the languages; the first: new.xlf: row 3: no pt-BR" in scored.err
    said = bitextmine("filter", "new.xlf", "-o", "b.xlf", cwd=tmp_path, code=2).err
    assert ".xlf" not in said.partition("written as")[2].partition(";")[0]


# --- text ---


def tmx(*units, end="</body></tmx>"):
    return f'<tmx version="1.4"><header srclang="en"/><body>{"".join(units)}{end}'


def unit(src, tgt="x", langs=("en", "fr")):
    sides = "".join(
        f'<tuv xml:lang="{k}"><seg>{v}</seg></tuv>' for k, v in zip(langs, (src, tgt), strict=True)
    )
    return f"<tu>{sides}</tu>"


@pytest.mark.parametrize(
    ("seg", "text"),
    [
        ("button<ph/>Then", "button Then"),
        ("end.<ph/><ph/>Then", "end. Then"),
        ("one <ph/> two", "one two"),
        ("one <ph/>two<ph/>, three<ph/>", "one two, three"),
        ("<ph>{0}</ph> items", " items"),
        ("W<bpt i='1'/>or<ept i='1'/>d", "Word"),
        ("(<ph/>see<ph/>)", "(see)"),
        ("按钮<ph/>然后", "按钮然后"),
        ("<hi>a</hi><it>b</it>c", "ac"),
    ],
)
def test_placeholders_do_not_glue_words(tmp_path, seg, text):
    (tmp_path / "a.tmx").write_text(tmx(unit(seg)), encoding="utf-8")
    assert pairs_in(tmp_path / "a.tmx") == [(text, "x")]


def test_texts_within_markup_are_pairs_or_counted(tmp_path):
    def note(*texts):
        return "Read<ph>{" + "".join(f"<sub>{text}</sub>" for text in texts) + "}</ph>"

    one, two = unit(note("A note."), note("Une note.")), unit(note("One.", "Two."), note("Un."))
    (tmp_path / "a.tmx").write_text(tmx(one, two, unit("a", "b")))
    read, problem = ("Read", "Read"), "1 or 2 texts within markup (<sub>)"
    assert pairs_in(tmp_path / "a.tmx") == [read, ("A note.", "Une note."), read, problem, ("a", "b")]


# --- languages ---


def test_languages_are_declared_not_guessed(tmp_path):
    """What a file says of itself, or the user, counts, however many units of another kind come first."""
    xlf = '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    xlf += "<trans-unit><source>s</source></trans-unit>" * 300
    xlf += "<trans-unit><source>s</source><target>t</target></trans-unit></body></file></xliff>"
    (tmp_path / "a.xlf").write_text(xlf)
    (tmp_path / "a.tmx").write_text(tmx(*[unit("a", "b")] * 300, unit("c", "d", ("en", "de"))))
    for name, columns in (
        ("a.xlf", None),
        ("a.xlf", Columns(src="en", tgt="de")),
        ("a.tmx", Columns(src="en", tgt="de")),
        ("a.tmx", Columns(langs=("en", "de"))),
    ):
        found = pairs_in(tmp_path / name, columns)
        assert set(found[:-1]) == {"no de"} and len(found) == 301
        assert found[-1] == (("s", "t") if name == "a.xlf" else ("c", "d"))
        table = open_table(tmp_path / name, columns)
        assert table.langs() == ("en", "de")
        malformed = Malformed(table)
        for block in table.blocks(7):
            malformed.add(block)
        malformed.finish()
        assert (malformed.rows, malformed.count, malformed.untranslated) == (301, 0, 300)
    assert open_table(tmp_path / "a.tmx").langs() == ("en", "fr")


def test_nothing_in_both_languages_is_an_error(tmp_path):
    (tmp_path / "a.tmx").write_text(tmx(*[unit("a", "b")] * 300))
    table = open_table(tmp_path / "a.tmx", Columns(src="en", tgt="it"))
    malformed = Malformed(table)
    for block in table.blocks():
        malformed.add(block)
    with pytest.raises(BitextmineError, match=r"row 1: no it; none of 300 rows has a text in both"):
        malformed.finish()


VARIANTS = [("en-US", "fr-FR"), ("en-GB", "fr-FR"), ("EN", "FR"), ("fr_CA", "eng")]


@pytest.mark.parametrize(
    ("columns", "langs", "kept"),
    [
        (None, ("en", "fr"), [0, 1, 2, 3]),
        (Columns(src="en", tgt="fr"), ("en", "fr"), [0, 1, 2, 3]),
        (Columns(src="fr", tgt="en"), ("fr", "en"), [0, 1, 2, 3]),
        (Columns(langs=("fr", "en")), ("fr", "en"), [0, 1, 2, 3]),
        (Columns(src="en-US", tgt="fr-FR"), ("en-US", "fr-FR"), [0]),
        (Columns(src="en-AU", tgt="fr"), ("EN", "fr"), [0, 1, 2, 3]),
    ],
)
def test_variants_of_a_language_are_one_side(tmp_path, columns, langs, kept):
    units = [unit(f"s{at}", f"t{at}", some) for at, some in enumerate(VARIANTS)]
    (tmp_path / "a.tmx").write_text(tmx(*units))
    found = pairs_in(tmp_path / "a.tmx", columns)
    assert open_table(tmp_path / "a.tmx", columns).langs() == langs
    pairs = {at: (f"s{at}", f"t{at}") if at < 3 else (f"t{at}", f"s{at}") for at in kept}
    assert {at: row for at, row in enumerate(found) if isinstance(row, tuple)} == {
        at: pair if langs[0].lower().startswith("en") else pair[::-1] for at, pair in pairs.items()
    }


def test_variants_in_one_unit_are_told_apart(tmp_path, caplog):
    both = '<tu><tuv xml:lang="en"><seg>a</seg></tuv>' + "".join(
        f'<tuv xml:lang="{lang}"><seg>{lang}</seg></tuv>' for lang in ("zh-CN", "zh-TW")
    )
    (tmp_path / "a.tmx").write_text(tmx(both + "</tu>", unit("b", "c", ("en", "zh-CN"))))
    with pytest.raises(BitextmineError, match="in en, zh-CN, zh-TW; say which two"):
        pairs_in(tmp_path / "a.tmx")
    assert pairs_in(tmp_path / "a.tmx", Columns(src="en", tgt="zh-TW")) == [("a", "zh-TW"), "no zh-TW"]
    assert pairs_in(tmp_path / "a.tmx", Columns(src="en", tgt="zh")) == [("a", "zh-CN"), ("b", "c")]
    for lang, first in (("zh-TW", "zh-TW"), ("zh", "zh-CN")):
        assert not caplog.text
        assert pairs_in(tmp_path / "a.tmx", Columns(langs=("en", lang)))[0] == ("a", first)
    assert "a.tmx: 'zh' is zh-CN and zh-TW here; only zh-CN is read" in caplog.text
    (tmp_path / "b.tmx").write_text(tmx(unit("colour", "color", ("en-GB", "en-US"))))
    assert pairs_in(tmp_path / "b.tmx") == [("colour", "color")]
    assert open_table(tmp_path / "b.tmx").langs() == ("en-GB", "en-US")


# --- damage ---

DAMAGE = {
    "character": unit("a&#x1F;b"),
    "NUL": unit("a\0b"),
    "entity": unit("a&nbsp;b"),
    "mark": unit("a < b"),
    "tags": "<tu><tuv xml:lang='en'><seg>a</tuv></tu>",
    "cut": "<tu><tuv xml:lang='en'><seg>a</seg>",
    "attribute": "<tu tuid=5><tuv/></tu>",
    "UTF-8": unit("a\udcffb"),
    "end": "</tu>",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("size", [1, 64, 100_000])
def test_a_damaged_unit_costs_no_other(tmp_path, monkeypatch, damage, size):
    units = [unit(f"s{at}", f"t{at}") for at in range(6)]
    text = tmx(*units[:3], "\n", damage, *units[3:5], damage, units[5])
    data = text.encode("utf-8", "surrogateescape")
    (tmp_path / "a.tmx").write_bytes(data)
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    monkeypatch.setattr(Source, "blocks", lambda self: iter(blocks))
    found = pairs_in(tmp_path / "a.tmx")
    assert [row for row in found if isinstance(row, tuple)] == [(f"s{at}", f"t{at}") for at in range(6)]
    bad = [row for row in found if isinstance(row, str)]
    assert len(bad) == 2 and all(row.endswith("in line 2") or "&nbsp;" in row for row in bad)


@pytest.mark.parametrize(
    ("end", "more"), [("</body></tmx>\0\0", 1), ("", 1), ("<tu><tuv", 1), ("</body></tmx>\n\n", 0)]
)
def test_a_damaged_end(tmp_path, end, more):
    (tmp_path / "a.tmx").write_text(tmx(unit("a", "b"), end=end))
    found = pairs_in(tmp_path / "a.tmx")
    assert found[0] == ("a", "b") and len(found) == 1 + more


def test_damage_does_not_change_languages(tmp_path):
    """After damage between two files of an XLIFF, the second one's languages count."""
    first, second = (
        f'<file source-language="en" target-language="{lang}"><body><group><trans-unit id="1"><source>a</source>'
        f"<target>{lang}</target></trans-unit>" for lang in ("de", "fr")
    )  # fmt: skip
    (tmp_path / "a.xlf").write_text(
        f'<xliff version="1.2">{first}</body>{second}</group></body></file></xliff>'
    )
    found = pairs_in(tmp_path / "a.xlf", Columns(src="en", tgt="fr"))
    assert found[0] == "no fr" and found[-1] == ("a", "fr") and len(found) == 3


def test_damage_takes_linear_time(tmp_path):
    (tmp_path / "a.tmx").write_text(tmx("<tu>" * 20_000, "<tu></a>" * 20_000, unit("a", "b")))
    start = time.process_time()
    assert pairs_in(tmp_path / "a.tmx", Columns(src="en", tgt="fr"))[-1] == ("a", "b")
    assert time.process_time() - start < 10


def test_units_that_are_no_pairs(tmp_path):
    en, fr = (f'<tuv xml:lang="{lang}"><seg>x</seg></tuv>' for lang in ("en", "fr"))
    odd = [en, en * 2 + fr, "<tuv><seg>x</seg></tuv>", ""]
    (tmp_path / "a.tmx").write_text(tmx(*(f"<tu>{sides}</tu>" for sides in (en + fr, *odd))))
    problems = ["no fr", "two texts in en", "a tuv without xml:lang", "no en"]
    assert pairs_in(tmp_path / "a.tmx") == [("x", "x"), *problems]


ENTITIES = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f'<!DOCTYPE tmx [<!ENTITY a "aaaa">{ENTITIES}]>' + tmx(unit("&i;")), "declares the entity 'a'"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + tmx(unit("&x;")), "the entity 'x'"),
        ('<!DOCTYPE tmx [<!ENTITY % x SYSTEM "no.dtd"> %x;]>' + tmx(), "declares the entity 'x'"),
        (tmx("<a>" * 200), "more than 100 elements"),
        (tmx(unit("x" * 3000)), "a unit larger than 2,000 bytes"),
        (tmx(f"<tu>{'<tuv/>' * 50}</tu>"), "a unit larger than 2,000 bytes"),
        (tmx(f"<!--{'x' * 600_000}-->"), "longer than 2,000 bytes"),
    ],
)
def test_what_is_no_memory_is_refused(tmp_path, text, error):
    (tmp_path / "memory.tmx").write_text(text)
    with pytest.raises(BitextmineError, match=f"memory.tmx: .*{error}"):
        pairs_in(Source(str(tmp_path / "memory.tmx"), max_line=2000))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<html/>", "begins with <html>, and TMX with <tmx> or XLIFF with <xliff>"),
        ("Once upon", "line 1: not well-formed XML"),
        ('<xliff version="3.0"/>', "line 1: XLIFF 3.0: versions 1 and 2 can be read"),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "declares an encoding"),
        ('<?xml version="1.0" encoding="hex"?><tmx/>', "declares an encoding"),
    ],
)
def test_other_files(text, error, tmp_path):
    (tmp_path / "a.xlf").write_text(text)
    with pytest.raises(BitextmineError, match=error):
        pairs_in(tmp_path / "a.xlf")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "gb18030", "shift_jis", "koi8-r"])
def test_encodings(tmp_path, encoding):
    text = "Слово" if encoding == "koi8-r" else "言葉"
    named = encoding.removesuffix("-sig").removesuffix("-be")
    body = f'<?xml version="1.0" encoding="{named}"?>' + tmx(unit(text, "ab"))
    (tmp_path / "a.tmx").write_bytes(body.encode(encoding))
    assert pairs_in(tmp_path / "a.tmx") == [(text, "ab")]


@pytest.mark.parametrize(
    "languages", ["", ' source-language="en"', ' source-language="en" target-language="de"']
)
def test_a_file_without_units(tmp_path, languages):
    (tmp_path / "a.xlf").write_text(f'<xliff version="1.2"><file{languages}><body></body></file></xliff>')
    table = open_table(tmp_path / "a.xlf")
    assert table.empty and not list(table.blocks())
