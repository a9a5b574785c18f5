"""`bitextmine mine`."""

import csv
import gzip
import json
import re
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

from bitextmine.languages.identify import is_installed
from bitextmine.shipped import SHIPPED

from .helpers import MINE, NO_MODEL, contents, scores, texts, write

SAMPLES = Path(__file__).resolve().parents[2] / "mine" / "samples"
JUNK = ["x"] * 300 + ["a b c", "-----", "1 2 3", "aaaaaaaaaaaaaaaaaaaa"]
LANGUAGES = ("--src", "en", "--tgt", "fr")


def sample(lang):
    return (SAMPLES / f"sample.{lang}").read_text(encoding="utf-8").splitlines()


def gold():
    with open(SAMPLES / "gold.en-fr.tsv", encoding="utf-8", newline="") as file:
        return {(int(src), int(tgt)) for src, tgt in csv.reader(file, delimiter="\t")}


@pytest.fixture(scope="module")
def embedded_samples(bitextmine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for lang in ("en", "fr"):
        shutil.copy(SAMPLES / f"sample.{lang}", folder)
    bitextmine("embed", "sample.en", "sample.fr", cwd=folder)
    return folder


@pytest.fixture
def samples(embedded_samples, tmp_path):
    shutil.copytree(embedded_samples, tmp_path, dirs_exist_ok=True)


@pytest.mark.usefixtures("samples")
def test_log_odds_by_default(bitextmine, tmp_path):
    usual = bitextmine(*MINE, "--ids", "-o", "usual.tsv", cwd=tmp_path)
    assert "|scorer:" in usual.err
    details = json.loads((tmp_path / "usual.tsv.json").read_text())
    assert 0.2 < details["log_odds"]["share_of_pairs"] < 0.9
    rows = [row.split("\t") for row in (tmp_path / "usual.tsv").read_text().splitlines()]
    likely = [row for row in rows if float(row[0]) >= 0]
    right = sum((int(row[1]), int(row[2])) in gold() for row in likely)
    assert right > 0.95 * len(likely) and right > 0.9 * len(gold())
    matched = bitextmine(*MINE, "--retrieval", "matching", cwd=tmp_path)
    assert all(score > 0 for score in scores(matched.out))
    for margins in (("--no-rescore",), ("--margin", "distance"), ("-k", "1")):
        plain = bitextmine(*MINE, *margins, cwd=tmp_path)
        assert "|scorer:" not in plain.err
        assert 0 <= scores(plain.out)[0] < 4


@pytest.mark.usefixtures("samples")
def test_a_second_encoder(bitextmine, tmp_path):
    """Its vectors are kept, a second run is the same, and without them the first result is written."""
    bitextmine(*MINE, "-o", "alone.tsv", cwd=tmp_path)
    again = (*MINE, "--second-budget", "0.1")
    found = bitextmine(*again, "--second", SHIPPED[-1], "-o", "both.tsv", cwd=tmp_path)
    assert re.search(
        r"second encoder .*: \d+ lines \(\d\.\d%\) encoded again; (\d+ decisions? changed|it adds nothing)",
        found.err,
    )
    assert "|second:" in found.err and len(list(tmp_path.glob("sample.??.*.lines"))) == 2
    before = contents(tmp_path)
    bitextmine(*again, "--second", SHIPPED[-1], "-o", "both.tsv", cwd=tmp_path)
    assert contents(tmp_path) == before
    failed = bitextmine(*again, "--second", "precomputed", "-o", "failed.tsv", code=1, cwd=tmp_path)
    assert "embed CORPUS --vectors" in failed.err and "of the first encoder alone" in failed.err
    assert (tmp_path / "failed.tsv").read_bytes() == (tmp_path / "alone.tsv").read_bytes()


def test_options_change_the_pairs_as_they_say(bm, parallel_text, tmp_path):
    """The direction does not matter, more neighbours than lines are all lines."""
    parallel_text(tmp_path, 60, extra=30)
    everything = bm(*MINE).out
    back = bm("mine", "--src", "fr", "--tgt", "en", "--threshold", "none").out
    assert {(fr, en) for en, fr in texts(everything)} == set(texts(back))
    assert bm(*MINE, "-k", "90").out == bm(*MINE, "-k", "100000000").out


def test_the_same_bytes_again(bm, parallel_text, tmp_path):
    """In another run, in another locale, in a file, compressed, without embeddings."""
    parallel_text(tmp_path, 300, extra=50)
    first = bm(*MINE, "--ids").out
    assert "é" in first
    assert bm(*MINE, "--ids", env={"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}).out == first
    assert bm(*MINE, "--ids", "-o", "out.tsv").out == ""
    assert (tmp_path / "out.tsv").read_text() == first
    manifest = json.loads((tmp_path / "out.tsv.json").read_text())
    assert manifest["pairs"] == len(first.splitlines())
    for part in ("k:4", "margin:ratio", "retrieval:max", "version:"):
        assert part in manifest["signature"]
    (tmp_path / "corpus.en.npy").unlink()
    bm(*MINE, "--ids", "-o", "out.tsv.gz")
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == first


def test_tabs_and_long_lines(bm, parallel_text, sentence_pairs, tmp_path):
    """A tab becomes a space; lines of a megabyte are mined."""
    pairs = parallel_text(tmp_path, 20)
    long = " ".join(fr for _, fr in sentence_pairs)[:1_000_000]
    text = (tmp_path / "corpus.fr").read_text().replace(" de ", "\tde ")
    assert "\t" in text
    (tmp_path / "corpus.fr").write_text(f"{text}{long}\n{'x' * 1_000_000}\nFin.\n")
    mined = bm(*MINE).out
    vectors = np.load(tmp_path / "corpus.fr.npy")
    assert vectors.shape[0] == 23 and np.isfinite(vectors).all()
    assert all(row.count("\t") == 2 for row in mined.splitlines())
    assert len(set(texts(mined)) & set(pairs)) >= 15


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_cleaning_keeps_line_numbers(bitextmine, tmp_path):
    en, fr, de = sample("en"), sample("fr"), sample("de")
    before = [*JUNK, *fr[:40], *de[:30]], [*JUNK, *en[-40:], *de[:30]]
    write(tmp_path / "c.en", [*before[0], *en])
    write(tmp_path / "c.fr", [*before[1], *fr])
    true = {(src + len(before[0]), tgt + len(before[1])) for src, tgt in gold()}
    options = ("mine", "--src", "en", "--tgt", "fra", "--ids")
    found, details = {}, {}
    for name, more in (("clean", ()), ("dirty", ("--no-clean",))):
        bitextmine(*options, *more, "-o", f"{name}.tsv", cwd=tmp_path)
        rows = [row.split("\t") for row in (tmp_path / f"{name}.tsv").read_text().splitlines()]
        found[name] = {(int(row[1]), int(row[2])) for row in rows}
        details[name] = json.loads((tmp_path / f"{name}.tsv.json").read_text(encoding="utf-8"))
    right = len(found["clean"] & true)
    precision = right / len(found["clean"])
    assert precision >= 0.95 and right / len(true) >= 0.93
    assert len(found["dirty"] & true) / len(found["dirty"]) < 0.85
    assert "|clean:4-languages|" in details["clean"]["signature"]
    assert "|clean:none|" in details["dirty"]["signature"]
    taken = details["clean"]["rows"]["src"]["cleaned"]
    assert taken["boilerplate"] == 0 and taken["no_letters"] >= 302 and taken["repeated"] == 1
    assert taken["copy"] + taken["language"] >= 65
    low, high = details["clean"]["estimate"]["precision_interval"]
    estimate = details["clean"]["estimate"]["precision"]
    assert low <= estimate <= high and abs(estimate - precision) < 0.05


@pytest.mark.usefixtures("samples")
def test_a_threshold_by_precision(bitextmine, tmp_path):
    kept = {}
    for precision in ("0.6", "0.95"):
        found = bitextmine("mine", *LANGUAGES, "--threshold", f"precision={precision}", cwd=tmp_path)
        assert f"threshold_by:precision-{precision}" in found.err
        kept[precision] = len(found.out.splitlines())
    assert 0 < kept["0.95"] < kept["0.6"]
    for lang in ("en", "fr"):
        write(tmp_path / f"few.{lang}", sample(lang)[:150])
    options = ("mine", *LANGUAGES, "--name", "few", "--threshold", "precision=0.9")
    assert "150 x 150 lines" in bitextmine.fails(*options, cwd=tmp_path)
    refused = bitextmine(*options, "--gold", SAMPLES / "gold.en-fr.tsv", cwd=tmp_path, code=2)
    assert "--threshold auto" in refused.err


@pytest.mark.usefixtures("samples")
def test_gold_of_other_corpora(bitextmine, tmp_path):
    def run(gold, code=0):
        return bitextmine("mine", *LANGUAGES, "--gold", gold, "-o", "out.tsv", cwd=tmp_path, code=code).err

    right, wrong = ((SAMPLES / f"gold.{name}.tsv").read_text() for name in ("en-fr", "de-it"))
    assert "in this order" in run(SAMPLES / "gold.de-it.tsv", 1)
    assert not (tmp_path / "out.tsv").exists()
    assert "in this order" not in run(SAMPLES / "gold.en-fr.tsv")
    write(tmp_path / "few.tsv", [*right.splitlines()[:20], *wrong.splitlines()])
    assert "only 20 are among the candidates" in run("few.tsv")


@pytest.mark.usefixtures("corpora")
def test_corpora_by_language(bm, parallel_text, tmp_path):
    message = bm.fails("mine", "--src", "en", "--tgt", "eo")
    assert "'eo'" in message and "en, fr" in message
    parallel_text(tmp_path, 5, name="other")
    message = bm.refused(*MINE)
    assert all(part in message for part in ("corpus.en", "other.en", "--name"))
    assert 0 < len(bm(*MINE, "--name", "other").out.splitlines()) <= 5
    assert "/nonexistent" in bm.fails(*MINE, "--dir", "/nonexistent")
    assert "both the source and the target" in bm.fails("mine", "corpus.en", "corpus.en", "--tgt", "fr")


@pytest.fixture
def three(parallel_text, tmp_path):
    """Three corpora; the German one holds the French lines in another order."""
    parallel_text(tmp_path, 120, extra=10)
    lines = (tmp_path / "corpus.fr").read_text().splitlines(keepends=True)
    (tmp_path / "corpus.de").write_text("".join(reversed(lines)))
    return tmp_path


def test_several_pairs_of_languages(bm, three):
    """The same bytes as from separate runs; each corpus is embedded once."""
    together = ("mine", "--src", "en", "--tgt", "fr", "--tgt", "de", "-o", "out/{src}-{tgt}.tsv")
    (three / "out").mkdir()
    assert bm(*together).err.count("corpus.en.npy") == 1
    for tgt in ("fr", "de"):
        alone = bm("mine", "--src", "en", "--tgt", tgt).out
        assert (three / "out" / f"en-{tgt}.tsv").read_text() == alone


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--src en --tgt fr --tgt de", "standard output takes one output"),
        ("--src en --tgt fr --tgt de -o x.tsv", "-o x.tsv is one output"),
        ("--src en --src de --tgt fr -o {tgt}.tsv", "-o {tgt}.tsv is one output"),
        ("--src en --tgt fr --tgt fr -o {tgt}.tsv", "-o {tgt}.tsv is one output"),
        ("--src en --tgt fr --tgt de -o corpus.{tgt}", "corpus.fr"),
        ("--src en --tgt fr --tgt de -o {tgt}.tsv --gold g.tsv", "--gold"),
        ("corpus.en corpus.fr --src en --tgt fr --tgt de", "at most one language of each"),
        ("corpus.en", "found corpus.en"),
        ("corpus.en -", "TGT: the corpus cannot be standard input"),
        ("--tgt en", "no source corpus"),
    ],
)
def test_pairs_of_languages_that_do_not_fit(bm, three, args, message):
    assert message in bm.refused("mine", *args.split(), code=2)


def _append(folder):
    with open(folder / "corpus.fr", "a") as corpus:
        corpus.write("Une ligne de plus.\n")


def _reverse(folder):
    lines = (folder / "corpus.fr").read_text().splitlines(keepends=True)
    (folder / "corpus.fr").write_text("".join(reversed(lines)))


@pytest.mark.parametrize(("change", "rows"), [(_append, 36), (_reverse, 35)])
def test_an_embedding_of_other_text(bm, mined, tmp_path, change, rows):
    change(tmp_path)
    result = bm(*MINE)
    assert "corpus.fr.npy: " in result.err and "the text changed" in result.err
    assert np.load(tmp_path / "corpus.fr.npy").shape[0] == rows
    if rows == 35:
        assert set(texts(result.out)) == set(texts(mined))


def test_little_memory(bm, parallel_text, tmp_path):
    parallel_text(tmp_path, 3000)
    need = re.search(r"(\d\S*) or more \(--memory\)", bm.fails(*MINE, "--memory", "20K"))
    assert bm(*MINE, "--memory", need[1]).out == bm(*MINE).out


@pytest.mark.usefixtures("corpora")
def test_outputs_that_would_replace_an_input(bm, tmp_path):
    (tmp_path / "gold.tsv").write_text("1\t1\n")
    for name, more in (
        ("corpus.fr", ()),
        ("./corpus.en.npy", ()),
        ("corpus.{lang}", ()),
        ("gold.tsv", ("--threshold", "auto", "--gold", "gold.tsv")),
    ):
        assert name.removeprefix("./") in bm.refused(*MINE, *more, "-o", name, *NO_MODEL, code=2)
    (tmp_path / "corpus.fr.gz").write_bytes(gzip.compress((tmp_path / "corpus.fr").read_bytes()))
    (
        tmp_path / "corpus.fr"
    ).unlink()  # its manifest is corpus.fr.json, as that of pairs in corpus.fr would be
    assert "corpus.fr.json" in bm.refused(*MINE, "-o", "corpus.fr", code=2)


@pytest.mark.usefixtures("corpora")
def test_a_foreign_manifest_beside_the_pairs(bm, tmp_path):
    beside = tmp_path / "out.jsonl.json"
    beside.write_text('{"kind": "my notes"}')
    message = bm.refused(*MINE, "-o", "out.jsonl", *NO_MODEL)
    assert "out.jsonl.json: " in message and "--force" in message
    bm(*MINE, "-o", "out.jsonl", "--force")
    assert json.loads(beside.read_text())["kind"] == "bitext"
    bm(*MINE, "-o", "out.jsonl")
    bm(*MINE, "-o", "m.{lang}")
    assert sorted(path.name for path in tmp_path.glob("m.*")) == ["m.en", "m.fr", "m.json"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mine <(cat corpus.en) corpus.fr --src en", ["/dev/fd/", "pipe"]),
        ("index <(cat corpus.fr)", ["/dev/fd/", "embed - --lang"]),
        ("embed <(cat corpus.fr)", ["a pipe", "--out"]),
        ("embed <(cat corpus.fr) --out x.npy", ["a pipe", "--lang"]),
    ],
)
@pytest.mark.usefixtures("corpora")
def test_pipes_without_a_place_for_embeddings(bash, tmp_path, line, words):
    before = contents(tmp_path)
    message = bash(f"bitextmine {line}", code=2).stderr
    assert all(word in message for word in words), message
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.symlink_to("nowhere"), "no such file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.touch(), "empty"),
        (lambda path: path.write_bytes("été".encode("latin-1")), "line 1: invalid UTF-8"),
    ],
)
def test_nothing_is_embedded_if_a_corpus_cannot_be(bm, tmp_path, make, said):
    write(tmp_path / "a.en", ["A line."])
    make(tmp_path / "b.fr")
    assert f"b.fr: {said}" in bm.refused("mine", "a.en", "b.fr")
    assert not list(tmp_path.glob("*.npy*"))


def test_a_corpus_of_junk(bitextmine, tmp_path):
    write(tmp_path / "c.en", JUNK)
    write(tmp_path / "c.fr", sample("fr"))
    failed = bitextmine.fails("mine", *LANGUAGES, cwd=tmp_path)
    assert "dropped all 304 lines (no_letters: 303, repeated: 1)" in failed and "--no-clean" in failed


@pytest.mark.parametrize("output", ["out.tsv", "out.jsonl.gz", "/dev/full"])
def test_a_full_disk_is_named_and_keeps_the_old_output(bm, mined, tmp_path, output):
    (tmp_path / "out.tsv").write_text("old")
    before = contents(tmp_path)
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))  # noqa: E731
    said = bm.fails(*MINE, "--no-clean", "-o", output, preexec_fn=small)
    assert f"{output}: cannot write: " in said and "free some space" in said
    assert contents(tmp_path) == before
