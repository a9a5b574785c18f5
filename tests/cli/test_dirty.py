"""Dirty corpora, estimates one can act on, and languages, on the real command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from bitextmine.languages.identify import is_installed

SAMPLES = Path(__file__).resolve().parents[2] / "mine" / "samples"
JUNK = ["x"] * 300 + ["a b c", "-----", "1 2 3", "aaaaaaaaaaaaaaaaaaaa"]


def sample(lang: str) -> list[str]:
    return (SAMPLES / f"sample.{lang}").read_text(encoding="utf-8").splitlines()


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_dirt_is_left_out_and_line_numbers_stay(bitextmine, tmp_path):
    en, fr, de = sample("en"), sample("fr"), sample("de")
    before = [*JUNK, *fr[:40], *de[:30]], [*JUNK, *en[-40:], *de[:30]]
    write(tmp_path / "c.en", [*before[0], *en])
    write(tmp_path / "c.fr", [*before[1], *fr])
    with open(SAMPLES / "gold.en-fr.tsv", encoding="utf-8", newline="") as file:
        gold = {
            (int(s) + len(before[0]), int(t) + len(before[1])) for s, t in csv.reader(file, delimiter="\t")
        }
    options = ("mine", "--src", "en", "--tgt", "fra", "--ids")
    bitextmine(*options, "-o", "clean.tsv", cwd=tmp_path)
    found = {(int(row[1]), int(row[2])) for row in rows((tmp_path / "clean.tsv").read_text(encoding="utf-8"))}
    right = len(found & gold)
    assert right / len(found) >= 0.95 and right / len(gold) >= 0.93
    content = json.loads((tmp_path / "clean.tsv.json").read_text(encoding="utf-8"))
    assert "|clean:1-languages|" in content["signature"]
    taken = content["rows"]["src"]["cleaned"]
    assert taken["boilerplate"] == 0 and taken["no_letters"] >= 302 and taken["repeated"] == 1
    assert taken["copy"] + taken["language"] >= 65
    assert any("lines left out (no_letters" in note for note in content["notes"])
    estimate, (low, high) = content["null"]["precision"], content["null"]["precision_interval"]
    assert low <= estimate <= high and abs(estimate - right / len(found)) < 0.05

    bitextmine(*options, "--no-clean", "-o", "dirty.tsv", cwd=tmp_path)
    dirty = {(int(row[1]), int(row[2])) for row in rows((tmp_path / "dirty.tsv").read_text(encoding="utf-8"))}
    assert len(dirty & gold) / len(dirty) < 0.85
    assert (
        "|clean:none|" in json.loads((tmp_path / "dirty.tsv.json").read_text(encoding="utf-8"))["signature"]
    )


def test_a_corpus_of_junk_alone_says_so(bitextmine, tmp_path):
    write(tmp_path / "c.en", JUNK)
    write(tmp_path / "c.fr", sample("fr"))
    failed = bitextmine("mine", "--src", "en", "--tgt", "fr", cwd=tmp_path, code=1)
    assert "nothing to mine: 304 line(s), of which the rules took 303 no_letters, 1 repeated" in failed.err
    assert "--no-clean keeps" in failed.err


def test_a_threshold_at_an_estimated_precision(bitextmine, tmp_path):
    for lang in ("en", "fr"):
        write(tmp_path / f"c.{lang}", sample(lang))
    kept = {}
    for precision in ("0.6", "0.95"):
        found = bitextmine(
            "mine", "--src", "en", "--tgt", "fr", "--threshold", f"precision={precision}", cwd=tmp_path
        )
        assert f"threshold_by:precision-{precision}" in found.err and "by estimate" in found.err
        kept[precision] = len(rows(found.out))
    assert kept["0.95"] < kept["0.6"]


@pytest.mark.parametrize("value", ["precision=1", "precision=0", "precision=x", "precision=", "precision"])
def test_what_is_no_precision(bitextmine, tmp_path, value):
    failed = bitextmine("mine", "--src", "en", "--tgt", "fr", "--threshold", value, cwd=tmp_path, code=2)
    assert "--threshold" in failed.err and "precision=0.95" in failed.err


def test_a_precision_takes_lines_to_estimate_it(bitextmine, tmp_path):
    for lang in ("en", "fr"):
        write(tmp_path / f"c.{lang}", sample(lang)[:150])
    failed = bitextmine(
        "mine", "--src", "en", "--tgt", "fr", "--threshold", "precision=0.9", cwd=tmp_path, code=1
    )
    assert "150 x 150 lines are too few to estimate a precision" in failed.err
    gold = str(SAMPLES / "gold.en-fr.tsv")
    refused = bitextmine(
        *("mine", "--src", "en", "--tgt", "fr", "--threshold", "precision=0.9", "--gold", gold),
        cwd=tmp_path,
        code=2,
    )
    assert "gold is for --threshold auto" in refused.err


# --- languages that the encoder does not know --------------------------------------------------------------

RUSSIAN = "Старый моряк продаёт деревянную лодку за церковью."
WARNING = "was not trained on"


def test_every_command_that_uses_the_encoder_warns(bitextmine, tmp_path):
    write(tmp_path / "c.en", sample("en")[:220])
    write(tmp_path / "c.fr", [f"{RUSSIAN} {i}" for i in range(220)])
    write(tmp_path / "pairs.tsv", [f"{line}\t{RUSSIAN}" for line in sample("en")[:20]])
    write(
        tmp_path / "queries.tsv",
        ["en\tru", *(f"{line}\t{RUSSIAN} {i}" for i, line in enumerate(sample("en")[:9]))],
    )
    write(tmp_path / "labels.tsv", [f"{'AB'[i % 2]}\t{RUSSIAN} {i}" for i in range(12)])
    for command in (
        ("embed", "c.fr"),
        ("mine", "--src", "en", "--tgt", "fr"),
        ("score", "pairs.tsv"),
        ("align", "c.en", "c.fr"),
        ("evaluate", "retrieval", "--queries", "queries.tsv"),
        ("evaluate", "classification", "--train", "labels.tsv", "--test", "labels.tsv"),
    ):
        assert WARNING in bitextmine(*command, cwd=tmp_path).err, command


def test_codes_of_a_language_that_it_knows_warn_of_nothing(bitextmine, tmp_path):
    for name in ("c.fr-FR", "d.fra", "e.FR"):
        write(tmp_path / name, sample("fr")[:20])
        assert WARNING not in bitextmine("embed", name, cwd=tmp_path).err
    write(tmp_path / "c.en", sample("en")[:20])
    found = bitextmine(
        "mine", "--src", "eng", "--tgt", "fr", "--name", "c", "--threshold", "none", cwd=tmp_path
    )
    assert len(rows(found.out)) > 0 and WARNING not in found.err


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_the_report_doubts_the_wrong_language(bitextmine, tmp_path):
    en, fr, de = sample("en"), sample("fr"), sample("de")
    pairs = [
        f"{1 - i / 1000}\t{s}\t{t}"
        for i, (s, t) in enumerate(zip(en[:60], [*fr[:50], *de[:10]], strict=True))
    ]
    write(tmp_path / "pairs.tsv", pairs)
    bitextmine("report", "pairs.tsv", "-o", "r.html", cwd=tmp_path)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    row = page.split("Wrong language<small>")[1].split("</tr>")[0]
    assert ">10<" in row or ">9<" in row
    assert "Wrong language: examples" in page
