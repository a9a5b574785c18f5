"""The report as a whole: what it says of files made to be awkward, and what a browser makes of it."""

import json
import re
from html.parser import HTMLParser

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.files.source import Source
from bitextmine.reporting import Columns, write_report
from bitextmine.reporting.survey import survey
from bitextmine.signature import parse_signature, signature

VOID = {"meta", "link"}


class Page(HTMLParser):
    """An HTML file, read strictly: every tag closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.count: dict[str, int] = {}
        self.cells: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == [], "tags left open"

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))
        if tag in ("td", "th", "p", "li", "dd"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open[-1][0] == tag, (self.open[-1], tag)
        self.open.pop()

    def handle_data(self, data):
        self.text += data
        if self.cells:
            self.cells[-1] += data

    def rows(self, caption):
        """The rows of a table, each as text with spaces between its cells."""
        found = re.search(rf"<table[^>]*><caption>{re.escape(caption)}.*?</table>", self.source, re.S)
        assert found, caption
        rows = re.findall(r"<tr.*?</tr>", found[0], re.S)
        return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in rows]


def make(folder, text, name="pairs.tsv", **options):
    path = folder / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    output = folder / "report.html"
    write_report(path, output, **options)
    assert output.stat().st_size < 300_000
    return Page(output.read_bytes().decode("utf-8"))


def pairs(n, start=1.0):
    return "".join(
        f"{start + i / 1000:.6f}\tThis is the source {i}.\tVoici la cible {i}.\n" for i in range(n)
    )


def test_scores_around_the_threshold(tmp_path):
    page = make(tmp_path, pairs(1000), threshold=1.4)
    assert "threshold 1.4000" in page.text and "60.0%600 pairs" in page.text
    bars = re.findall(
        r"<rect(?P<pale> class=below)?[^>]*><title>([\d.]+) to [\d.]+: (\d+) pairs", page.source
    )
    assert sum(int(n) for _, _, n in bars) == 1000
    assert sum(int(n) for pale, _, n in bars if pale) == 400
    assert all(bool(pale) == (float(low) < 1.4) for pale, low, _ in bars)
    just = page.rows("Nearest to the threshold 1.4000")
    assert [row.split()[0] for row in just if row[0] == "1"] == [
        *("1.4040", "1.4030", "1.4020", "1.4010", "1.4000"),
        *("1.3990", "1.3980", "1.3970", "1.3960", "1.3950"),
    ]


def test_examples_go_from_best_to_worst(tmp_path):
    page = make(tmp_path, pairs(1000))
    rows = page.rows("From the best to the worst score")
    shown = [float(row.split()[0]) for row in rows if re.match(r"\d\.", row)]
    assert shown == sorted(shown, reverse=True)
    assert shown[:5] == [1.999, 1.998, 1.997, 1.996, 1.995]
    assert shown[-5:] == [1.004, 1.003, 1.002, 1.001, 1.0]
    median = rows[rows.index("Around the median") + 1]
    assert float(median.split()[0]) == pytest.approx(1.5, abs=0.01)


DOUBTFUL = {
    "empty": [("", "rien"), ("a sentence", " \u3000")],
    "no_letters": [("12,5", "12.5"), ("Chapter twelve", "***")],
    "copy": [("This was never translated", "THIS was never translated!")],
    "short": [("Yes.", "Oui, bien sûr."), ("你好", "Hello there, you")],
    "length": [("A long story of a long trip, told at great length to all.", "Un récit.")],
    "digits": [
        ("Call 112 before ten o'clock", "Appelez le 113 avant dix heures"),
        ("It is ١٢ o'clock", "Il est 13 h"),
    ],
}


@pytest.fixture(scope="module")
def ordinary(sentence_pairs):
    """200 pairs that nobody doubts."""
    return "".join(f"1.{i:03}\t{en}\t{fr}\n" for i, (en, fr) in enumerate(sentence_pairs[:200]))


@pytest.mark.parametrize("reason", DOUBTFUL)
def test_high_scores_to_doubt(tmp_path, ordinary, reason):
    doubted = "".join(f"{2 + i / 100}\t{s}\t{t}\n" for i, (s, t) in enumerate(DOUBTFUL[reason]))
    n = len(DOUBTFUL[reason])
    found = survey(_written(tmp_path, ordinary + doubted))
    count, examples = found.doubts[reason]
    assert count == found.doubted == n
    assert [pair[2:4] for pair in examples.items] == DOUBTFUL[reason][::-1]
    rows = make(tmp_path, ordinary + doubted).rows("Reasons")
    assert sum(row.endswith(f" {n} {n / (200 + n):.1%}") for row in rows) == 1


def test_what_nobody_doubts(tmp_path, ordinary):
    same = (
        "1.5\tIt costs 1,200 euros in 2020\tEn 2020, il coûte 1 200 euros\n"
        "1.5\tWe meet 3 friends at 4 p.m.\tNous voyons trois amis à 16 h\n"
        '1.5\t<a href="/?p=12&q=13">Tickets cost 5 euros each</a>\t<p id="77" class="c78">Le billet coûte 5 euros</p>\n'
    )
    found = survey(_written(tmp_path, ordinary + same))
    assert {key: count for key, (count, _) in found.doubts.items()} == dict.fromkeys(found.doubts, 0)
    assert found.doubted == 0


def _written(folder, text):
    path = folder / "some.tsv"
    path.write_text(text, encoding="utf-8")
    return Source.of(path)


def test_scores_missing_or_nan_are_counted_and_said(tmp_path):
    page = make(tmp_path, pairs(50) + "nan\tone\tun\n\ttwo\tdeux\nx\tthree\ttrois\n", threshold=1.02)
    assert "3 pairs without a usable score, the first in line 51:" in page.text
    assert "53 pairs" in page.text
    assert "56.6%30 pairs" in page.text


def test_pairs_without_scores(tmp_path):
    page = make(tmp_path, "".join(line.partition("\t")[2] for line in pairs(50).splitlines(keepends=True)))
    assert "No column of scores" in page.text
    assert "Suspicious pairs" in page.text
    assert "A few pairs" in page.text
    assert "Scores</h2>" not in page.source


@pytest.mark.parametrize("score", ["-1e300", "0", "1e-12"])
def test_all_scores_the_same(tmp_path, score):
    page = make(tmp_path, f"{score}\tOne sentence.\tUne phrase.\n" * 5, threshold=1)
    assert "The number of pairs" in page.text


def test_scores_far_apart(tmp_path):
    page = make(tmp_path, pairs(2000) + "1e15\tfar\tloin\n-1e15\tfar\tloin\n", threshold=1.5)
    assert "Outside the chart: 1 below and 1 above" in page.text
    assert "1,501 pairs" in page.text


def test_no_pairs(tmp_path):
    for text in ("", "score\tsrc\ttgt\n"):
        page = make(tmp_path, text)
        assert "There are no pairs in this file" in page.text
        assert "svg" not in page.count


MANIFEST = {
    "kind": "bitext",
    "signature": "src:en|tgt:fr|model:0123456789abcdef|search:exact|dedup:exact|k:4|margin:ratio|retrieval:max"
    "|threshold:1.010000|threshold_by:fpr-0.01|duplicates:first|version:0.1.0",
    "pairs": 40,
    "threshold": {"value": 1.01, "rule": "fpr-0.01"},
    "notes": ["threshold 1.0100: what mining <b>said</b>"],
}


def test_the_manifest_is_told(tmp_path):
    (tmp_path / "pairs.tsv.json").write_text(json.dumps(MANIFEST))
    page = make(tmp_path, pairs(40, 1.01))
    assert "en to fr" in page.text
    assert "threshold 1.0100: what mining <b>said</b>" in page.text
    assert "set by mining (fpr-0.01)" in page.text
    assert MANIFEST["signature"] in page.text
    assert "changed after" not in page.text
    assert ("p", {"dir": "auto", "lang": "fr"}) in page.attributes
    assert "speaks of 40 pairs, the file has 39" in make(tmp_path, pairs(39, 1.01)).text


@pytest.mark.parametrize(
    "content",
    [
        *(
            "{",
            "[]",
            '{"kind": "embedding"}',
            '{"kind": "bitext"}',
            '{"kind": "bitext", "signature": "x:%ff"}',
        ),
        json.dumps({**MANIFEST, "notes": [3]}),
        json.dumps({**MANIFEST, "threshold": "1.0"}),
    ],
)
def test_a_manifest_that_is_none(tmp_path, content):
    (tmp_path / "pairs.tsv.json").write_text(content)
    assert "was not used" in make(tmp_path, pairs(10)).text


HOSTILE = [
    "<script>alert('gotcha')</script>",
    "</p></td></table></section></main><script src=https://example.org/x.js></script>",
    '<img src=x onerror="alert(1)"> &lt;b&gt; &amp; &#60;i&#62; <!-- --> <![CDATA[ ]]> </style></title>',
    '" onmouseover="alert(1)" x=\'',
    "{{7*7}} ${7*7} javascript:alert(1)",
]


def test_markup_in_the_texts_is_shown_not_obeyed(tmp_path):
    text = "".join(f"{2 + i / 100}\t{s}\t{s[::-1]}\n" for i, s in enumerate(HOSTILE))
    page = make(tmp_path, text + pairs(100), name="<b onclick=alert(1)>&amp;'\".tsv")
    for s in HOSTILE:
        assert any(cell == s for cell in page.cells), s
        assert "<" not in s or s not in page.source
    assert page.count.get("script", 0) == 0
    assert page.count["title"] > 1  # of the page, and of the bars
    assert "default-src 'none'" in page.source
    assert [a["href"] for _, a in page.attributes if "href" in a] == ["data:,"]
    assert "url(" not in page.source and "@import" not in page.source


SCRIPT = "<script>alert(1)</script>\"' onload=x"


def test_nothing_in_a_manifest_becomes_markup(tmp_path):
    parts = {key: f"{key}-{SCRIPT}" for key in parse_signature(str(MANIFEST["signature"]))}
    wrong = {**MANIFEST, "notes": [f"notes-{SCRIPT}"]}
    for mark in (signature(**parts), "|".join(f"{key}:{text}" for key, text in parts.items()), SCRIPT):
        (tmp_path / "pairs.tsv.json").write_text(json.dumps({**wrong, "signature": mark}))
        page = make(tmp_path, pairs(40, 1.01))
        assert "script" not in page.count and "<script" not in page.source
        if "%" in mark:
            assert all(text in page.text for text in (*parts.values(), f"notes-{SCRIPT}"))


def test_no_name_of_a_column_becomes_markup(tmp_path):
    row = "1.5\ta sentence\tune phrase\t<b>\t</p>\n"
    page = make(
        tmp_path, "\t".join([SCRIPT] * 5) + "\n" + row * 3, columns=Columns("1", "2", "3", header=True)
    )
    assert "script" not in page.count and page.text.count(SCRIPT) == 3


def test_invisible_characters_are_named(tmp_path):
    hidden = {chr(c) for c in [*range(0x20), *range(0x7F, 0xA0)]} - {"\t", "\n"}
    hidden |= set(
        "\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\ufffe"
    )
    lines = [f"1.{i:03}\ta{c}z\tun mot\n" for i, c in enumerate(sorted(hidden))]
    for start in range(0, len(lines), 10):  # as many as are all shown
        page = make(tmp_path, "".join(lines[start : start + 10]))
        assert not hidden & set(page.source)
        for c in sorted(hidden)[start : start + 10]:
            assert f"aU+{ord(c):04X}z" in page.text


def test_any_text_makes_a_small_page(tmp_path):
    """Cells that are as long as can be in HTML, and a histogram and a grid as full as can be."""
    texts = ["\u202e" * 5000, "\"'<>&" * 1000, "𝔘" * 4000, "x" * 100_000, "e" + "\u0301" * 3000, ""]
    lines = []
    for i in range(12_000):
        s, t = texts[i % 6], texts[(i // 6) % 6]
        lines.append(f"{i / 7:.6f}\t{s[: 1 + i % 251]}\t{t[: 1 + i * 7 % 257]}\n")
    lines += [f"{9000 + i}\t{s}\t{t}\n" for i, (s, t) in enumerate((s, t) for s in texts for t in texts)]
    page = make(tmp_path, "".join(lines), threshold=900)
    assert "(100,000 characters)" in page.text


def test_replaced_bytes(tmp_path):
    raw = b"1.5\tcaf\xe9 du coin\tun mot de plus\n"
    with pytest.raises(BitextmineError, match=r"pairs\.tsv: line 1: invalid UTF-8"):
        make(tmp_path, raw)
    assert "caf\ufffd du coin" in make(tmp_path, raw, errors="replace").text


def test_the_command(bitextmine, tmp_path):
    (tmp_path / "bitext.tsv").write_text(pairs(300))
    done = bitextmine("report", "bitext.tsv", "-o", "report.html", cwd=tmp_path)
    assert (done.out, done.err) == ("", "report.html: a report on 300 pairs\n")
    file = (tmp_path / "report.html").read_text()
    bitextmine("report", "bitext.tsv", "-o", "report.html", cwd=tmp_path, env={"PYTHONHASHSEED": "7"})
    assert (tmp_path / "report.html").read_text() == file
    piped = bitextmine(
        "report", "-", "-o", "-", "--threshold", "1.1", stdin=pairs(300).encode(), cwd=tmp_path
    )
    assert "threshold 1.1000" in Page(piped.out).text
