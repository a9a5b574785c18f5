"""`bitextmine split`."""

import bz2
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from ..files.helpers import PACK
from .helpers import Here

TEXT = """Mr. Reed came at noon. Nobody was
there to open the door!

He went home.
"""
SENTENCES = "Mr. Reed came at noon.\nNobody was there to open the door!\nHe went home.\n"


@pytest.fixture
def bm(bitextmine, tmp_path):
    """The installed command in the test's folder; splitting needs no model."""
    return Here(bitextmine, tmp_path, {})


def put(folder, files):
    """Write texts or bytes into files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize("suffix", PACK)
def test_one_file_to_standard_output(bm, tmp_path, suffix):
    (tmp_path / f"book.en.txt{suffix}").write_bytes(PACK[suffix](TEXT.encode()))
    result = bm("split", f"book.en.txt{suffix}")
    assert result.out == SENTENCES
    assert "1 document, 2 paragraphs, 3 sentences" in result.err


def test_corpora_and_their_origins(bm, tmp_path):
    french = "M. Petit est là. Il dort."
    put(tmp_path / "site", {"a.en.txt": TEXT, "deep/b.fr.txt": french, "c.en.txt": "  \n\n", ".hidden": "\0"})
    err = bm("split", "site", "-o", "corpus.{lang}").err
    assert (tmp_path / "corpus.en").read_text() == SENTENCES
    assert (tmp_path / "corpus.fr").read_text() == "M. Petit est là.\nIl dort.\n"
    origins = [line.split("\t") for line in (tmp_path / "corpus.en.origin.tsv").read_text().splitlines()]
    assert origins == [["a.en.txt", "", *place] for place in ("11", "12", "21")]
    assert (tmp_path / "corpus.fr.origin.tsv").read_text() == "deep/b.fr.txt\t\t1\t1\ndeep/b.fr.txt\t\t1\t2\n"
    assert "2 documents, 3 paragraphs, 5 sentences (en 3, fr 2); 1 document without text" in err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("corpus")) == [
        f"corpus.{name}" for name in ("en", "en.origin.tsv", "fr", "fr.origin.tsv")
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
    put(tmp_path / "mixed", documents)
    bm("split", "mixed", "--by-language", "-o", "all.{lang}")
    found = {path.suffix[1:]: path.read_text().strip() for path in tmp_path.glob("all.??")}
    assert found == {"en": documents["a"], "de": documents["b"], "es": documents["c"]}
    err = bm("split", "mixed", "--by-language", "--lang", "de", "-o", "some.{lang}").err
    assert [path.name for path in tmp_path.glob("some.??")] == ["some.de"] and "3 documents in other" in err
    assert "-o corpus.{lang}" in bm("split", "mixed", "--by-language", code=2).err


def test_normalisation_can_be_left_out(bm, tmp_path):
    (tmp_path / "page.en").write_text("<p>Fish &amp; chips.\u200b</p>\n\nItâ€™s  fine.\n")
    assert bm("split", "page.en").out == "Fish & chips.\nIt’s fine.\n"
    assert bm("split", "page.en", "--no-normalize").out == "<p>Fish &amp; chips.\u200b</p>\nItâ€™s  fine.\n"


def test_capitals_are_mojibake_in_a_document_with_other_mojibake():
    import bitextmine

    def texts(*paragraphs):
        return [line.text for line in bitextmine.split(text="\n\n".join(paragraphs), lang="de")]

    assert texts("KÃ–LN", "schÃ¶n") == ["KÖLN", "schön"]
    assert texts("KÖLN — MAÇÃ", "schÃ¶n") == ["KÖLN — MAÇÃ", "schön"]
    late = texts("KÃ–LN", *["plain"] * 50, "DÃœREN", "KÃ–LN")
    assert late == ["KÃ–LN", *["plain"] * 50, "DÜREN", "KÖLN"]


def test_replaced_characters_are_counted(bm, tmp_path):
    (tmp_path / "a.en.txt").write_bytes("Ça va.\n\nBien.\n\nDéjà là.\n".encode("latin-1"))
    (tmp_path / "b.en.txt").write_bytes("Ça va \ufffd.\n\nÇa.\n\n".encode() + "Ça.".encode("latin-1"))
    result = bm("split", "a.en.txt", "b.en.txt", "--errors", "replace", "-o", "out.en")
    assert "a.en.txt: warning: invalid UTF-8 in 2 lines, replaced by U+FFFD; it looks like" in result.err
    assert "b.en.txt: warning: invalid UTF-8 in 1 line, replaced by U+FFFD\n" in result.err
    (tmp_path / "c.en.txt").write_text("Ça va \ufffd.")
    assert "warning" not in bm("split", "c.en.txt", "--errors", "replace").err


def test_tables_of_pairs_are_warned_of(bm):
    table = b"1.5\tOne.\tUn.\n1.4\tTwo.\tDeux.\nThree.\n"
    assert "tabs in most lines" in bm("split", "-", "--lang", "en", stdin=table).err
    assert "tabs" not in bm("split", "-", "--lang", "en", stdin=b"\tOne.\n\tTwo.\nThree.\tFour.\n").err


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.en.txt", b"PK\x03\x04word/document.xml", "damaged: File is not a zip file"),
        ("a.en.txt", b"PK\x03\x04a.txt", "a zip archive: unpack it first"),
        ("a.en.txt", b"%PDF-1.7\n", "a damaged PDF"),
        ("a.en.txt", b"{\\rtf1 x", "pandoc"),
        ("a.en.arc", b"filedesc://x.arc 192.0.2.1 20050102030405 text/plain 2\n", "warcio recompress"),
        ("a.en.txt", b'<?xml version="1.0"?>\n<xliff version="1.2">', "XLIFF: it holds pairs already"),
        ("a.en.txt", b'# Note\nmsgid "a"\nmsgstr "b"\n', "PO: it holds pairs already"),
        ("a.en.txt", b"text\0\0\0", "NUL bytes"),
        ("a.en.txt", "Ça va".encode("latin-1"), "invalid UTF-8"),
        ("a.en.txt", gzip.compress(b"text", mtime=0), "name it .gz"),
        ("a.en.txt.gz", gzip.compress(b"text", mtime=0)[:-9], "truncated"),
        ("a.en.txt.gz", gzip.compress(b"x" * (1 << 25), mtime=0), "longer than"),
        ("a.en.txt", b" \n\n", "no text"),
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


def test_damaged_and_unreadable_files_are_counted_and_named(bm, tmp_path):
    cut = gzip.compress(b"Cut off here. " * 50_000)[:-9]
    files = {"a.txt": TEXT, "b.txt.gz": "junk", "c.txt": b"\xff.", "d.txt.gz": cut, "y.rtf": "{\\rtf1"}
    put(tmp_path / "site", files)
    (tmp_path / "site" / "loop").symlink_to("loop")
    result = bm("split", "site", "--lang", "en", "-o", "out.en", code=1)
    assert (tmp_path / "out.en").read_text().startswith(SENTENCES)
    assert "4 documents cannot be read: b.txt.gz: not valid gzip data" in result.err
    assert "c.txt: line 1: invalid UTF-8" in result.err and "Too many levels" in result.err
    missing = bm("split", "site/a.txt", "missing.txt", "--lang", "en", code=1)
    assert missing.out == SENTENCES and "missing.txt: no such file" in missing.err
    assert "Too many levels" in bm.fails("split", "site/loop", "--lang", "en")


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="needs setpriv(1) as root")
def test_unreadable_subfolders_are_named(bitextmine, tmp_path):
    put(tmp_path / "site", {"a.txt": TEXT, "sub/b.txt": TEXT})
    (tmp_path / "site" / "sub").chmod(0)
    lost = "-dac_override,-dac_read_search"
    drop = f"setpriv --bounding-set={lost} --inh-caps={lost}" if os.geteuid() == 0 else ""
    command = f"{drop} {sys.executable} -m bitextmine split site --lang en"
    done = bitextmine.shell(command, cwd=tmp_path)
    (tmp_path / "site" / "sub").chmod(0o755)
    assert done.returncode == 1 and done.stdout.decode() == SENTENCES
    assert "sub: cannot read: Permission denied" in done.stderr.decode()


def test_names_that_are_no_utf8(bm, tmp_path):
    put(tmp_path / "site", {os.fsdecode(b"b\xff.txt"): "One."})
    assert bm("split", "site", "--lang", "en", "--ids").out == "b\\xff.txt\t\t1\t1\tOne.\n"
    bm("split", "site", "--lang", "en", "-o", "out.en")
    assert (tmp_path / "out.en.origin.tsv").read_text() == "b\\xff.txt\t\t1\t1\n"


def test_pipes_and_links_stay_what_they_are(bm, bitextmine, tmp_path):
    (tmp_path / "book.en").write_text(TEXT)
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(["cat", "fifo"], cwd=tmp_path, stdout=subprocess.PIPE) as reader:
        bm("split", "book.en", "-o", "fifo")
        assert reader.communicate(timeout=60)[0].decode() == SENTENCES
    assert (tmp_path / "fifo").is_fifo()
    assert bm("split", "book.en", "-o", "/dev/stdout").out == SENTENCES
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    bm("split", "book.en", "-o", "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == SENTENCES
    names = {"book.en", "fifo", "link", "link.origin.tsv", "real"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_file_of_origins_replaces_no_other_file(bm, tmp_path):
    (tmp_path / "book.en").write_text(TEXT)
    (tmp_path / "out.en.origin.tsv").write_text("my notes\n")
    message = bm.fails("split", "book.en", "-o", "out.{lang}")
    assert "out.en.origin.tsv" in message and "--ids" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book.en", "out.en.origin.tsv"]
    assert (tmp_path / "out.en.origin.tsv").read_text() == "my notes\n"
    (tmp_path / "out.en.origin.tsv").write_text("old.en\t\t1\t1\n")
    bm("split", "book.en", "-o", "out.{lang}")
    assert (tmp_path / "out.en.origin.tsv").read_text().startswith("book.en\t\t1\t1\n")


def test_an_edited_input_is_split_again(bm, tmp_path, monkeypatch):
    from bitextmine.documents import split
    from bitextmine.documents.kinds import SplitOptions
    from bitextmine.run import Run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(split, "SAVE_PARAGRAPHS", 1)
    text = "".join(f"Word {i} is here.\n\n" for i in range(9))
    (tmp_path / "a.txt").write_text(text)
    real, calls = split.sentences, []

    def stopping(*args, **more):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*args, **more)

    monkeypatch.setattr(split, "sentences", stopping)
    monkeypatch.setattr(split, "_SAMPLE", 1)
    with pytest.raises(KeyboardInterrupt):
        split.split_files(["a.txt"], "out.en", SplitOptions(langs=("en",)), Run())
    assert (tmp_path / "out.en.split.part").is_dir()
    (tmp_path / "a.txt").write_text(text.replace("Word", "W0rd"))
    split.split_files(["a.txt"], "out.en", SplitOptions(langs=("en",)), Run())
    assert (tmp_path / "out.en").read_text() == text.replace("Word", "W0rd").replace("\n\n", "\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["site"], "site: no text in it; b.rtf: RTF"),
        (["site", "-o", "out.{lang}"], "site: no text in it; b.rtf: RTF"),
        (["site/a.en.txt", "site/c.en.txt"], "no text in these files"),
    ],
)
def test_inputs_without_any_text_are_an_error(bm, tmp_path, args, message):
    put(tmp_path / "site", {"a.en.txt": " \n\n", "b.rtf": "{\\rtf1", "c.en.txt": ""})
    assert message in bm.fails("split", *args)
    assert not list(tmp_path.glob("out*"))


def test_contradictions_are_usage_errors(bm, tmp_path):
    put(tmp_path, {"site/a.en": TEXT, "b.en": TEXT, "c.fr": "Un."})
    assert "--by-language" in bm("split", "b.en", "--lang", "en", "--lang", "fr", code=2).err
    assert "inside the folder" in bm("split", "site", "-o", "site/out.{lang}", code=2).err
    assert "write {lang} once" in bm("split", "site", "-o", "x.{lang}.{lang}", code=2).err
    assert "{foo}" in bm("split", "b.en", "-o", "x.{foo}", code=2).err
    for output in ("b.en", "b.{lang}"):
        assert "the input itself" in bm("split", "b.en", "-o", output, code=2).err
    assert (tmp_path / "b.en").read_text() == TEXT
    for output in ("x.fr", "x.{lang}.fr"):
        assert f"{output} is the name of a text in fr" in bm("split", "b.en", "-o", output, code=2).err
    refused = bm("split", "b.en", "c.fr", code=2)
    assert "the documents are in en and fr" in refused.err and not refused.out
    for output in ("x.fr", "x.fr.gz"):
        assert "a text in fr, but the documents are in en" in bm("split", "b.en", "-o", output, code=2).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.en", "c.fr", "site"]
    bm("split", "b.en", "--lang", "fr", "-o", "x.fr")
    (tmp_path / "empty").mkdir()
    assert "no files" in bm.fails("split", "empty")


def test_python_gives_what_the_command_gives(bm, tmp_path):
    import bitextmine

    (tmp_path / "book.en.txt").write_text(TEXT)
    found = list(bitextmine.split(tmp_path / "book.en.txt"))
    assert "".join(f"{one.text}\n" for one in found) == SENTENCES
    assert (found[1].document, found[1].paragraph, found[1].sentence) == (str(tmp_path / "book.en.txt"), 1, 2)
    assert json.dumps([one.lang for one in found]) == '["en", "en", "en"]'
    for lang in (3, "english", ""):
        with pytest.raises(bitextmine.UsageError, match=r"lang: .* is not a language code such as"):
            bitextmine.split(tmp_path / "book.en.txt", lang)
    wrong = {"by_language": 3, "normalize": "no", "join": "page", "kind": "doc", "text_field": 3}
    for name, value in wrong.items():
        with pytest.raises(bitextmine.UsageError, match=name):
            bitextmine.split(tmp_path / "book.en.txt", **{name: value})
    with pytest.raises(bitextmine.UsageError, match="3 is not a language code"):
        bitextmine.align(["One."], ["Un."], src_lang=3)


PAGE = """<!DOCTYPE html><html lang="en"><head><title>Boats</title><meta charset="{charset}"></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav>
<div class="cookie-banner">We use cookies. <button>Accept all</button></div>
<main><h1>The old harbour</h1><p>The boats came in <b>before</b> the storm &amp; stayed. Nobody spoke.</p>
<p>{text}</p></main><footer>© 2024 Harbour Ltd. <a href="/imprint">Imprint</a></footer></body></html>"""
BREAD = "Bread and salt were sold at the market."
MAIN = ["The old harbour", "The boats came in before the storm & stayed.", "Nobody spoke."]


def page(text=BREAD, charset="utf-8", really=""):
    return PAGE.format(text=text, charset=charset).encode(really or charset)


def record(name, body, *headers, kind="response"):
    """A record of a WARC, of a page or of something by its URL."""
    url = name if "://" in str(name) else f"http://a.example/{name}"
    http = "\r\n".join(["HTTP/1.1 200 OK", *(headers or ["Content-Type: text/html"]), "", ""]).encode()
    content = http + body if kind == "response" else body
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(content)}\r\nContent-Type: "
        f"{'application/http; msgtype=response' if kind == 'response' else 'text/plain'}\r\n\r\n"
    )
    return head.encode() + content + b"\r\n\r\n"


def packed(*records):
    return b"".join(map(gzip.compress, records))


@pytest.fixture
def crawl(bm, tmp_path):
    """Write a WARC and split it; return the lines, their origins and standard error."""

    def split(content, *options, name="c.warc.gz", code=0):
        (tmp_path / name).write_bytes(content)
        result = bm("split", name, "--lang", "en", "--ids", *options, code=code)
        rows = [line.split("\t") for line in result.out.splitlines()]
        return [row[-1] for row in rows], [row[:-1] for row in rows], result.err

    return split


def test_escaped_tags_of_pages_are_text(bm, crawl, tmp_path):
    html = b"<!DOCTYPE html><html><body><p>Use &lt;p&gt; and <b>not</b> &lt;br&gt;.</p></body></html>"
    text = "Use <p> and not <br>."
    (tmp_path / "page.en.html").write_bytes(html)
    assert bm("split", "page.en.html").out == f"{text}\n"
    plain = record(2, b"Use <b>none</b>.", kind="conversion")
    assert crawl(packed(record(1, html), plain))[0] == [text, "Use none."]


@pytest.mark.parametrize(
    "place", ["<body>{}", "<body><main>{}</main>", "<body><div><article>{}</article></div>"]
)
def test_lists_of_prose_are_text_and_menus_are_not(bm, place):
    lists = """<ul class="first"><li>Nets are mended <a href="/w">in winter</a>.<ul><li>By hand.</li></ul></li></ul>
    <p>Nobody spoke.</p><ul><li><a href="/a">Boats</a></li><li><a href="/b">About us</a></li></ul>
    <ul><li>Menu <a href="/c">Imprint and privacy</a></li></ul></ul><ul><li>The end.</li></ul>"""
    html = f"<!DOCTYPE html><html>{place.format(lists)}</html>".encode()
    lines = bm("split", "-", "--from", "html", "--lang", "en", stdin=html).out.splitlines()
    assert lines == ["Nets are mended in winter.", "By hand.", "Nobody spoke.", "The end."]


@pytest.mark.parametrize(
    "mark",
    [
        '<html lang="fr" class="no-js translated-ltr">',
        '<html lang="fr-x-mtfrom-en">',
        '<html><font style="vertical-align: inherit;"><font>',
        '<html><base href="https://example-com.translate.goog/">',
        '<html><p _msttexthash="1234" _msthash="5">',
        '<html><meta name="robots" content="machine-translated">',
    ],
)
def test_machine_translated_pages_are_left_out(bm, crawl, tmp_path, mark):
    pages = [
        record(n, html) for n, html in enumerate([page(), page().replace(b'<html lang="en">', mark.encode())])
    ]
    texts, _, err = crawl(packed(*pages))
    assert len(texts) == 4
    assert "1 skipped: machine translation, by marks in its HTML" in err
    assert len(crawl(packed(*pages), "--machine-translated")[0]) > 4


def test_pages_about_translation_are_kept(bm, tmp_path):
    menu = '<html class="wpml" lang="en"><link rel="alternate" hreflang="fr"><p class="gtranslate">A translated-ltr'
    (tmp_path / "page.en.html").write_bytes(page().replace(b'<html lang="en">', menu.encode()))
    assert bm("split", "page.en.html").out.splitlines()[-1] == BREAD


@pytest.mark.parametrize(
    ("text", "declared", "really"),
    [
        ("Le café était fermé, déjà.", "iso-8859-1", "utf-8"),
        ("Le café était fermé, déjà.", "utf-8", "iso-8859-1"),
        ("Весной на старом рынке продавали хлеб и соль, и никто не говорил.", "iso-8859-1", "windows-1251"),
        ("Весной на старом рынке продавали хлеб и соль, и никто не говорил.", "koi8-r", "koi8-r"),
        ("昔の港に三つの船が来た。誰も話さなかった。", "shift_jis", "shift_jis"),
    ],
)
def test_encodings_declared_wrong_or_right(bm, tmp_path, text, declared, really):
    (tmp_path / "a.html").write_bytes(
        f"<html><head><meta charset={declared}></head><body><p>{text}</p></body></html>".encode(really)
    )
    assert bm("split", "a.html", "--lang", "en", "--join", "paragraph").out == f"{text}\n"


@pytest.mark.parametrize("name", ["c.warc.gz", "c.warc", "c.warc.bz2"])
def test_pages_of_a_crawl(crawl, name):
    records = [
        record("robots.txt", b"no", "Content-Type: application/json"),
        record(1, page(), "Content-Type: text/html; charset=latin1"),
        record(
            "http://a.example/2", gzip.compress(page()), "Content-Encoding: gzip", "Content-Type: text/html"
        ),
        record(3, b"4\r\n<p>F\r\n4\r\nour \r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
        record(4, page(), "Content-Type: text/html", "Content-Encoding: gzip"),
        record(5, b"Plain text.\n\nMore of it.", kind="conversion"),
    ]
    content = bz2.compress(b"".join(records)) if name.endswith("bz2") else b"".join(records)
    lines, origins, _ = crawl(packed(*records) if name.endswith("gz") else content, name=name)
    assert lines == [*([*MAIN, BREAD] * 2), "Four", *MAIN, BREAD, "Plain text.", "More of it."]
    assert origins[2] == [f"{name}#2", "http://a.example/1", "2", "2"]
    assert [row[1][-1] for row in origins] == list("11112222344445" + "5")


def test_damaged_records_are_passed_over(crawl):
    records = [gzip.compress(record(i, page(f"Number {i} was sold."))) for i in range(40)]
    whole, _, err = crawl(b"".join(records))
    assert len(whole) == 160 and "skipped" not in err
    records[7] = records[7][:100] + b"\xff" * 60 + records[7][160:]
    lines, _, err = crawl(b"".join(records), code=1)
    assert len(lines) == 156 and "1 skipped: a damaged" in err and "Number 8 was sold." in lines
    lines, _, err = crawl(b"".join(records[:7]) + records[8][:-40], code=1)
    assert lines[:28] == whole[:28] and "c.warc.gz#8: a damaged or truncated record" in err
    plain = b"".join(record(i, page()) for i in range(9))
    lines, _, err = crawl(plain[:-300], name="c.warc", code=1)
    assert len(lines) == 32 and "truncated record" in err
    lines, _, err = crawl(plain[:1500] + b"#" * 900 + plain[2400:], name="c.warc", code=1)
    assert len(lines) >= 24 and "damaged" in err


@pytest.mark.parametrize("length", [b"12", b"999999", b"99999999999"])
@pytest.mark.parametrize("suffix", [".warc", ".warc.gz"])
def test_records_behind_one_of_wrong_length_are_read(crawl, suffix, length):
    records = [record(i, page(f"Number {i} was sold.")) for i in range(4)]
    records[1] = re.sub(rb"Content-Length: \d+", b"Content-Length: " + length, records[1])
    content = packed(*records) if suffix.endswith(".gz") else b"".join(records)
    lines, _, err = crawl(content, name=f"c{suffix}", code=1)
    assert [line[7] for line in lines if line.startswith("Number")] == ["0", "2", "3"]
    assert "1 skipped: a damaged" in err


def test_crawls_however_they_are_packed(bm, crawl, tmp_path):
    records = [record(i, page()) for i in range(3)]
    assert len(crawl(gzip.compress(b"".join(records)))[0]) == 12  # one member, not truncated
    frames = [PACK[".zst"](one) for one in records]
    assert len(crawl(b"".join(frames)[:-10], name="c.warc.zst", code=1)[0]) >= 8
    whole = bm("split", "-", "--from", "warc", "--lang", "en", stdin=packed(*records)).out
    assert whole.splitlines() == [*MAIN, BREAD] * 3


def test_the_log_of_wget_is_no_page(crawl):
    log = record("metadata://gnu.org/software/wget/warc/MANIFEST.txt", b"<urn:uuid:1>", kind="resource")
    assert crawl(packed(log, record(1, page())))[0][:3] == MAIN


def test_bombs_and_what_is_no_page(crawl):
    bomb = gzip.compress(b"<p>" + b"bomb " * (1 << 23))
    options = b"<select>" + b"<option>a</option>" * 99_000 + b"</select></body>"
    lines, _, err = crawl(
        packed(
            record(1, bomb, "Content-Encoding: gzip", "Content-Type: text/html"),
            record(2, b"<p>" + b"bomb " * (1 << 22)),
            record(3, b"<div>" * 50_000 + b"Deep text."),
            record(4, b"%PDF-1.7 and more"),
            record(5, b""),
            record(6, page()),
            record(7, page().replace(b"</body>", options)),
            record(8, b"<p " + b"a=b " * 99_000 + b">A text is here.</p>"),
        )
    )
    assert lines[:4] == lines[4:8] and lines[:3] == MAIN and lines[8:] == ["A text is here."]
    assert "not HTML (application/pdf)" in err
    assert "2 skipped: a page of more than" in err and "nested" in err and "application/pdf" in err
    assert "1 document without text" in err


def test_a_file_that_holds_no_record_is_an_error(bm, tmp_path):
    (tmp_path / "a.warc.gz").write_bytes(b"no gzip at all")
    assert "a damaged" in bm.fails("split", "a.warc.gz", "--lang", "en")
    assert "no such file" in bm.fails("split", "b.warc.gz", "--lang", "en")


def test_json_lines_and_parquet(bm, tmp_path):
    import pyarrow.parquet

    records = [
        {"text": TEXT, "url": "http://a.example/1"},
        {"text": "One\u2028line. Half \ud800 a character.", "id": 7},
        {"body": "elsewhere"},
        {"text": ""},
    ]
    lines = [json.dumps(record) for record in records]
    (tmp_path / "a.jsonl").write_text("\n".join(["\ufeff" + lines[0], lines[1], "{broken", "", *lines[2:]]))
    result = bm("split", "a.jsonl", "--lang", "en", "--ids", code=1)
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[:2] for row in rows[:3]] == [["a.jsonl#1", "http://a.example/1"]] * 3
    assert [row[2] + row[3] for row in rows[:3]] == ["11", "12", "21"]
    assert rows[3][0] == "a.jsonl#2" and rows[3][4] == "One line."
    assert "1 document cannot be read: a.jsonl#3: not valid JSON" in result.err
    assert "--text-field" in result.err
    assert bm("split", "a.jsonl", "--lang", "en", "--text-field", "body", code=1).out == "elsewhere\n"
    table = pyarrow.table({"text": [TEXT, None, "Last."], "url": ["http://a.example/1", "", None]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    rows = [line.split("\t") for line in bm("split", "a.parquet", "--lang", "en", "--ids").out.splitlines()]
    assert [row[0] for row in rows] == ["a.parquet#1"] * 3 + ["a.parquet#3"]
    assert rows[0][1] == "http://a.example/1"
    refused = bm.fails("split", "a.parquet", "--lang", "en", "--text-field", "body")
    assert "no text in a field 'body'" in refused
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    assert "b.parquet" in bm.fails("split", "b.parquet", "--lang", "en")


def test_memory_does_not_grow_with_the_input(tmp_path):
    script = tmp_path / "peak.py"
    script.write_text(
        "import resource, sys\nfrom bitextmine.cli.program import main\ntry:\n    main()\n"
        "finally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)\n"
    )
    peaks = []
    for copies in (1000, 10_000):
        (tmp_path / "book.en").write_text(f"{TEXT}\n" * copies)
        command = [sys.executable, script, "split", "book.en", "-o", "out.en"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        peaks.append(int(done.stderr.split()[-1]))
    assert (tmp_path / "out.en").stat().st_size > 700_000
    assert peaks[1] < peaks[0] + 10


def test_a_crawl_becomes_a_translation_memory(root, bitextmine, bm, tmp_path):
    """From WARC to TMX by one pipe: nothing of the navigation, and each unit says where it is from."""
    make = [sys.executable, root / "mine" / "make_crawl.py", "crawl.warc.gz"]
    subprocess.run(make, cwd=tmp_path, check=True)
    pipe = (
        "bitextmine split crawl.warc.gz --by-language -o 'crawl.{lang}' && bitextmine mine crawl.en crawl.fr --origin "
        "| bitextmine score --src en --tgt fr | bitextmine filter --src en --tgt fr -o pairs.tmx"
    )
    assert bitextmine.shell(pipe, cwd=tmp_path).returncode == 0
    text = (tmp_path / "pairs.tmx").read_text()
    assert text.count("<tu>") > 250
    assert "Mentions légales" not in text and "About us" not in text
    assert text.count("We use cookies") <= 1, "resiliparse leaves one site's banner, mining keeps it once"
    origins = re.findall(
        r'"src_origin">https://\w+.example/en/(\d+).*?"tgt_origin">https://\w+.example/fr/(\d+)', text
    )
    assert len(origins) == text.count("<tu>")
    bm("report", "pairs.tmx", "-o", "report.html")
    assert "<small>https://" in (tmp_path / "report.html").read_text()
    assert sum(src == tgt for src, tgt in origins) > 0.98 * len(origins)


def test_mined_pairs_tell_their_origin_and_can_be_normalised(bm, tmp_path):
    english = ["The old harbour is closed.", "Bread is sold at the market.", "Nobody spoke on the boat."]
    french = ["Le vieux port est fermé.", "Le pain est vendu au marché.", "Personne ne parlait à bord."]
    put(tmp_path, {"a.en.txt": "\n\n".join(english), "a.fr.txt": "\n\n".join(french)})
    bm("split", "a.en.txt", "a.fr.txt", "-o", "c.{lang}")
    (tmp_path / "c.fr").write_text("".join(f"<p>{line}</p>\n" for line in french))
    mine = ("mine", "c.en", "c.fr", "--threshold", "none")
    rows = [line.split("\t")[1:] for line in bm(*mine, "--origin").out.splitlines()]
    assert sorted(rows)[2][0] == english[0] and sorted(rows)[2][1] == f"<p>{french[0]}</p>"
    assert sorted(rows)[2][2:] == ["a.en.txt 1.1", "a.fr.txt 1.1"]
    rows = [line.split("\t")[1:] for line in bm(*mine, "--normalize").out.splitlines()]
    assert sorted(rows) == sorted([list(pair) for pair in zip(english, french, strict=True)])
    (tmp_path / "c.fr.origin.tsv").write_text("a\t\t1\t1\n")
    assert "c.fr.origin.tsv" in bm.fails(*mine, "--origin")
    (tmp_path / "c.fr.origin.tsv").unlink()
    message = bm.fails(*mine, "--origin")
    assert "c.fr.origin.tsv" in message and "split -o" in message


def test_text_in_memory():
    import bitextmine

    found = list(bitextmine.split(text=TEXT, lang="en"))
    assert "".join(f"{one.text}\n" for one in found) == SENTENCES
    places = [(one.document, one.paragraph, one.sentence) for one in found]
    assert places == [("text#1", 1, 1), ("text#1", 1, 2), ("text#1", 2, 1)]
    several = bitextmine.split(text=["One.\r\nTwo.", "", "Drei \ud800."], lang="en", join="paragraph")
    texts = [(one.text, one.document) for one in several]
    assert texts == [("One. Two.", "text#1"), ("Drei \ufffd.", "text#3")]
    (told,) = bitextmine.split(text="Das Haus ist sehr groß und alt.", by_language=True)
    assert told.lang == "de"
    for wrong in ({"text": "One."}, {"text": 3, "lang": "en"}, {"text": ["One.", None], "lang": "en"}):
        with pytest.raises((bitextmine.UsageError, TypeError), match=r"text|iterable"):
            bitextmine.split(**wrong)


def test_a_full_disk_names_the_output_and_the_run_goes_on_later(bm, bitextmine, tmp_path):
    (tmp_path / "book.en.txt").write_text(f"{TEXT}\n" * 8000)
    command = f"ulimit -f 100; {sys.executable} -m bitextmine split book.en.txt -o out.en"
    done = bitextmine.shell(command, cwd=tmp_path)
    assert done.returncode == 1 and b"out.en: cannot write: File too large; free some space" in done.stderr
    bm("split", "book.en.txt", "-o", "out.en")
    assert (tmp_path / "out.en").read_text() == SENTENCES * 8000


@pytest.mark.parametrize(("lang", "said"), [("th", True), ("km", True), ("my", False), ("en", False)])
def test_scripts_that_mark_no_ends_of_sentences_are_named(bm, tmp_path, lang, said):
    (tmp_path / f"book.{lang}").write_text("หมามา แมวไป\n\nนกบิน\n")
    result = bm("split", f"book.{lang}")
    assert result.out == "หมามา แมวไป\nนกบิน\n"
    assert ("a paragraph is one line" in result.err) == said
    assert "a paragraph is one line" not in bm("split", f"book.{lang}", "--join", "paragraph").err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('en,de\n"Hello, world.","Hallo, Welt."\nGood night.,Gute Nacht.\n', "CSV"),
        ("id;text\n1;One is here.\n2;Two.\n", "CSV"),
        ('msgid "a"\nmsgstr "b"\n', "PO"),
        ('[\n {"text": "One."}\n]\n', "JSON"),
        ('{\n "text": "One."\n}\n', "JSON"),
        ("Well, I came.\nYes, he did.\nNo, she left.\n", ""),
        ("It cost 1,000 euros.\nIt cost 2,000 euros.\n", ""),
    ],
)
def test_tables_are_named_and_no_text(bm, tmp_path, text, named):
    for name in ("a.en.txt", "a.en", "a.csv"):
        (tmp_path / name).write_text(text)
        if named or name == "a.csv":
            assert f"{name}: {named or 'CSV'}" in bm.fails("split", name, "--lang", "en")
            assert bm("split", name, "--lang", "en", "--from", "text").out
        else:
            assert bm("split", name, "--lang", "en").out == text


def test_a_second_run_leaves_the_first_alone(tmp_path):
    from bitextmine.documents.split import open_outputs
    from bitextmine.errors import BitextmineError

    out = tmp_path / "out.en"
    with open_outputs(str(out), False, {}) as parts:
        with pytest.raises(BitextmineError, match="another process"), open_outputs(str(out), False, {}):
            pass
        parts.write("en", "One.", "a")
        parts.save({"finished": True})
    assert out.read_text() == "One.\n"
    assert not (tmp_path / "out.en.split.part").exists()
