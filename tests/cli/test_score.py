"""`bitextmine score`."""

import hashlib
import subprocess
import sys

import pytest

from bitextmine.encoder.folder import QUALITY
from bitextmine.shipped import shipped_folder

from .helpers import GOOD, tsv


def test_a_second_encoder(score):
    lines, err = score(tsv(GOOD), "--second", "default")
    assert lines[0].split(b"\t")[2:6] == [b"cosine", b"margin", b"cosine2", b"margin2"]
    assert "|second:" in err
    _, err = score(tsv(GOOD), "--second", "default", "--columns", "numbers")
    assert "--second changes nothing" in err
    _, err = score(tsv(GOOD), "--columns", "margin2", code=2)
    assert "pass --second" in err


def test_score_only_and_paste(score):
    scored, _ = score(tsv(GOOD), "--columns", "numbers,cosine")
    assert scored.pop(0) == b"src\ttgt\tnumbers\tcosine"
    assert score(tsv(GOOD), "--columns", "numbers,cosine", "--no-header")[0] == scored
    only, _ = score(tsv(GOOD), "--columns", "numbers,cosine", "--score-only")
    assert [
        b"\t".join((row, cells)) for row, cells in zip(tsv(GOOD).splitlines(), only, strict=True)
    ] == scored


def test_columns_by_position_and_by_name(score):
    rows = [("url", "fr", "n", "en")] + [("http://x", fr, str(i), en) for i, (en, fr) in enumerate(GOOD)]
    added, named = ("--columns", "cosine,copy"), ("--scol", "en", "--tcol", "fr")
    plain, _ = score(tsv(GOOD), *added, "--score-only")
    by_number, _ = score(tsv(rows[1:]), "--scol", "4", "--tcol", "2", *added)
    assert by_number.pop(0) == b"column_1\ttgt\tcolumn_3\tsrc\tcosine\tcopy"
    assert [line.split(b"\t", 4)[4] for line in by_number] == plain
    by_name, _ = score(tsv(rows), "--header", *named, *added)
    assert by_name == [b"url\tfr\tn\ten\tcosine\tcopy", *by_number]
    # a column that is asked for by name says that there is a header
    assert score(tsv(rows), *named, *added)[0] == by_name
    assert score(tsv(rows), *named, "--columns", "copy", "--score-only")[0][0] == b"copy"


def test_normalized_texts(score, run, tmp_path):
    rows = [b"<p>Fish &amp; chips</p>\tn1\tPoisson  et frites\r", b"one cell", b"a\tn3\tb"]
    where = ("--scol", "1", "--tcol", "3", "--columns", "copy", "--no-header")
    plain, _ = score(b"\n".join(rows) + b"\n", *where)
    found, _ = score(b"\n".join(rows) + b"\n", *where, "--normalize")
    assert found == [b"Fish & chips\tn1\tPoisson et frites" + plain[0][len(rows[0]) - 1 :], *plain[1:]]
    again = b"copy\tsrc\ttgt\n0\t<b>x</b>\ty&amp;z\n"
    assert score(again, "--columns", "copy", "--normalize")[0] == [b"src\ttgt\tcopy", b"x\ty&z\t0.0000"]
    out = tmp_path / "out.jsonl"
    score(again, "--columns", "copy", "--normalize", "-o", str(out))
    assert '"x"' in out.read_text() and '"y&z"' in out.read_text()


def test_malformed_rows_keep_their_bytes_and_place(score):
    rows = [b"a\tb", b"no tab", b"", b"x\ty\tz", b"\xff\xfe\tb", b"\xed\xa0\x80\tb", b"c\td\r", b"e\tf"]
    lines, err = score(b"\n".join(rows), "--columns", "cosine,numbers")
    assert lines.pop(0) == b"src\ttgt\tcosine\tnumbers"
    assert lines[1:6] == [row + b"\t\t" for row in rows[1:6]]
    assert lines[6].startswith(b"c\td\t") and lines[6].endswith(b"\r")  # a Windows line end stays at the end
    assert lines[7].startswith(b"e\tf\t") and len(lines) == len(rows)
    assert "5 rows are malformed" in err and "<stdin>: line 2: 1 columns, not 2" in err
    _, err = score(b"\n".join(rows), "--columns", "cosine", "--strict", code=1)
    assert "<stdin>: line 2: 1 columns, not 2" in err
    _, err = score(b"h1\th2\na\tb\n\xff\tb\n", "--header", "--columns", "copy", "--strict", code=1)
    assert "line 3: invalid UTF-8" in err


def test_empty_input(score, sieve):
    assert score(b"", "--columns", "copy")[0] == [b"src\ttgt\tcopy"]
    assert score(b"", "--columns", "copy", "--no-header")[0] == sieve(b"")[0] == []
    assert "--header" in score(b"", "--header", code=1)[1]
    lines, _ = score(b"\xef\xbb\xbfsrc\ttgt\n", "--header", "--columns", "copy")
    assert lines == [b"src\ttgt\tcopy"]


def test_chunks_of_a_pipe_do_not_matter(bitextmine, tiny_model):
    rows = tsv(GOOD * 40)
    environment = bitextmine.environment({"BITEXTMINE_MODEL": str(tiny_model)})
    command = [*bitextmine.argv, "score", "--columns", "cosine,margin", "--window", "50"]
    whole = subprocess.run(command, input=rows, capture_output=True, env=environment, check=True).stdout
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    for start in range(0, len(rows), 777):
        child.stdin.write(rows[start : start + 777])
        child.stdin.flush()
    assert child.communicate()[0] == whole


@pytest.mark.parametrize(
    ("command", "options", "package"),
    [
        ("score", ("--columns", "lang", "--src", "en", "--tgt", "fr"), "py3langid>=0.4"),
        ("filter", ("--equal", "src_lang=en"), "py3langid>=0.4"),
        ("score", ("--columns", "copy", "-o", "x.parquet"), "pyarrow>=15"),
    ],
)
def test_missing_extras(run, monkeypatch, tmp_path, command, options, package):
    from bitextmine.scoring.columns.catalogue import identifier

    identifier.cache_clear()
    monkeypatch.chdir(tmp_path)
    for module in ("py3langid", "py3langid.langid", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "bitextmine.files.formats.parquet", raising=False)
    lines, err = run(command, tsv(GOOD), options, 1)
    assert f"pip install '{package}'" in err
    assert lines == []
    assert list(tmp_path.iterdir()) == []


def test_what_an_output_or_k_cannot_hold_is_told(bm, tmp_path):
    for lang, line in (("en", "Good morning."), ("fr", "Bonjour.")):
        (tmp_path / f"a.{lang}").write_text(f"{line}\n")
    said = bm("score", "a.en", "a.fr", "--columns", "copy", "-o", "x.{lang}").err
    assert "the columns are lost" in said and (tmp_path / "x.fr").read_text() == "Bonjour.\n"
    found = bm("score", "a.en", "a.fr", "--columns", "margin", "-k", "100000000")
    assert "k is 4,096" in found.err and "|k:4096|" in found.err


@pytest.mark.parametrize("command", [("score", "p.tsv", "--model", "model"), ("info", "model")])
def test_a_model_file_without_an_end_is_refused(bm, tmp_path, command):
    """A link to /dev/zero would be read for ever."""
    (tmp_path / "p.tsv").write_text("one\tun\n")
    (tmp_path / "model").mkdir()
    for file in shipped_folder("europe5").iterdir():
        (tmp_path / "model" / file.name).symlink_to("/dev/zero" if file.name == "ngrams.txt" else file)
    assert "ngrams.txt: not a regular file" in bm.fails(*command)


@pytest.mark.parametrize("kind", ["damaged", "folder"])
def test_networks_of_quality_that_cannot_be_read_are_told_before_anything_is_written(bm, tmp_path, kind):
    (tmp_path / "p.tsv").write_text("one\tun\n")
    (tmp_path / "model").mkdir()
    for file in shipped_folder("europe5").iterdir():
        if file.name != QUALITY:
            (tmp_path / "model" / file.name).symlink_to(file)
    place = tmp_path / "model" / QUALITY
    place.mkdir() if kind == "folder" else place.write_bytes(
        (shipped_folder("europe5") / QUALITY).read_bytes()[:99]
    )
    done = bm("score", "p.tsv", "--model", "model", code=1)
    assert f"model/{QUALITY}: {'not a regular file' if kind == 'folder' else 'damaged'}" in done.err
    assert done.out == ""


def test_the_networks_of_quality_are_in_the_signature(bm, tmp_path):
    (tmp_path / "p.tsv").write_text("one\tun\n")
    digest = hashlib.sha256((shipped_folder("europe5") / QUALITY).read_bytes()).hexdigest()
    assert f"|quality:{digest[:16]}" in bm("score", "p.tsv", "--model", "europe5").err
    assert "quality:" not in bm("score", "p.tsv", "--columns", "cosine").err


def test_languages_of_the_file_itself_need_no_note(bm, tmp_path):
    (tmp_path / "p.jsonl").write_text('{"translation": {"en": "Good morning.", "fr": "Bonjour."}}\n')
    note = "--src and --tgt change nothing"
    assert note not in bm("score", "p.jsonl", "--columns", "copy").err
    assert note in bm("score", "p.jsonl", "--columns", "copy", "--src", "en", "--tgt", "fr").err
