import gzip
import json

import numpy as np
import pytest

from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.blocks import one_cell
from bitextmine.mining.bitext import Bitext
from bitextmine.mining.gold import read_gold, read_mined


def bitext(folder, src, tgt, pairs):
    for lang, lines in (("en", src), ("fr", tgt)):
        (folder / f"c.{lang}").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8", newline=""
        )
    s, t, score = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Bitext(
        np.array(s, dtype=np.int64),
        np.array(t, dtype=np.int64),
        np.array(score, dtype=np.float64),
        Corpus(folder / "c.en"),
        Corpus(folder / "c.fr"),
        "k:4|version:0",
        {"candidates": 3},
        ("a note",),
    )


def test_one_pair_is_one_line_whatever_is_inside(tmp_path):
    nasty = "a\tb\rc\x0bd\x0ce\x1cf\x85g\u2028h\u2029\r\ri"
    found = bitext(tmp_path, [nasty, "x"], ["y", "z\x1e"], [(0, 1, 1.5), (1, 0, 1.25)])
    found.write(tmp_path / "out.tsv")
    rows = (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()
    assert rows == ["1.500000\ta b c d e f g h i\tz ", "1.250000\tx\ty"]
    assert one_cell("a  b") == "a  b"


def test_a_file_and_its_json(tmp_path):
    found = bitext(tmp_path, ["é", "b"], ["c", "d"], [(0, 1, 1.5)])
    found.write(tmp_path / "out.tsv.gz", ids=True)
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == "1.500000\t1\t2\té\td\n"
    about = json.loads((tmp_path / "out.tsv.gz.json").read_text())
    assert (about["kind"], about["pairs"], about["signature"]) == ("bitext", 1, "k:4|version:0")
    assert "a note" in found.to_table()
    mined = read_mined(tmp_path / "out.tsv.gz")
    assert (mined.src.tolist(), mined.tgt.tolist(), mined.score.tolist()) == ([0], [1], [1.5])


def test_a_parquet_file_has_the_cells_of_the_lines(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    found = bitext(tmp_path, ["a\tb", "é"], ["c", "d"], [(1, 0, 1.5), (0, 1, 1.25)])
    found.write(tmp_path / "out.parquet", ids=True)
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["score", "src_line", "tgt_line", "src", "tgt"]
    assert [str(kind) for kind in table.schema.types[:3]] == ["double", "int64", "int64"]
    found.write(tmp_path / "out.tsv", ids=True)
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    assert ["\t".join(f"{x:.6f}" if isinstance(x, float) else str(x) for x in row) for row in rows] == (
        (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()
    )
    assert json.loads((tmp_path / "out.parquet.json").read_text())["pairs"] == 2
    mined = read_mined(tmp_path / "out.parquet")
    assert (mined.src.tolist(), mined.tgt.tolist(), mined.score.tolist()) == ([1, 0], [0, 1], [1.5, 1.25])


def test_a_frame_holds_the_pairs_and_the_texts_as_they_stand(tmp_path):
    frame = bitext(tmp_path, ["a\tb", "é"], ["c", "d"], [(1, 0, 1.5), (0, 1, 1.25)]).to_frame()
    assert frame.to_dict("list") == {
        "score": [1.5, 1.25],
        "src_line": [2, 1],
        "tgt_line": [1, 2],
        "src": ["é", "a\tb"],
        "tgt": ["c", "d"],
    }
    assert len(bitext(tmp_path, ["a"], ["b"], []).to_frame()) == 0


@pytest.mark.parametrize("row", ["a\t1\t2", "1.0\t1", "", "nan\t1\t2", "1.0\t0\t2"])
def test_what_is_no_mined_pair_is_named(tmp_path, row):
    path = tmp_path / "mined.tsv"
    path.write_text(f"1.0\t1\t2\ta\tb\n{row}\n")
    with pytest.raises(BitextmineError, match=r"mined.tsv: line 2: expected"):
        read_mined(path)


def test_mined_pairs_behind_a_header(tmp_path):
    path = tmp_path / "scored.tsv"
    path.write_text("src\ttgt\ttgt_line\tsrc_line\tscore\tmargin\na\tb\t2\t1\t1.25\t9.0\n")
    mined = read_mined(path)
    assert (mined.src.tolist(), mined.tgt.tolist(), mined.score.tolist()) == ([0], [1], [1.25])
    path.write_text("score\tsrc\ttgt\n1.25\t1\t2\n")
    with pytest.raises(BitextmineError, match=r"scored.tsv: no column src_line or tgt_line; .* --ids"):
        read_mined(path)


def test_gold(tmp_path):
    path = tmp_path / "gold.tsv"
    path.write_text("3\t4\n\n1\t2\tanything\r\n3\t4\n")
    gold = read_gold(path)
    assert list(zip(gold.src.tolist(), gold.tgt.tolist(), strict=True)) == [(0, 1), (2, 3)]


@pytest.mark.parametrize("row", ["1 2", "a\tb", "0\t1", "\u0661\t1"])
def test_what_is_no_gold_pair_is_named(tmp_path, row):
    path = tmp_path / "gold.tsv"
    path.write_text(f"1\t1\n{row}\n", encoding="utf-8")
    with pytest.raises(BitextmineError, match=r"gold.tsv: line 2: "):
        read_gold(path)
