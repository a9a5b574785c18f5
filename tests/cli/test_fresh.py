"""Every command in an interpreter that has loaded nothing, as people run it: with the bytes that it writes where its
modules were loaded before, as they are for most of the tests (`warm.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitextmine.cli.program import program

TINY = ("--dim", "8", "--vocabulary", "150", "--batch", "64", "--epochs", "1")
MINE = ("--src", "en", "--tgt", "fr")
# In this order: each reads what those before it wrote. MODEL is a small encoder.
RUNS = [
    ("train", "--pairs", "pairs.en-fr.tsv", "--out", "trained", *TINY),
    ("embed", "corpus.en", "corpus.fr", "--model", "MODEL"),
    ("index", "corpus.en", "--type", "flat", "--model", "MODEL"),
    ("mine", *MINE, "--model", "MODEL", "--ids", "-o", "mined.tsv"),
    ("score", "mined.tsv", "--model", "MODEL", "-o", "scored.tsv"),
    ("filter", "scored.tsv", "--rejected", "bad.tsv"),
    ("align", "corpus.en", "corpus.fr", "--model", "MODEL"),
    ("report", "mined.tsv", "-o", "report.html"),
    ("evaluate", "mining", "mined.tsv", "--gold", "gold.tsv"),
    ("evaluate", "retrieval", "--queries", "queries.tsv", "--model", "MODEL"),
    ("info", "corpus.fr"),
    ("encoder", "reduce", "MODEL", "corpus.en", "--dim", "8", "--out", "reduced"),
    ("export", "MODEL", "exported", "--to", "sentence-transformers"),
    ("adapt", *MINE, "--model", "MODEL", "--out", "adapted"),
]


def test_no_command_is_left_out():
    assert {run[0] for run in RUNS} == set(program.commands)


@pytest.fixture(scope="module")
def folders(parallel_text, sentence_pairs, tmp_path_factory) -> list[Path]:
    """Two folders with the same texts: for runs in new interpreters, and for the others."""
    base = tmp_path_factory.mktemp("runs")
    rows = "".join(f"{en}\t{fr}\n" for en, fr in sentence_pairs[:300])
    for name in ("fresh", "warm"):
        (base / name).mkdir()
        parallel_text(base / name, 60, extra=10)
        (base / name / "pairs.en-fr.tsv").write_text(rows, encoding="utf-8")
        (base / name / "queries.tsv").write_text(f"en\tfr\n{rows}", encoding="utf-8")
        (base / name / "gold.tsv").write_text("1\t1\n2\t2\n")
    return [base / "fresh", base / "warm"]


def files(folder: Path) -> dict[str, bytes]:
    """But for those that tell the time."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if path.suffixes[-2:] != [".faiss", ".json"] and path.name not in ("log.jsonl", "training.png")
    }


@pytest.mark.parametrize("args", RUNS, ids=" ".join)
def test_a_new_interpreter_writes_the_same(bitextmine, tiny_model, folders, args):
    args = [str(tiny_model) if arg == "MODEL" else arg for arg in args]
    fresh, warm = (
        bitextmine(*args, cwd=folder, fresh=folder.name == "fresh", code=None) for folder in folders
    )
    assert (fresh.code, fresh.out) == (warm.code, warm.out)
    assert "Traceback" not in fresh.err
    assert files(folders[0]) == files(folders[1])
    assert fresh.code == (1 if args[0] == "adapt" else 0), fresh.err  # so little text
