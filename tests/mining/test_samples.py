"""The sample corpora: counts, no sentence twice, true gold lines, files that build.py makes again."""

import subprocess
import sys

import pytest

LANGUAGES = ["en", "de", "es", "fr", "it"]
PAIRS = ["en-de", "en-es", "en-fr", "en-it", "de-es", "de-fr", "de-it", "es-fr", "es-it", "fr-it"]
PARALLEL = ALONE = 264


@pytest.fixture(scope="module")
def samples(root):
    return root / "mine" / "samples"


@pytest.fixture(scope="module")
def rows(samples):
    """The rows of source/parallel-*.tsv."""
    found = []
    for part in (1, 2):
        header, *body = lines(samples / "source" / f"parallel-{part}.tsv")
        assert header.split("\t") == ["subject", *LANGUAGES]
        found += [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in body]
    return found


def lines(path):
    """Lines that end in LF and nothing else; none is blank or has white space around it."""
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    found = text[:-1].split("\n")
    assert all(line and line == line.strip() for line in found)
    assert "\r" not in text
    return found


@pytest.mark.parametrize("pair", PAIRS)
def test_gold_lines_are_the_two_sides_of_one_row(samples, rows, pair):
    src, tgt = pair.split("-")
    sources, targets = lines(samples / f"sample.{src}"), lines(samples / f"sample.{tgt}")
    gold = [tuple(map(int, line.split("\t"))) for line in lines(samples / f"gold.{pair}.tsv")]
    assert gold == sorted(gold)
    assert all(s > 0 and t > 0 for s, t in gold)
    assert len(gold) == PARALLEL
    assert {(sources[s - 1], targets[t - 1]) for s, t in gold} == {(row[src], row[tgt]) for row in rows}


def test_build_makes_the_committed_files_again(samples, tmp_path):
    subprocess.run([sys.executable, str(samples / "build.py"), "--out", str(tmp_path)], check=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    names = {f"sample.{lang}" for lang in LANGUAGES} | {f"gold.{pair}.tsv" for pair in PAIRS}
    names |= {"noisy.en-fr.tsv"}
    assert set(made) == names
    assert made == {name: (samples / name).read_bytes() for name in names}
