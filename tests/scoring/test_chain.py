"""mine | score | filter | report on the real command, without options; and what used to go wrong in it, silently."""

import html
import re
from pathlib import Path

import pytest

from ..cli.helpers import Here

SAMPLES = Path(__file__).resolve().parents[2] / "mine" / "samples"

SCORES = ("cosine", "margin", "length_ratio", "numbers", "copy", "quality")


@pytest.fixture(scope="module")
def mined(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """A folder with two corpora, what `mine` finds in them, with line numbers and without, and the true pairs."""
    folder = tmp_path_factory.mktemp("mined")
    parallel_text(folder, 150, extra=30)
    command = ("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model)
    bitextmine(*command, "-o", "plain.tsv", cwd=folder)
    bitextmine(*command, "--ids", "-o", "ids.tsv", cwd=folder)
    return folder


@pytest.fixture
def bm(bitextmine, tiny_model, tmp_path):
    """The command in the test's folder, with the tiny model as the default."""
    return Here(bitextmine, tmp_path, {"BITEXTMINE_MODEL": str(tiny_model)})


def soiled(line, number):
    """A line as a careless crawler saves it: with tags, with entities, or read as Windows-1252."""
    match number % 5:
        case 0:
            return f"<p>{line}</p>"
        case 1:
            first, *rest = line.split(" ")
            return " ".join([f'<b class="x">{first}</b>', *rest])
        case 2:
            return f'<a href="/page?id={number}">{line}</a><br/>'
        case 3:
            return html.escape(line).encode("ascii", "xmlcharrefreplace").decode().replace("e", "&#x65;")
    try:
        return line.encode().decode("cp1252")
    except UnicodeDecodeError:  # a byte that the code page lacks
        return f"&nbsp;{line}"


def test_markup_costs_no_pairs(bitextmine, tmp_path):
    """mine | score | filter with tags, entities and mojibake in a fifth of the lines, and without."""
    gold = {tuple(line.split("\t")) for line in (SAMPLES / "gold.en-fr.tsv").read_text().splitlines()}
    chain = "bitextmine mine {0}.en {0}.fr --ids | bitextmine score --src en --tgt fr | bitextmine filter > {0}.tsv"
    true = {}
    for name, step in (("clean", 0), ("soiled", 5)):
        for side in ("en", "fr"):
            lines = (SAMPLES / f"sample.{side}").read_text().splitlines()
            for number in range(0 if side == "en" else 2, len(lines), step or len(lines)):
                lines[number] = soiled(lines[number], number // 5) if step else lines[number]
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
        done = bitextmine.shell(chain.format(name), cwd=tmp_path)
        assert done.returncode == 0, done.stderr.decode()
        rows = [line.split("\t") for line in (tmp_path / f"{name}.tsv").read_text().splitlines()]
        true[name] = len(gold.intersection((row[1], row[2]) for row in rows))
    assert true["clean"] > 0.9 * len(gold)
    assert abs(true["soiled"] - true["clean"]) <= 0.01 * true["clean"]


@pytest.mark.parametrize("name", ["plain", "ids"])
def test_the_chain_through_parquet(bm, mined, tmp_path, name):
    parquet = pytest.importorskip("pyarrow.parquet")
    bm("score", mined / f"{name}.tsv", "-o", "scored.parquet")
    bm("filter", "scored.parquet", "-o", "kept.parquet", "--rejected", "bad.parquet")
    bm("report", "kept.parquet", "-o", "report.html")
    numbers = ["src_line", "tgt_line"] if name == "ids" else []
    kept = parquet.read_table(tmp_path / "kept.parquet")
    assert kept.column_names == ["score", *numbers, "src", "tgt", *SCORES]
    assert kept["score"].type == "double"
    assert all(kept[column].type == "int64" for column in numbers)
    page = (tmp_path / "report.html").read_text()
    assert f"<p>{kept.num_rows} pairs" in page
    assert "score in column 1 (score)" in page
    text = bm("filter", "scored.parquet").out
    assert text == bm("filter", "-", stdin=bm("score", mined / f"{name}.tsv").out.encode()).out
    only = bm("score", "kept.parquet", "--columns", "copy", "--score-only").out
    assert only.count("\n") == kept.num_rows, "Parquet has names, but no line of them"
    assert bm("filter", "scored.parquet", "--no-header").out == text.partition("\n")[2]


def test_a_column_of_decimals_is_no_score_of_ours(bm):
    """Input whose last column is a margin with four decimals, as LASER's tools write."""
    rows = "".join(
        f"The house number {i}.\tLa maison numéro {i}.\t{1 + i / 100:.4f}\n" for i in range(40)
    ).encode()
    scored = bm("score", "--columns", "length_ratio,numbers", stdin=rows).out
    assert scored.startswith("src\ttgt\tscore\tlength_ratio\tnumbers\n")
    kept = bm("filter", "--preset", "none", "--min", "numbers=1", stdin=scored.encode()).out
    assert kept == scored
    # seven such columns, and no header: nothing is taken for what it only looks like
    many = "a b c\td e f\t0.9000\t1.2000\t1.0000\t1.0000\t0.0000\t0.9000\n" * 3
    error = bm("filter", "--preset", "mild", stdin=many.encode(), code=1).err
    assert "the rows have no column quality" in error and "--columns" in error


def test_scoring_twice_replaces(bm):
    rows = b"One house.\tUne maison.\nTwo houses.\tDeux maisons.\n"
    once = bm("score", stdin=rows)
    twice = bm("score", stdin=once.out.encode())
    assert twice.out == once.out
    assert f"replaced, as the header has them already: {', '.join(SCORES)}" in twice.err
    other = bm("score", "--columns", "copy,key", stdin=once.out.encode()).out.splitlines()
    assert other[0].split("\t") == ["src", "tgt", *(n for n in SCORES if n != "copy"), "copy", "key"]
    assert [len(line.split("\t")) for line in other] == [9] * 3
    error = bm(
        "score", "--scol", "key", "--tcol", "b", "--columns", "key", stdin=b"key\tb\nx\ty\n", code=1
    ).err
    assert "column 1, a text, is called 'key'" in error


def test_no_header_is_none(bm):
    rows = b"src\ttgt\na\tb\n"
    out = bm("score", "--columns", "numbers", "--no-header", stdin=rows).out
    assert out == "src\ttgt\t1.0000\na\tb\t1.0000\n"
    assert (
        bm("filter", "--no-header", "--columns", "numbers", "--min", "numbers=1", stdin=out.encode()).out
        == out
    )


def test_a_wide_row_at_the_top_is_one_bad_row(bm, tmp_path):
    good = [f"The house number {i}.\tLa maison numéro {i}." for i in range(271)]
    rows = "\n".join(["seen\tin\ta\tcrawl\ttoday", *good, ""]).encode()
    kept = bm("filter", "--preset", "cheap", "--rejected", "bad.tsv", stdin=rows)
    assert kept.out.splitlines() == good
    assert (tmp_path / "bad.tsv").read_text() == "seen\tin\ta\tcrawl\ttoday\tmalformed\n"
    scored = bm("score", "--columns", "numbers", stdin=rows)
    assert scored.out.splitlines()[1] == "seen\tin\ta\tcrawl\ttoday\t"
    assert "1 row is malformed" in scored.err
    assert "line 1: 5 columns, not 2" in scored.err


@pytest.mark.parametrize("command", [("score", "--columns", "copy"), ("filter", "--max", "copy=0.5")])
def test_nearly_all_malformed_is_an_error(bm, tmp_path, command):
    """Also where it shows only after many rows."""
    rows = b"a b\tc d\n" * 200 + b"no tab in here\n" * 30_000
    out = bm(*command, "-o", "out.tsv", stdin=rows, code=1)
    assert re.search(r"line 201: 1 columns, not 2; only 200 of [\d,]+ rows can be read as a pair", out.err)
    out = bm(*command, "-o", "out.tsv", stdin=b"\xff\tb\n" * 3, code=1)
    assert "none of 3 rows can be read as a pair" in out.err
    assert list(tmp_path.iterdir()) == []
    bm(*command, stdin=b"a b\tc d\n" * 2 + b"no tab\n" * 30)
    out = bm(*command, stdin=b"no tab\n" * 30, code=1)
    assert "cannot tell which of its 1 column(s) are source and target" in out.err


def test_three_columns_of_text_are_not_guessed_at(bm):
    rows = b"http://x\ta b\tc d\n" * 3
    for command in (("score", "--columns", "copy"), ("filter", "--max", "copy=0.5")):
        assert "cannot tell which of its 3 column(s)" in bm(*command, stdin=rows, code=1).err
        bm(*command, "--scol", "2", "--tcol", "3", stdin=rows)
    # a rule that looks at no text needs to know of none
    assert bm("filter", "--equal", "1=http://x", stdin=rows).out.encode() == rows


def test_swapped_columns_are_noticed(bm, sentence_pairs):
    pytest.importorskip("py3langid")
    pairs = "".join(f"{en}\t{fr}\n" for en, fr in sentence_pairs[:80]).encode()
    swapped = bm("score", "--src", "fr", "--tgt", "en", "--columns", "lang", stdin=pairs).err
    assert "source and target look swapped" in swapped and "--src en --tgt fr" in swapped
    for langs, others in ((("en", "fr"), ""), (("de", "it"), "--src is de"), (("en", "it"), "--tgt is it")):
        said = bm("score", "--src", langs[0], "--tgt", langs[1], "--columns", "lang", stdin=pairs).err
        assert "swapped" not in said
        assert others in said and ("look like 'fr'" in said) == (langs[1] != "fr")
    noisy = pairs + "Good morning to you all.\tIch wünsche Ihnen allen einen guten Morgen.\n".encode() * 15
    said = bm("score", "--src", "en", "--tgt", "de", "--columns", "lang", stdin=noisy).err
    assert "--tgt is de, but 80 of the first 95 texts look like 'fr'" in said
