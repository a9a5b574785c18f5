"""The same rows through every door of `score` and `filter`: files, data frames, workers, OpusFilter."""

import pytest

import bitextmine
from bitextmine.executor import LOCAL
from bitextmine.files.formats.blocks import Added
from bitextmine.run import Run
from bitextmine.scoring.filter import FilterOptions, filter_rows
from bitextmine.scoring.options import MEANINGS
from bitextmine.scoring.rules import choose_rules
from bitextmine.scoring.score import ScoreOptions, score

from ..distributed.conftest import Here

pandas = pytest.importorskip("pandas")
pytest.importorskip("py3langid")

LIMITS = {
    "min": {"numbers": 0.5, "weight": 2},
    "max": {"length_ratio": 3, "copy": 0.7},
    "equal": {"origin": "web"},
}


@pytest.fixture(scope="module")
def pairs(sentence_pairs):
    """Right and wrong pairs: markup, entities, copies, other numbers, nothing on a side, repeats."""
    rows = [list(pair) for pair in sentence_pairs[:60]]
    rows[3][1] = f"<p>{rows[3][1]}</p>"
    rows[4][0] = rows[4][0].replace("e", "&#x65;")
    rows[5][1] = rows[5][0]
    rows[6] = ["Room 12 is free on Monday.", "La chambre 13 est libre lundi."]
    rows[7][1] = ""
    rows += [rows[0], [rows[1][0].upper(), rows[1][1]], [f"<b>{rows[2][0]}</b>", rows[2][1]]]
    return rows


@pytest.fixture(scope="module")
def table(pairs):
    """The pairs with columns of their own, some of whose cells are empty."""
    frame = pandas.DataFrame(pairs, columns=["src", "tgt"])
    frame["origin"] = ["law" if row % 11 == 10 else "web" for row in range(len(frame))]
    frame["weight"] = [None if row % 13 == 12 else float(row % 9 + 1) for row in range(len(frame))]
    return frame


def lines_of(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_scores(pairs, tmp_path):
    names = ",".join(name for name in MEANINGS if name not in ("cosine2", "margin2"))
    rows = "".join("\t".join(row) + "\n" for row in pairs)
    (tmp_path / "pairs.tsv").write_text(f"src\ttgt\n{rows}", encoding="utf-8")
    options = ScoreOptions(columns=names, src="en", tgt="fr", window=16)
    printed = {}
    for executor in (LOCAL, Here()):
        output = tmp_path / f"{executor.distributed}.tsv"
        score(tmp_path / "pairs.tsv", output, options, Run(executor=executor))
        printed[executor.distributed] = lines_of(output)
    assert printed[True] == printed[False]
    frame = bitextmine.score(list(map(tuple, pairs)), columns=names, src_lang="en", tgt_lang="fr", window=16)
    columns = [
        Added("", column.to_numpy() if column.dtype == "float64" else column.to_list()).cells()
        for _name, column in frame.items()
    ]
    header, *cells = printed[False]
    assert header[2:] == list(frame.columns)
    assert [row[2:] for row in cells] == list(map(list, zip(*columns, strict=True)))
    opus = pytest.importorskip("bitextmine.opusfilter")
    made = opus.BitextFilter(["en", "fr"], preset="none", columns=names, window=16)
    assert pandas.DataFrame(made.score(pairs)).equals(frame)


@pytest.mark.parametrize("duplicates", ["exact", "near", "none"])
def test_reasons(table, tmp_path, duplicates):
    table.to_csv(tmp_path / "pairs.tsv", sep="\t", index=False)
    rules = choose_rules(None, None, {kind: limits.items() for kind, limits in LIMITS.items()}, duplicates)
    reasons, counts = {}, {}
    for executor in (LOCAL, Here()):
        kept, rejected = (tmp_path / f"{name}-{executor.distributed}.tsv" for name in ("kept", "rejected"))
        counts[executor.distributed] = filter_rows(
            tmp_path / "pairs.tsv", kept, rules, FilterOptions(), Run(executor=executor), rejected=rejected
        ).rejected
        header, *rows = lines_of(rejected)
        assert header == [*table.columns, "reason"]
        reasons[executor.distributed] = [(*row[:2], row[-1]) for row in rows], lines_of(kept)[1:]
    assert reasons[True] == reasons[False] and counts[True] == counts[False]
    found = bitextmine.filter(table, rules=rules)
    assert found.counts == counts[False]
    rows, kept = reasons[False]
    assert list(found.rejected[["src", "tgt", "reason"]].itertuples(index=False, name=None)) == rows
    assert list(found.kept[["src", "tgt"]].itertuples(index=False, name=None)) == [
        tuple(row[:2]) for row in kept
    ]
    wanted = {
        "no weight",
        "numbers >= 0.5",
        "weight >= 2",
        "length_ratio <= 3",
        "copy <= 0.7",
        "origin = web",
    }
    assert wanted <= {row[-1] for row in rows} | {"length_ratio <= 3"}
    assert (f"duplicate ({duplicates})" in {row[-1] for row in rows}) == (duplicates != "none")


def test_opusfilter_keeps_the_same(table):
    opus = pytest.importorskip("bitextmine.opusfilter")
    limits = {
        kind: {name: x for name, x in LIMITS[kind].items() if name != "weight"} for kind in ("min", "max")
    }
    pairs = list(table[["src", "tgt"]].itertuples(index=False, name=None))
    kept = bitextmine.filter(pairs, preset="none", **limits).kept
    made = opus.BitextFilter(preset="none", **limits)
    assert list(made.filter(pairs)) == list(kept[["src", "tgt"]].itertuples(index=False, name=None))
    assert [made.accept(scores) for scores in made.score(pairs)] == [
        row in kept.index for row in range(len(pairs))
    ]
