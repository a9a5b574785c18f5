"""`bitextmine evaluate`: retrieval and mining; tests/evaluation has the other measures."""

import json
import re

import pytest

from bitextmine.shipped import SHIPPED

from .helpers import MINE
from .test_mine import SAMPLES, gold, sample


@pytest.fixture
def true(bm, parallel_text, tmp_path):
    """corpus.en, corpus.fr, gold.tsv and the mined pairs, mined.tsv."""
    pairs = parallel_text(tmp_path, 200, extra=100)
    en, fr = ((tmp_path / f"corpus.{lang}").read_text().splitlines() for lang in ("en", "fr"))
    (tmp_path / "gold.tsv").write_text("".join(f"{en.index(e) + 1}\t{fr.index(f) + 1}\n" for e, f in pairs))
    bm(*MINE, "--ids", "-o", "mined.tsv")


@pytest.mark.usefixtures("true")
def test_mining(bm, tmp_path):
    report = bm("evaluate", "mining", "mined.tsv", "--gold", "gold.tsv").out
    for word in ("precision", "recall", "95%", "task:mining"):
        assert word in report
    f1 = re.search(r"^F1 (\d+\.\d+)", report, re.M)
    assert f1 is not None and float(f1[1]) > 80
    piped = (tmp_path / "mined.tsv").read_bytes()
    assert bm("evaluate", "mining", "-", "--gold", "gold.tsv", stdin=piped).out == report
    whole = json.loads(bm("evaluate", "mining", "mined.tsv", "--gold", "gold.tsv", "--format", "json").out)
    assert 0.8 < whole["f1"] <= 1 and whole["gold"] == 200
    assert whole["low"] <= whole["f1"] <= whole["high"]


@pytest.mark.parametrize(
    ("mined", "note"),
    [
        ("", "there is no mined pair"),
        ("1.5\t1\t1\ta\tb\n", "no mined pair is gold"),
        ("1.5\t1\t2\ta\tb\n", ""),
    ],
)
def test_mining_of_few_pairs(bm, tmp_path, mined, note):
    (tmp_path / "gold.tsv").write_text("1\t2\n3\t1\n")
    (tmp_path / "mined.tsv").write_text(mined)
    out = bm("evaluate", "mining", "mined.tsv", "--gold", "gold.tsv").out
    assert note in out and (note or "no mined pair" not in out)


@pytest.mark.parametrize("digits", ["9" * 25, "9" * 5000], ids=len)
def test_endless_line_numbers(bm, tmp_path, digits):
    (tmp_path / "gold.tsv").write_text(f"1\t1\n{digits}\t2\n")
    (tmp_path / "pairs.tsv").write_text("0.9\t1\t1\tA doctor.\tUn médecin.\n")
    assert "gold.tsv: line 2" in bm.fails("evaluate", "mining", "pairs.tsv", "--gold", "gold.tsv")
    (tmp_path / "gold.txt").write_text(f"[0]:[0]\n[1]:[{digits}]\n")
    assert "gold.txt: line 2" in bm.fails("evaluate", "align", "gold.txt", "--gold", "gold.txt")


def test_retrieval(bitextmine, tmp_path):
    en, fr = sample("en"), sample("fr")
    rows = ["en\tfr", *(f"{en[i - 1]}\t{fr[j - 1]}" for i, j in sorted(gold()))]
    (tmp_path / "queries.tsv").write_text("".join(f"{row}\n" for row in rows))
    for lang in ("en", "fr"):
        (tmp_path / f"distractors.{lang}.txt").write_text((SAMPLES / f"sample.{lang}").read_text())
    evaluate = ("evaluate", "retrieval", "--queries", "queries.tsv", "--distractors", ".")
    again = ("--rescore", "--second", SHIPPED[-1])
    head, *found = bitextmine(*evaluate, *again, cwd=tmp_path).out.splitlines()
    measures = ["cosine", "ratio-4", "csls-10", "rescored-4", "second", "both"]
    assert head.split() == ["P@1", "queries", "pool", *measures]
    for row in found[:2]:
        assert all(float(cell) > 95 for cell in row.split()[-9::3]), row
    assert "|scorer:" in found[-1] and "|second:" in found[-1]
    aligned = ("evaluate", "retrieval", "--src-file", "a.en", "--tgt-file", "b.fr")
    for option in (["--rescore"], ["--second", "default"]):
        assert f"{option[0]} goes with --queries" in bitextmine(*aligned, *option, code=2).err
