"""Files that are valid for their libraries and hostile to a command: each ends in a sentence, or in clean output."""

import json

import pytest

from bitextmine.files.json_toml import parse_toml

SCORE = ("score", "--columns", "length_ratio", "-o", "-")


def written(path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


def test_bytes_in_parquet_are_text(bitextmine, tmp_path):
    texts = {"src": [b"Hello", "Caf\u00e9".encode()], "tgt": [b"Salut", b"Bar"]}
    said = bitextmine(*SCORE, written(tmp_path / "x.parquet", texts)).out
    assert said == "src\ttgt\tlength_ratio\nHello\tSalut\t1.0000\nCaf\u00e9\tBar\t1.3333\n"


def parquet_columns(case):
    pyarrow = pytest.importorskip("pyarrow")
    damaged = pyarrow.Array.from_buffers(
        pyarrow.string(),
        1,
        [None, pyarrow.array([0, 2], pyarrow.int32()).buffers()[1], pyarrow.py_buffer(b"\xff\xfe")],
    )
    twice = pyarrow.StructArray.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    return {
        "bytes": {"src": [b"\xff\xfe"], "tgt": [b"x"]},
        "lists": {"src": [["Hello"]], "tgt": ["Salut"]},
        "nulls": {"src": pyarrow.nulls(3), "tgt": pyarrow.nulls(3)},
        "no columns": {},
        "damaged": {"src": damaged, "tgt": ["x"]},
        "struct": {"src": ["x"], "tgt": ["y"], "more": twice},
    }[case]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("bytes", "invalid UTF8"),
        ("lists", "row 1: src is no text"),
        ("nulls", "row 1: no src"),
        ("no columns", "without columns"),
        ("damaged", "damaged Parquet file"),
        ("struct", "damaged Parquet file"),
    ],
)
def test_parquet_that_holds_no_pairs_is_refused(bitextmine, tmp_path, case, message):
    path = written(tmp_path / "x.parquet", parquet_columns(case))
    error = bitextmine.fails(*SCORE, path)
    assert "x.parquet" in error and message.lower() in error.lower()


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_header_is_one_line(bitextmine, tmp_path, suffix):
    row = {"src": "Hello", "tgt": "Salut", "a\tb\nc": "x"}
    path = tmp_path / f"x.{suffix}"
    if suffix == "jsonl":
        path.write_text(json.dumps(row) + "\n")
    else:
        written(path, {name: [value] for name, value in row.items()})
    assert bitextmine(*SCORE, path).out == "src\ttgt\ta b c\tlength_ratio\nHello\tSalut\tx\t1.0000\n"


@pytest.mark.parametrize(
    "text",
    ["a" + ".a" * 100_000 + " = 1", "x = " + "[" * 5000 + "]" * 5000, "x = 1\n" * 100_000, '"a b" . ' * 99],
)
def test_hostile_toml_is_refused(bitextmine, tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(ValueError):
        parse_toml(text)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("Hello\tSalut\n")
    assert "x.toml: not valid TOML" in bitextmine.fails("filter", "--rules", path, pairs)


@pytest.mark.parametrize(
    "change", [{"pairs": 10**400}, {"threshold": {"value": 10**400}}, {"notes": ["x" * 1000] * 20_000}]
)
def test_a_report_of_a_monstrous_manifest_is_small(bitextmine, tmp_path, change):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("1.5\tHello there\tSalut toi\n" * 3)
    content = {"kind": "bitext", "signature": "src:en|tgt:fr|k:4|margin:ratio", "pairs": 3, **change}
    (tmp_path / "pairs.tsv.json").write_text(json.dumps(content))
    bitextmine("report", pairs, "-o", tmp_path / "x.html")
    assert (tmp_path / "x.html").stat().st_size < 300_000
