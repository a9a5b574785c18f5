"""What commands write: in the form that its name says, in a place that is looked at first, and over nobody's files."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

MINE = ("mine", "--src", "en", "--tgt", "fr", "--threshold", "none")
RULES = ("--max", "length_ratio=1.2", "--duplicates", "exact")
NO_MODEL = ("--model", "no-such-model")  # it would be missed before any work on texts
FORMS = ["jsonl", "jsonl.zst", "tmx", "tmx.gz", "tsv.bz2", "parquet"]

Run = Callable[..., Any]


@pytest.fixture
def bm(bitextmine, tiny_model, tmp_path) -> Run:
    """Run a command in the test's folder, with the tiny model as default."""

    def run(*args, **options):
        return bitextmine(*args, cwd=tmp_path, env={"BITEXTMINE_MODEL": str(tiny_model)}, **options)

    return run


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones too, and what is in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(bm: Run, folder: Path, *args, code: int = 1, **options) -> str:
    """Run a command to an error; nothing in the folder may be new or changed. Returns the message."""
    before = snapshot(folder)
    result = bm(*args, code=code, **options)
    assert "Traceback" not in result.err
    assert result.out == ""
    assert snapshot(folder) == before
    return str(result.err)


# --- forms -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def texts(bitextmine, tiny_model, parallel_text, tmp_path_factory) -> Path:
    """Two corpora, embedded, and what is mined in them: pairs.tsv, with line numbers, scored.tsv, kept.tsv."""
    folder = tmp_path_factory.mktemp("texts")
    parallel_text(folder, 60, extra=10)
    options: dict[str, Any] = {"cwd": folder, "env": {"BITEXTMINE_MODEL": str(tiny_model)}}
    bitextmine(*MINE, "--ids", "-o", "pairs.tsv", **options)
    bitextmine("score", "pairs.tsv", "-o", "scored.tsv", **options)
    bitextmine("filter", "scored.tsv", *RULES, "-o", "kept.tsv", "--rejected", "bad.tsv", **options)
    return folder


def table(path: Path) -> list[dict[str, str]]:
    header, *rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("form", FORMS)
def test_the_chain_in_every_form(bm, texts, tmp_path, form):
    """mine, score, filter, report and evaluate, each from what the one before wrote: as with TSV."""
    for name in (
        "corpus.en",
        "corpus.fr",
        "corpus.en.npy",
        "corpus.fr.npy",
        "corpus.en.json",
        "corpus.fr.json",
    ):
        (tmp_path / name).write_bytes((texts / name).read_bytes())
    bm(*MINE, "--ids", "-o", f"pairs.{form}")
    bm("score", f"pairs.{form}", "-o", f"scored.{form}")
    bm("filter", f"scored.{form}", *RULES, "-o", f"kept.{form}", "--rejected", f"bad.{form}")
    for name in ("kept", "bad"):
        bm("filter", f"{name}.{form}", "--preset", "none", "-o", f"{name}-again.tsv")
        again = table(tmp_path / f"{name}-again.tsv")
        assert again and again == table(texts / f"{name}.tsv")
    for source, target in ((texts / "kept.tsv", "a.html"), (f"kept.{form}", "b.html")):
        assert "pairs" in bm("report", source, "-o", target).err
    gold = tmp_path / "gold.tsv"
    gold.write_text("".join(f"{row['src_line']}\t{row['tgt_line']}\n" for row in table(texts / "kept.tsv")))
    said = [
        bm("evaluate", "mining", path, "--gold", gold, "--format", "tsv").out
        for path in (texts / "kept.tsv", f"kept.{form}")
    ]
    assert said[0] == said[1]


def test_what_the_forms_look_like(bm, texts, tmp_path):
    mined = [line.split("\t") for line in (texts / "pairs.tsv").read_text().splitlines()]
    for form in ("jsonl", "tmx.gz"):
        bm(*MINE, "--ids", "--dir", texts, "-o", f"pairs.{form}")
    objects = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert objects == [
        {
            "translation": {"en": src, "fr": tgt},
            "score": float(score),
            "src_line": int(src_line),
            "tgt_line": int(tgt_line),
        }
        for score, src_line, tgt_line, src, tgt in mined
    ]
    assert json.loads((tmp_path / "pairs.jsonl.json").read_text())["pairs"] == len(mined)
    tree = ElementTree.fromstring(gzip.decompress((tmp_path / "pairs.tmx.gz").read_bytes()))
    code = "{http://www.w3.org/XML/1998/namespace}lang"
    assert (
        [
            [prop.text for prop in unit.iter("prop")]
            + [(tuv.get(code), tuv.findtext("seg")) for tuv in unit.iter("tuv")]  # type: ignore[misc]
            for unit in tree.iter("tu")
        ]
        == [[*row[:3], ("en", row[3]), ("fr", row[4])] for row in mined]
    )


def test_tmx_from_a_pipe_needs_the_languages(bm, texts, tmp_path):
    pairs = (texts / "pairs.tsv").read_bytes()
    assert "--src and --tgt" in refused(bm, tmp_path, "score", "-o", "x.tmx", *NO_MODEL, stdin=pairs, code=2)
    bm("score", "-o", "x.tmx", "--src", "en", "--tgt", "fr", "--columns", "copy", stdin=pairs)
    bm("filter", "x.tmx", "--preset", "none", "-o", "y.jsonl")
    assert json.loads((tmp_path / "y.jsonl").read_text().splitlines()[0])["translation"].keys() == {
        "en",
        "fr",
    }


def test_corpora_in_bzip2(bm, texts, tmp_path):
    for lang in ("en", "fr"):
        (tmp_path / f"corpus.{lang}.bz2").write_bytes(bz2.compress((texts / f"corpus.{lang}").read_bytes()))
    bm(*MINE, "--ids", "-o", "pairs.tsv")
    assert (tmp_path / "pairs.tsv").read_bytes() == (texts / "pairs.tsv").read_bytes()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("out.jsonl", '{"translation": {"en": "'),
        ("out.json", '{"document": '),
        ("out.tmx", "<?xml"),
        ("out", ""),
    ],
)
def test_align_by_the_name(bm, tmp_path, name, begins):
    for lang in ("en", "fr"):
        (tmp_path / f"doc.{lang}").write_text("One two.\nThree.\n")
    bm("align", "doc.en", "doc.fr", "-o", name)
    written = (tmp_path / name).read_text()
    assert written.startswith(begins)
    if name in ("out.jsonl", "out.tmx"):
        bm("score", name, "--columns", "copy", "-o", "scored.tsv")
        assert [row["copy"] for row in table(tmp_path / "scored.tsv")] == ["1.0000", "1.0000"]
    for wrong in (("--format", "tsv", "-o", "x.tmx"), ("-o", "x.parquet"), ("-o", "x.docx")):
        assert "-o x." in refused(bm, tmp_path, "align", "doc.en", "doc.fr", *wrong, *NO_MODEL, code=2)


# --- before the work -------------------------------------------------------------------------------------

# Commands that write a file of pairs, each with what names it.
WRITERS = {
    "mine": (*MINE, "-o"),
    "align": ("align", "corpus.en", "corpus.fr", "-o"),
    "score": ("score", "pairs.tsv", "-o"),
    "filter": ("filter", "pairs.tsv", "--preset", "none", "-o"),
    "rejected": ("filter", "pairs.tsv", "--preset", "none", "--rejected"),
}


@pytest.fixture
def inputs(tmp_path, parallel_text) -> None:
    parallel_text(tmp_path, 5)
    (tmp_path / "pairs.tsv").write_text("a\tb\n")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_name_that_says_nothing(bm, tmp_path, writer):
    model = () if writer in ("filter", "rejected") else NO_MODEL
    for name, hint in (("x.docx", ".tsv"), ("x.csv", "is .tsv meant?"), ("x.parquet.gz", "")):
        message = refused(bm, tmp_path, *WRITERS[writer], name, *model, code=2)
        assert name in message and hint in message


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("command", [*WRITERS, "report", "png", "join", "reduce", "fit-scorer"])
@pytest.mark.parametrize("place", ["missing", "a file", "a folder", "read-only"])
def test_a_place_that_cannot_be_written_to(bm, tmp_path, command, place):
    """Found out before an encoder is loaded, a corpus embedded, a pair read."""
    model = ("--model", "no-such-model") if command in ("mine", "align", "score") else ()
    others = {
        "report": ("report", "no-such-pairs.tsv", "-o"),
        "png": ("report", "no-such-pairs.tsv", "--png"),
        "join": ("encoder", "join", "no-such", "model", "--text", "corpus.en", "--out"),
        "reduce": ("encoder", "reduce", "no-such", "corpus.en", "--out"),
        "fit-scorer": ("encoder", "fit-scorer", "no-such", "--recipe", "europe5", "--data", ".", "--out"),
    }
    args = {**WRITERS, **others}[command]
    folder = tmp_path / "place"
    target = folder / "x"
    words = "x"
    if place == "a file":
        folder.write_text("")
    elif place == "a folder":
        target.mkdir(parents=True)
        (target / "kept").write_text("")
    elif place == "read-only":
        folder.mkdir()
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        if os.access(folder, os.W_OK):
            pytest.skip("root writes everywhere")
    elif command in ("join", "reduce"):
        pytest.skip("a model folder is made with those above it")
    message = refused(bm, tmp_path, *args, "place/x", *model)
    assert words in message and "no-such" not in message


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    "args",
    [
        ("embed", "corpus.en", "--out", "no/x.npy"),
        ("embed", "corpus.en", "corpus"),
        ("index", "corpus.en", "corpus"),
        ("train", "--pairs", "pairs.en-fr.tsv", "--out", "pairs.tsv"),
        ("train", "--pairs", "pairs.en-fr.tsv", "--out", "pairs.tsv/model"),
        ("evaluate", "retrieval", "--queries", "q.tsv", "--work", "pairs.tsv", *NO_MODEL),
    ],
    ids=" ".join,
)
def test_other_outputs_and_options_come_first(bm, tmp_path, args):
    (tmp_path / "pairs.en-fr.tsv").write_text("a\tb\n" * 50)
    (tmp_path / "q.tsv").write_text("en\tfr\na\tb\n")
    (tmp_path / "corpus").write_text("One.\n")
    message = refused(bm, tmp_path, *args)
    assert any(word in message for word in ("no folder", "a file is there", "--lang", "pairs.tsv"))


# --- what this program did not make ----------------------------------------------------------------------


def put_array(path: Path, array: Any) -> None:
    with path.open("wb") as file:
        np.save(file, array)


RNG = np.random.default_rng(1)
FOREIGN: dict[str, Callable[[Path], None]] = {
    "corpus.fr.npy of labels": lambda f: put_array(f / "corpus.fr.npy", np.arange(5)),
    "corpus.fr.npy of floats": lambda f: put_array(f / "corpus.fr.npy", np.ones((5, 4), dtype=np.float32)),
    "corpus.fr.npy of another size": lambda f: put_array(f / "corpus.fr.npy", np.eye(5, 7, dtype=np.float16)),
    "corpus.fr.npy of no unit length": lambda f: put_array(
        f / "corpus.fr.npy", RNG.normal(size=(5, 48)).astype(np.float16)
    ),
    "corpus.fr.npy of text": lambda f: (f / "corpus.fr.npy").write_text("my notes\n") and None,
    "corpus.fr.json": lambda f: (f / "corpus.fr.json").write_text('{"title": "mine"}') and None,
    "corpus.fr.json of no object": lambda f: (f / "corpus.fr.json").write_text("[1, 2") and None,
    "corpus.fr.npy.part": lambda f: (f / "corpus.fr.npy.part").write_text("half a download") and None,
    "corpus.fr.npy.part.json": lambda f: (f / "corpus.fr.npy.part.json").write_text("{}") and None,
}


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("foreign", FOREIGN)
def test_files_of_others_beside_a_corpus(bm, tmp_path, foreign):
    """embed, mine and index leave them, and embed nothing: not the other corpus, either."""
    FOREIGN[foreign](tmp_path)
    name = foreign.partition(" ")[0]
    for command in (("embed", "corpus.en", "corpus.fr"), MINE, ("index", "corpus.en", "corpus.fr")):
        message = refused(bm, tmp_path, *command)
        assert f"{name}: " in message and "--force" in message
    for command in (("embed", "corpus.fr"), MINE, ("index", "corpus.fr")):
        FOREIGN[foreign](tmp_path)
        bm(*command, "--force")
        assert json.loads((tmp_path / "corpus.fr.json").read_text())["kind"] == "embedding"
        assert len(np.load(tmp_path / "corpus.fr.npy")) == 5
        if command[0] != "index":  # which has nothing to embed by now
            assert not (tmp_path / "corpus.fr.npy.part").exists()


@pytest.mark.usefixtures("inputs")
def test_what_is_ours_is_made_anew_without_asking(bm, tmp_path):
    """Damaged, stale, empty after a power cut, without its manifest: nothing of it is lost."""
    bm("embed", "corpus.fr")
    npy, manifest = tmp_path / "corpus.fr.npy", tmp_path / "corpus.fr.json"
    whole = npy.read_bytes()
    for damage in (
        lambda: npy.write_bytes(whole[:200]),
        lambda: npy.write_bytes(bytes(len(whole))),
        lambda: npy.write_bytes(b""),
        lambda: manifest.write_bytes(b""),
        lambda: manifest.unlink(),
        lambda: (tmp_path / "corpus.fr.npy.part").write_bytes(whole[:300]),
        lambda: (tmp_path / "corpus.fr").write_text("Une autre phrase.\n"),
    ):
        damage()
        bm("embed", "corpus.fr")
        assert json.loads(manifest.read_text())["rows"] == len(np.load(npy))


@pytest.mark.usefixtures("inputs")
def test_a_manifest_of_others_beside_the_pairs(bm, tmp_path):
    beside = tmp_path / "out.jsonl.json"
    beside.write_text('{"kind": "my notes"}')
    message = refused(bm, tmp_path, *MINE, "-o", "out.jsonl", *NO_MODEL)
    assert "out.jsonl.json: " in message and "--force" in message
    bm(*MINE, "-o", "out.jsonl", "--force")
    assert json.loads(beside.read_text())["kind"] == "bitext"
    bm(*MINE, "-o", "out.jsonl")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("suffix", ["", ".json", ".lists", ".part/x"])
def test_files_of_others_in_the_place_of_an_index(bm, tmp_path, suffix):
    name = f"corpus.fr.faiss{suffix}"
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("IxFI" if name.endswith("faiss") else '{"kind": "notes"}')
    message = refused(bm, tmp_path, "index", "corpus.en", "corpus.fr")
    assert f"{name.partition('/')[0]}: " in message and "--force" in message
    bm("index", "corpus.fr", "--force")
    assert json.loads((tmp_path / "corpus.fr.faiss.json").read_text())["kind"] == "index"
    assert not (tmp_path / "corpus.fr.faiss.part").exists()


@pytest.mark.usefixtures("inputs")
def test_a_file_of_others_where_a_search_keeps_what_it_has_found(bm, tmp_path):
    (tmp_path / "corpus.en-corpus.fr.search.part").write_text("my notes")
    result = bm(*MINE)
    assert "corpus.en-corpus.fr.search.part" in result.err and result.out
    assert (tmp_path / "corpus.en-corpus.fr.search.part").read_text() == "my notes"


def test_a_work_folder_with_texts_of_others(bm, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "pool.en").write_text("my pool\n")
    (tmp_path / "q.tsv").write_text("en\tfr\n" + "".join(f"sentence {i}\tphrase {i}\n" for i in range(30)))
    command = ("evaluate", "retrieval", "--queries", "q.tsv", "--work", "work")
    assert "pool.en: " in refused(bm, tmp_path, *command)
    (tmp_path / "work" / "pool.en").unlink()
    assert bm(*command).out == bm(*command).out


# --- model folders ---------------------------------------------------------------------------------------


@pytest.fixture
def pairs(tmp_path, sentence_pairs) -> tuple[str, ...]:
    """Writes training pairs; returns a command that trains a very small model on them."""
    text = "".join(f"{en}\t{fr}\n" for en, fr in sentence_pairs[:300])
    (tmp_path / "pairs.en-fr.tsv").write_text(text, encoding="utf-8")
    small = ("--vocabulary", "200", "--dim", "16", "--epochs", "1", "--batch", "64")
    return ("train", "--pairs", "pairs.en-fr.tsv", "--out", "model", *small)


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "config.json",
        "recipe.json",
        "log.jsonl",
        "model.safetensors",
        "tokenizer.model",
        "training.png",
    ],
)
def test_files_of_others_in_a_model_folder(bm, tmp_path, pairs, name):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / name).write_text('{"name": "my project"}')
    (tmp_path / "model" / "other.txt").write_text("is in nobody's way")
    message = refused(bm, tmp_path, *pairs)
    assert f"{name}: " in message and "--force" in message


def test_a_finished_model(bm, tmp_path, pairs):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "README.md").write_text("# My project\n")
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "other.txt").write_text("is in nobody's way")
    bm(*pairs, "--force")
    assert "bitextmine encoder" in (tmp_path / "model" / "README.md").read_text()
    bm(*pairs)  # of the same recipe, with its checkpoint: nothing is left to do
    other = (*pairs, "--seed", "2")
    assert "a checkpoint of another recipe" in refused(bm, tmp_path, *other)
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    bm(*other, "--force")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() != weights
    (tmp_path / "model" / "work" / "checkpoint.pt").unlink()
    message = refused(bm, tmp_path, *pairs)
    assert "model: a finished model is there" in message and "--force" in message
    bm(*pairs, "--force")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == weights
    assert (tmp_path / "model" / "other.txt").exists()


@pytest.mark.parametrize("form", ["jsonl.gz", "tmx"])
def test_training_pairs_in_other_forms(bm, tmp_path, pairs, form):
    """The same model as from a TSV."""
    with_names = ("--src", "en", "--tgt", "fr", "--preset", "none", "-o", f"pairs.en-fr.{form}")
    bm("filter", "pairs.en-fr.tsv", *with_names)
    bm(*pairs)
    bm("train", "--pairs", f"pairs.en-fr.{form}", "--out", "again", *pairs[5:])
    for name in ("model.safetensors", "tokenizer.model"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()
