"""Columns computed block by block elsewhere are those that one process computes, byte for byte."""

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.executor import LOCAL
from bitextmine.files.formats.tsv import TextRows
from bitextmine.run import Run
from bitextmine.scoring.filter import FilterOptions, filter_rows
from bitextmine.scoring.rules import choose_rules
from bitextmine.scoring.score import ScoreOptions, score

from .conftest import Here


@pytest.fixture
def pairs(tmp_path, sentence_pairs):
    """Rows that are no pairs make blocks short, so that they are seen with the ones before."""
    path = tmp_path / "pairs.tsv"
    lines = [f"{en}\t{fr}\n" for en, fr in sentence_pairs[:300]]
    for row in (5, 70, 71, 72, 140, 299):
        lines[row] = "no pair\n"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("layers", [0, 1])
def test_scores_are_the_same(layers, pairs, tmp_path, make_folder):
    model = make_folder(tmp_path / "model", layers)
    options = ScoreOptions(model=str(model), window=64)
    score(pairs, tmp_path / "plain.tsv", options, Run("cpu"))
    cluster = Here()
    score(pairs, tmp_path / "cluster.tsv", options, Run(executor=cluster))
    assert (tmp_path / "cluster.tsv").read_bytes() == (tmp_path / "plain.tsv").read_bytes()
    assert len(cluster.made) == 5


@pytest.mark.parametrize(
    ("limits", "duplicates"),
    [
        ({"min": [("numbers", 1)], "max": [("length_ratio", 1.4)]}, "near"),
        ({"min": [("weight", 0.2)], "max": [("copy", 0.5)], "equal": [("origin", "web")]}, "exact"),
        ({"max": [("4", 0.9)], "min": [("shorter", 20)]}, "none"),
    ],
)
def test_rows_are_kept_by_the_same_rules(limits, duplicates, tmp_path, sentence_pairs, monkeypatch):
    """Of blocks of 64 rows, some of which are no pairs, or have no number where one should be."""
    lines = ["src\ttgt\torigin\tweight"]
    for number, (en, fr) in enumerate(sentence_pairs[:500]):
        if number % 5 == 4:
            en, fr = sentence_pairs[number // 2]
        weight = "none" if number % 17 == 3 else f"{number % 10 / 10}"
        lines.append(
            "no pair" if number % 41 == 7 else f"{en}\t{fr}\t{'web' if number % 3 else 'law'}\t{weight}"
        )
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    blocks = TextRows.blocks
    monkeypatch.setattr(TextRows, "blocks", lambda self, rows=None: blocks(self, 64))
    cluster = Here()
    found = []
    rules = choose_rules(None, None, limits, duplicates)
    for way in (LOCAL, cluster):
        outputs = [tmp_path / f"{name}-{way.distributed}.tsv" for name in ("kept", "rejected")]
        options, run = FilterOptions(explain=3), Run(executor=way)
        done = filter_rows(path, outputs[0], rules, options, run, rejected=outputs[1])
        assert 0 < done.kept < done.rows == 500
        found.append([done.to_table(), *(output.read_bytes() for output in outputs)])
    assert found[0] == found[1]
    assert len(cluster.made) == 8
    wrong = choose_rules(None, None, {"min": [("key", 1)]}, "none")
    with pytest.raises(BitextmineError, match="the column key holds text"):
        filter_rows(path, tmp_path / "none.tsv", wrong, run=Run(executor=cluster))
