"""Commands one after another, in every format of pairs; and what holds for all commands."""

import os
import stat
from typing import Any

import pytest

from .helpers import MINE, NO_MODEL, table, write
from .test_mine import sample

LANGUAGES = ("--src", "en", "--tgt", "fr")  # which some formats state, and TSV does not
RULES = ("--max", "length_ratio=1.2", "--duplicates", "exact")


@pytest.fixture(scope="module")
def chain(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """Two embedded corpora and the output of a chain of commands: pairs.tsv with line numbers, scored.tsv, kept.tsv."""
    folder = tmp_path_factory.mktemp("chain")
    parallel_text(folder, 60, extra=10)
    options: dict[str, Any] = {"cwd": folder, "env": {"BITEXTMINE_MODEL": str(tiny_model)}}
    bitextmine(*MINE, "--ids", "-o", "pairs.tsv", **options)
    bitextmine("score", "pairs.tsv", *LANGUAGES, "-o", "scored.tsv", **options)
    bitextmine("filter", "scored.tsv", *RULES, "-o", "kept.tsv", "--rejected", "bad.tsv", **options)
    return folder


@pytest.mark.parametrize("suffix", ["jsonl.zst", "tmx", "parquet"])
def test_a_chain_in_every_format(bm, chain, tmp_path, suffix):
    """mine, score, filter, report and evaluate give the same as with TSV."""
    for path in chain.glob("corpus.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    bm(*MINE, "--ids", "-o", f"pairs.{suffix}")
    bm("score", f"pairs.{suffix}", *LANGUAGES, "-o", f"scored.{suffix}")
    bm("filter", f"scored.{suffix}", *RULES, "-o", f"kept.{suffix}", "--rejected", f"bad.{suffix}")
    for name in ("kept", "bad"):
        bm("filter", f"{name}.{suffix}", "--preset", "none", "-o", f"{name}-again.tsv")
        again = table(tmp_path / f"{name}-again.tsv")
        assert again and again == table(chain / f"{name}.tsv")
    gold = tmp_path / "gold.tsv"
    gold.write_text("".join(f"{row['src_line']}\t{row['tgt_line']}\n" for row in table(chain / "kept.tsv")))
    evaluate = ("--gold", gold, "--format", "json")
    reports = [
        bm("evaluate", "mining", path, *evaluate).out for path in (chain / "kept.tsv", f"kept.{suffix}")
    ]
    assert reports[0] == reports[1]
    bm("report", f"kept.{suffix}", "-o", "a.html")


WRITERS = {
    "mine": (*MINE, "-o"),
    "align": ("align", "corpus.en", "corpus.fr", "-o"),
    "score": ("score", "pairs.tsv", "-o"),
    "filter": ("filter", "pairs.tsv", "--preset", "none", "-o"),
    "rejected": ("filter", "pairs.tsv", "--preset", "none", "--rejected"),
    "report": ("report", "no-such-pairs.tsv", "-o"),
    "fit-scorer": ("encoder", "fit-scorer", "no-such", "--recipe", "europe5", "--data", ".", "--out"),
}


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("writer", ["mine", "align", "score", "filter", "rejected"])
def test_unknown_suffixes(bm, writer):
    model = () if writer in ("filter", "rejected") else NO_MODEL
    for name, hint in (("x.docx", ".tsv"), ("x.csv", ".tsv"), ("x.parquet.gz", "")):
        message = bm.refused(*WRITERS[writer], name, *model, code=2)
        assert name in message and hint in message


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("command", WRITERS)
def test_outputs_that_cannot_be_written(bm, tmp_path, command):
    """In a missing folder, below a file, in place of a folder, in a read-only folder."""
    model = NO_MODEL if command in ("mine", "align", "score") else ()
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "x").mkdir(parents=True)
    (tmp_path / "folder" / "x" / "kept").write_text("")
    (tmp_path / "read-only").mkdir()
    (tmp_path / "read-only").chmod(stat.S_IRUSR | stat.S_IXUSR)
    places = ["file/x", "folder/x", "missing/x"]
    places = places[:1] if command == "fit-scorer" else places  # it takes seconds to start
    places += [] if os.access(tmp_path / "read-only", os.W_OK) else ["read-only/x"]  # root writes everywhere
    for place in places:
        message = bm.refused(*WRITERS[command], place, *model)
        assert "x" in message and "no-such" not in message


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("embed", "corpus.en", "--out", "no/x.npy"), "no folder"),
        (("embed", "corpus.en", "corpus"), "--lang"),
        (("index", "corpus.en", "corpus"), "--lang"),
        (("train", "--pairs", "pairs.en-fr.tsv", "--out", "pairs.tsv"), "a file is there"),
        (("train", "--pairs", "pairs.en-fr.tsv", "--out", "pairs.tsv/model"), "pairs.tsv"),
    ],
    ids=lambda args: " ".join(args) if isinstance(args, tuple) else "",
)
def test_other_options_that_are_checked_first(bm, tmp_path, args, words):
    (tmp_path / "pairs.en-fr.tsv").write_text("a\tb\n" * 50)
    (tmp_path / "corpus").write_text("One.\n")
    assert words in bm.refused(*args)


RUSSIAN = "Старый моряк продаёт деревянную лодку за церковью."


def test_warnings_about_unknown_languages(bitextmine, tmp_path):
    warning = "was not trained on"
    write(tmp_path / "c.en", sample("en")[:60])
    write(tmp_path / "c.fr", [f"{RUSSIAN} {i}" for i in range(60)])
    write(tmp_path / "pairs.tsv", [f"{line}\t{RUSSIAN}" for line in sample("en")[:20]])
    queries = [f"{line}\t{RUSSIAN} {i}" for i, line in enumerate(sample("en")[:9])]
    write(tmp_path / "queries.tsv", ["en\tkm", *queries])
    write(tmp_path / "labels.tsv", [f"{'AB'[i % 2]}\t{RUSSIAN} {i}" for i in range(12)])
    for command in (
        ("embed", "c.fr"),
        (*MINE,),
        ("score", "pairs.tsv", "--src", "en", "--tgt", "fr"),
        ("align", "c.en", "c.fr"),
        ("evaluate", "retrieval", "--queries", "queries.tsv", "--model", "europe5"),
        ("evaluate", "classification", "--train", "labels.tsv", "--test", "labels.tsv", "--model", "europe5"),
    ):
        said = bitextmine(*command, cwd=tmp_path).err
        assert warning in said, command
        assert ("--preset cheap" in said) == (command[0] == "score")
    for name in ("c.fr-FR", "d.fra", "e.FR"):
        write(tmp_path / name, sample("fr")[:20])
        assert warning not in bitextmine("embed", name, cwd=tmp_path).err


def test_file_names_that_are_not_utf8(bm, tmp_path):
    name = os.fsdecode(b"caf\xe9.fr")
    (tmp_path / name).write_text("Un médecin.\nUne table.\n")
    pairs = os.fsdecode(b"\xe9.tsv")
    (tmp_path / pairs).write_text("0.9\tA doctor.\tUn médecin.\n0.8\tA table.\tUne table.\n")
    for command in (
        ("embed", name),
        ("info", name),
        ("info", f"{name}.npy"),
        ("score", pairs, "--columns", "length_ratio", "-o", os.fsdecode(b"\xe8.tsv")),
        ("filter", pairs, "--min", "score=0", "-o", os.fsdecode(b"\xea.tsv")),
        ("report", pairs, "-o", os.fsdecode(b"\xe9.html")),
    ):
        assert "Traceback" not in bm(*command).err
    assert "not UTF-8" in bm.fails("index", name)
    bm.fails("info", os.fsdecode(b"\xff.npy"))
