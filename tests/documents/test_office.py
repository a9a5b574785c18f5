"""Books and office files, written here as their programs write them."""

import gzip
import shutil
import zipfile

import pytest

import bitextmine
from bitextmine.documents import office
from bitextmine.errors import BitextmineError, MissingPackage

STORY = ["The old harbour", "The boats came in before the storm. Nobody spoke.", "Bread was sold."]


def paragraphs(path, **options):
    return [one.text for one in bitextmine.split(path, join="paragraph", **options)]


def archive(path, parts, mimetype=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        if mimetype:
            file.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name, content in parts.items():
            file.writestr(name, content)
    return path


# --- DOCX ---

TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/{0}" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def relations(**targets):
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    each = "".join(
        f'<Relationship Id="{name}" Type="{kind}/{name}" Target="{target}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{each}</Relationships>'


def docx(path, body, notes="", name="document.xml"):
    parts = {
        "[Content_Types].xml": TYPES.format(f"word/{name}"),
        "_rels/.rels": relations(officeDocument=f"word/{name}"),
        f"word/{name}": f'<?xml version="1.0"?><w:document {W}><w:body>{body}<w:sectPr/></w:body></w:document>',
        f"word/_rels/{name}.rels": relations(footnotes="footnotes.xml", styles="styles.xml"),
        "word/footnotes.xml": f"<w:footnotes {W}>{notes}</w:footnotes>",
        "word/header1.xml": f"<w:hdr {W}><w:p><w:r><w:t>A running head</w:t></w:r></w:p></w:hdr>",
    }
    return archive(path, parts)


def run(text, properties=""):
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


WORD = f"""
<w:sdt><w:sdtContent><w:p w:rsidR="00A1"><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>{run("The old harbour")}</w:p>
</w:sdtContent></w:sdt>
<w:p w:rsidR="00A1" w:rsidRDefault="00A1">{run("The boats ")}<w:proofErr w:type="spellStart"/>{run("came")}
<w:proofErr w:type="spellEnd"/>{run(" in before the ")}<w:del w:id="1" w:author="A"><w:r>
<w:delText>great</w:delText></w:r></w:del><w:ins w:id="2" w:author="A">{run("storm.")}</w:ins>
<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr>
<w:footnoteReference w:id="1"/></w:r><w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor>
<wp:positionH><wp:posOffset>914400</wp:posOffset></wp:positionH><wps:txbx><w:txbxContent><w:p>{run("In a box.")}</w:p>
</w:txbxContent></wps:txbx></wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>
<w:p>{run("In a box.")}</w:p></w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>
{run(" Nobody spoke.")}</w:p>
<w:tbl><w:tr><w:tc><w:p>{run("Salt")}</w:p></w:tc><w:tc><w:p>{run("Twenty-one")}</w:p></w:tc></w:tr></w:tbl>
<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>Bread</w:t><w:tab/>
<w:t>was</w:t></w:r><w:r><w:t xml:space="preserve"> so</w:t><w:softHyphen/><w:t>ld</w:t><w:noBreakHyphen/>
<w:t>off.</w:t><w:br/><w:t>By the </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK
"http://a.example" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>{run("sea &lt;b&gt;")}
<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>"""
WORD_NOTES = f"""<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/></w:r>{run(" Of that winter.")}</w:p></w:footnote>"""
GOOGLE = "".join(
    f'<w:p w:rsidR="00000000" w:rsidDel="00000000" w:rsidP="00000000" w:rsidRDefault="00000000" w:rsidRPr="00000000">'
    f"<w:pPr>{heading}<w:rPr/></w:pPr>{text}</w:p>"
    for heading, text in (
        ('<w:pStyle w:val="Title"/>', run("The old harbour", '<w:rPr><w:rtl w:val="0"/></w:rPr>')),
        ("", run("The boats came in before the storm. Nobody spoke.", '<w:rPr><w:rtl w:val="0"/></w:rPr>')),
        ("", '<w:r><w:rPr><w:rtl w:val="0"/></w:rPr></w:r>'),
        ("", f'<w:hyperlink r:id="rId6">{run("Bread")}</w:hyperlink>{run(" was sold.")}'),
    )
)


def test_docx_of_google_docs(tmp_path):
    assert paragraphs(docx(tmp_path / "a.en.docx", GOOGLE)) == STORY


@pytest.mark.parametrize("name", ["document.xml", "document2.xml"])
def test_docx_of_word(tmp_path, name):
    path = docx(tmp_path / "a.en.docx", WORD, WORD_NOTES, name)
    rest = "In a box.|Salt|Twenty-one|Bread was sold-off.|By the sea <b>|Of that winter."
    assert paragraphs(path) == [*STORY[:2], *rest.split("|")]


def test_hidden_text_of_word_is_left_out(tmp_path):
    runs = run("One. ") + run("Secret. ", "<w:rPr><w:vanish/></w:rPr>")
    runs += run("Seen.", '<w:rPr><w:vanish w:val="0"/></w:rPr>') + run(" Two.")
    body = f"<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>{runs}</w:p>"
    assert paragraphs(docx(tmp_path / "a.en.docx", body)) == ["One. Seen. Two."]


# --- ODT ---

ODF = "urn:oasis:names:tc:opendocument:xmlns"
NAMESPACES = " ".join(
    f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "style", "text", "table", "draw")
)
NAMESPACES += f' xmlns:svg="{ODF}:svg-compatible:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
ODT_LIBREOFFICE = """<text:sequence-decls><text:sequence-decl text:name="Figure"/></text:sequence-decls>
<text:tracked-changes><text:changed-region text:id="c1"><text:deletion><office:change-info><dc:creator>A</dc:creator>
<dc:date>2024-01-01T00:00:00</dc:date></office:change-info><text:p>great</text:p></text:deletion></text:changed-region>
</text:tracked-changes><text:h text:style-name="Heading_20_1" text:outline-level="1"><text:bookmark text:name="x"/>The
old harbour</text:h><text:p text:style-name="P1">The boats came<text:s/><text:span text:style-name="T1">in</text:span>
before the <text:change text:change-id="c1"/>storm.<text:note text:id="ftn1" text:note-class="footnote">
<text:note-citation>1</text:note-citation><text:note-body><text:p text:style-name="F">Of that winter.</text:p>
</text:note-body></text:note>
<draw:frame draw:name="F1"><draw:text-box><text:p>In a box.</text:p></draw:text-box><svg:title>alt</svg:title>
<svg:desc>alternative</svg:desc></draw:frame><text:soft-page-break/>Nobody<office:annotation><dc:creator>A</dc:creator>
<text:p>A comment.</text:p></office:annotation> spoke.</text:p><table:table><table:table-row><table:table-cell>
<text:p>Salt</text:p></table:table-cell><table:table-cell><text:p>Twenty</text:p></table:table-cell></table:table-row>
</table:table><text:list><text:list-item><text:p>Bread was<text:tab/>sold.<text:line-break/>By the sea &lt;b&gt;
</text:p></text:list-item></text:list>"""
ODT_GOOGLE = """<text:p text:style-name="P1"><text:span text:style-name="T1">The old harbour</text:span></text:p>
<text:p text:style-name="P2"><text:span text:style-name="T2">The boats came in</text:span>
<text:span text:style-name="T2"> before the storm. </text:span><text:span>Nobody spoke.</text:span></text:p>
<text:p text:style-name="P3"/>
<text:p><text:a><text:span>Bread</text:span></text:a><text:span> was sold.</text:span></text:p>"""


def odt(path, body):
    content = (
        f'<?xml version="1.0"?><office:document-content {NAMESPACES} office:version="1.3"><office:automatic-styles>'
        f"<style:style><text:p>style</text:p></style:style></office:automatic-styles><office:body><office:text>{body}"
        "</office:text></office:body></office:document-content>"
    )
    return archive(path, {"content.xml": content}, "application/vnd.oasis.opendocument.text")


def test_odt_of_libreoffice(tmp_path):
    rest = "Of that winter.|In a box.|Salt|Twenty|Bread was sold.|By the sea <b>"
    assert paragraphs(odt(tmp_path / "a.en.odt", ODT_LIBREOFFICE)) == [*STORY[:2], *rest.split("|")]


def test_odt_of_google_docs(tmp_path):
    assert paragraphs(odt(tmp_path / "a.en.odt", ODT_GOOGLE)) == STORY


# --- EPUB ---


def epub(path, folder, package, chapters, **more):
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        f'<rootfile full-path="{folder}content.opf" media-type="application/oebps-package+xml"/></rootfiles>'
        "</container>"
    )
    parts = {"META-INF/container.xml": container, f"{folder}content.opf": package, **more}
    return archive(
        path, parts | {f"{folder}{name}": text for name, text in chapters.items()}, "application/epub+zip"
    )


def package(version, items, spine, lang="en-GB", guide=""):
    manifest = "".join(
        f'<item id="{id}" href="{href}" media-type="application/xhtml+xml"{more}/>'
        for id, href, more in items
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?><package version="{version}" xmlns="http://www.idpf.org/2007/opf">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Book</dc:title>'
        f"<dc:language>{lang}</dc:language></metadata>"
        f'<manifest><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>{manifest}</manifest>'
        f'<spine toc="ncx">{"".join(f"<itemref idref={id!r}/>" for id in spine)}</spine>{guide}</package>'
    )


def book(path, chapters, lang="en-GB", spine=None, **more):
    """EPUB 2 of chapters by the names of their files."""
    spine = spine or [name for name in chapters if name.endswith(".html")]
    return epub(path, "", package("2.0", [(name, name, "") for name in spine], spine, lang), chapters, **more)


def xhtml(body, head="<title>Book</title>"):
    return (
        "<?xml version='1.0' encoding='utf-8'?>\n<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.1//EN' 'xhtml11.dtd'>"
        f'<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><head>{head}'
        f"<style>p {{margin: 0}}</style></head><body>{body}</body></html>"
    )


def calibre(path):
    """EPUB 2: a title page of SVG, chapters cut into files, initials apart."""
    chapters = {
        "titlepage.xhtml": xhtml("<div><svg><title>Cover</title><text>COVER</text></svg></div>"),
        "index_split_000.html": xhtml(
            '<h1 class="calibre2" id="c1">The old<br class="calibre3"/>harbour</h1>'
        ),
        "index split_001.html": xhtml(
            '<p class="calibre1"><span class="dropcap">T</span>he boats came\nin <i class="calibre4">before</i> the '
            'storm.<sup class="c"><a href="index_split_002.html#n1">1</a></sup>&nbsp;Nobody spoke.</p><p> </p>'
        ),
        "index_split_002.html": xhtml(
            '<div class="calibre"><p id="n1"><a href="index%20split_001.html#r1">[1]</a> Of that winter.</p>'
            "<table><tr><td>Salt</td><td>Twenty</td></tr></table>Bread was sold.</div>"
        ),
        "toc.html": xhtml('<p><a href="index_split_000.html#c1">The old harbour</a></p>'),
    }
    items = [
        ("cover", "titlepage.xhtml", ""),
        *((f"id{n}", f"index{'%20' if n == 1 else '_'}split_00{n}.html", "") for n in range(3)),
        ("toc", "toc.html", ""),
    ]
    guide = '<guide><reference type="toc" href="toc.html" title="Contents"/></guide>'
    return epub(path, "", package("2.0", items, ["cover", "toc", "id0", "id1", "id2"], guide=guide), chapters)


def sigil(path):
    """EPUB 3: a table of contents in the spine, notes in asides, marks of printed pages, ruby."""
    chapters = {
        "Text/nav.xhtml": xhtml(
            '<nav epub:type="toc"><ol><li><a href="a.xhtml">The old harbour</a></li></ol></nav>'
        ),
        "Text/a.xhtml": xhtml(
            '<section epub:type="chapter"><h2>The old<br/>harbour</h2><p>The boats <span epub:type="pagebreak">12'
            '</span>came in before the storm.<a epub:type="noteref" href="#fn1">*</a> Nobody spoke.</p><aside id="fn1" '
            'epub:type="footnote"><p><a href="#r1">↩</a>Of that winter.</p></aside><p hidden="">Hidden.</p></section>'
        ),
        "Text/b.xhtml": xhtml(
            "<dl><dt>Salt</dt><dd>Twenty</dd></dl><p>Br<ruby>ea<rt>EA</rt></ruby>d was sold.</p>"
        ),
    }
    items = [
        ("nav", "Text/nav.xhtml", ' properties="nav"'),
        ("a", "Text/a.xhtml", ""),
        ("b", "Text/b.xhtml", ""),
    ]
    return epub(path, "OEBPS/", package("3.0", items, ["nav", "a", "b", "a"]), chapters)


@pytest.mark.parametrize("program", [calibre, sigil])
def test_epub(tmp_path, program):
    path = program(tmp_path / "book.epub")
    rest = ["Of that winter.", "Salt", "Twenty", "Bread was sold."]
    assert paragraphs(path) == ["The old", "harbour", STORY[1], *rest]
    assert {one.lang for one in bitextmine.split(path)} == {"en"}, "as the book declares"


def test_markup_that_is_not_well_formed(tmp_path):
    chapter = "<html><body><p>A <b>bold</p><p>R&D, AT&T &eacute; 1 < 2<br>next<p>Last"
    assert paragraphs(book(tmp_path / "a.epub", {"a.html": chapter})) == [
        "A bold",
        "R&D, AT&T é 1 < 2",
        "next",
        "Last",
    ]


@pytest.mark.parametrize(
    ("declared", "really"), [("utf-8", "utf-16"), ("windows-1251", "cp1251"), ("latin1", "utf-8")]
)
def test_encodings_of_books(tmp_path, declared, really):
    chapter = f"<?xml version='1.0' encoding='{declared}'?><html><p>Весна в порту</p></html>".encode(really)
    if (declared, really) == ("latin1", "utf-8"):
        chapter = b"\xef\xbb\xbf" + chapter
    assert paragraphs(book(tmp_path / "a.epub", {"a.html": chapter}, "ru")) == ["Весна в порту"]


# --- PDF ---


def pdf(path, pages):
    """Write pages, each the operators of its text; /F1 is Times with the ligature fi at 1 and the hyphen at 2."""
    font = (
        "<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/Encoding<</Type/Encoding/BaseEncoding/WinAnsiEncoding"
        "/Differences[1/fi/hyphen]>>>>"
    )
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>", font]
    for n, text in enumerate(pages):
        objects.append(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
            f"/Contents {5 + 2 * n} 0 R>>"
        )
        objects.append(f"<</Length {len(text)}>>\nstream\n{text}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(out)
    out += f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer<</Size {len(places) + 1}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n".encode()
    path.write_bytes(out)
    return path


def tex_page(head, lines, number):
    """Set lines as TeX does: words in one array, gaps as numbers, letters kerned."""
    shown = "".join(
        f"1 0 0 1 72 {700 - 14 * at} Tm [({line.replace(' ', ')-300(')})]TJ\n"
        for at, line in enumerate(lines)
    )
    return f"BT /F1 11 Tf 1 0 0 1 72 740 Tm [({head})]TJ {shown}1 0 0 1 300 60 Tm [({number})]TJ ET"


def test_pdf(tmp_path):
    """Divided words are joined, ligatures are letters, page numbers and running heads are gone."""
    pages = []
    for n, name in enumerate(("Anna", "Boris", "Carla", "David", "Elena", "Felix")):
        text = [
            f"{name} came in before the great storm of that winter, and the of\\001cers of the old har\\002",
            "bour closed the gates. Nobody spoke for a while. The market on the hill was closed as well,",
            "and the bread that had been baked was given to the children of the school. They ate it all",
            f"with {name}.",
        ]
        pages.append(tex_page(f"The Old Harbour {n + 10}" if n % 2 else "A. Writer", text, n + 10))
    lines = [one.text for one in bitextmine.split(pdf(tmp_path / "a.en.pdf", pages))]
    assert lines[:4] == [
        "Anna came in before the great storm of that winter, and the officers of the old harbour closed the gates.",
        "Nobody spoke for a while.",
        "The market on the hill was closed as well, and the bread that had been baked was given to the children of "
        "the school.",
        "They ate it all with Anna.",
    ]
    assert len(lines) == 24 and lines[23] == "They ate it all with Felix."


def test_sentences_of_a_pdf_go_on_over_pages(tmp_path):
    long = "The boats came in before the great storm of that winter and were tied to the wall by men who"
    pages = [tex_page("", [long], ""), tex_page("", ["had waited for them."], ""), tex_page("", ["End"], "")]
    assert paragraphs(pdf(tmp_path / "a.en.pdf", pages)) == [f"{long} had waited for them.", "End"]


# --- damage, bombs, what cannot be read ---


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".epub", calibre),
        (".docx", lambda path: docx(path, WORD, WORD_NOTES)),
        (".odt", lambda path: odt(path, ODT_GOOGLE)),
    ],
)
def test_damaged_archives_are_counted_and_named(tmp_path, suffix, write):
    site = tmp_path / "site"
    site.mkdir()
    content = write(site / f"good{suffix}").read_bytes()
    no_entries = content.replace(b"PK\x03\x04", b"PK\x03\x05")
    for number, damaged in enumerate((content[:-30], content[: len(content) // 2], b"", no_entries)):
        (site / f"{number}{suffix}").write_bytes(damaged)
    report = split_report(site)
    assert (report.damaged, report.documents) == (4, 1)
    for named in report.damaged_named:
        assert f"{suffix}: damaged: " in named and named.endswith("with the program that made it"), named


def split_report(folder):
    from bitextmine.documents.kinds import SplitOptions
    from bitextmine.documents.split import split_files
    from bitextmine.run import Run

    return split_files([folder], str(folder.with_suffix(".out")), SplitOptions(langs=("en",)), Run())


def test_a_damaged_part_keeps_what_is_before_it(tmp_path):
    chapters = {f"{n}.html": xhtml(f"<p>Chapter {n}.</p>" * 50) for n in range(3)}
    path = book(tmp_path / "a.epub", chapters)
    with zipfile.ZipFile(path) as file:
        place = file.getinfo("1.html").header_offset + 30 + len("1.html")
    content = bytearray(path.read_bytes())
    content[place : place + 20] = b"\xff" * 20
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.epub").write_bytes(content)
    (tmp_path / "site" / "b.txt").write_text("Good.")
    report = split_report(tmp_path / "site")
    assert report.damaged == 1
    assert (tmp_path / "site.out").read_text() == "Chapter 0.\n" * 50 + "Good.\n"


def test_a_missing_part_keeps_the_others(tmp_path, caplog):
    chapters = {f"{n}.html": xhtml(f"<p>Chapter {n}.</p>") for n in (0, 2)}
    path = book(tmp_path / "a.epub", chapters, spine=["0.html", "1.html", "2.html"])
    assert paragraphs(path) == ["Chapter 0.", "Chapter 2."]
    assert "1.html is missing" in caplog.text


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: docx(path, f"<w:p>{run('x' * 11_000_000)}</w:p>"), "a paragraph of more than"),
        (
            lambda path: odt(path, f"<text:p>{' ' * 10_000}</text:p>"),
            "more than 9,000 bytes of text, unpacked",
        ),
        (lambda path: archive(path, {"[Content_Types].xml": "spreadsheetml"}), "no text document"),
        (lambda path: archive(path, {"[Content_Types].xml": "<wordprocessingml/>"}), "damaged"),
    ],
    ids=["paragraph", "bomb", "spreadsheet", "nothing"],
)
def test_what_is_too_large_or_no_document(tmp_path, monkeypatch, make, problem):
    if "unpacked" in problem:
        monkeypatch.setattr(office, "_LARGEST", 9000)
    path = tmp_path / f"a.{'odt' if 'unpacked' in problem else 'docx'}"
    make(path)
    with pytest.raises(BitextmineError, match=problem):
        list(bitextmine.split(path, "en"))


@pytest.mark.parametrize(
    "declaration", ['<!ENTITY e SYSTEM "file:///etc/hostname">', '<!ENTITY a "ha"><!ENTITY e "&a;&a;&a;">']
)
def test_declared_entities_are_refused(tmp_path, declaration):
    content = f"<!DOCTYPE x [{declaration}]><x><p>Text &e; end</p></x>"
    path = archive(tmp_path / "a.odt", {"content.xml": content}, "application/vnd.oasis.opendocument.text")
    with pytest.raises(BitextmineError, match="declares"):
        list(bitextmine.split(path, "en"))
    text = " ".join(paragraphs(book(tmp_path / "a.epub", {"a.html": content})))
    assert "ha" not in text and "/" not in text


def test_encrypted_books_and_documents(tmp_path):
    encryption = '<encryption><EncryptedData><CipherReference URI="{}"/></EncryptedData></encryption>'
    chapters = {"a.html": xhtml("<p>Text.</p>"), "font.otf": "x"}
    name = "META-INF/encryption.xml"
    fonts = book(tmp_path / "a.epub", chapters, **{name: encryption.format("font.otf")})
    assert paragraphs(fonts) == ["Text."]
    text = book(tmp_path / "b.epub", chapters, **{name: encryption.format("a.html")})
    with pytest.raises(BitextmineError, match="encrypted"):
        list(bitextmine.split(text))


def test_damaged_pdf(tmp_path):
    whole = pdf(tmp_path / "a.en.pdf", [tex_page("", ["A line."], "")]).read_bytes()
    for content in (b"%PDF-1.7\n", whole[:200], b"%PDF-1.4\n" + b"\0" * 1000):
        (tmp_path / "b.en.pdf").write_bytes(content)
        with pytest.raises(BitextmineError, match=r"damaged PDF \(.*[^.]\); fetch it again"):
            list(bitextmine.split(tmp_path / "b.en.pdf"))


@pytest.mark.parametrize(
    ("module", "write"), [("lxml.etree", calibre), ("pypdfium2", lambda path: pdf(path, [""]))]
)
def test_a_missing_library_is_named_with_its_command(tmp_path, monkeypatch, module, write):
    path = write(tmp_path / ("a.pdf" if module == "pypdfium2" else "a.epub"))
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingPackage, match=r"pip install .lxml>=5\.0. .pypdfium2>=4\.30.$"):
        list(bitextmine.split(path, "en"))


@pytest.mark.parametrize("name", ["book", "book.txt", "book.zip"])
def test_formats_are_recognised_by_content(tmp_path, name):
    for path in (
        calibre(tmp_path / "a.epub"),
        docx(tmp_path / "a.docx", GOOGLE),
        odt(tmp_path / "a.odt", ODT_GOOGLE),
        pdf(tmp_path / "a.pdf", [tex_page("", [STORY[2]], "")]),
    ):
        shutil.copy(path, tmp_path / name)
        assert paragraphs(tmp_path / name, lang="en")[-1] == STORY[2]


def test_compressed_and_piped(bitextmine, tmp_path):
    content = docx(tmp_path / "a.docx", GOOGLE).read_bytes()
    (tmp_path / "b.en.docx.gz").write_bytes(gzip.compress(content))
    assert paragraphs(tmp_path / "b.en.docx.gz") == STORY
    done = bitextmine("split", "-", "--from", "docx", "--lang", "en", "--join", "paragraph", stdin=content)
    assert done.out.splitlines() == STORY
    assert "--from docx" in bitextmine("split", "-", "--lang", "en", stdin=content, code=1).err
