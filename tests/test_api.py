"""The Python API: what `import bitextmine` offers, against the command and against plain NumPy."""

import dataclasses
import doctest
import importlib
import inspect
import subprocess
import sys

import numpy as np
import pandas
import pytest

import bitextmine
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.mining.options import MiningOptions
from bitextmine.run import Run
from bitextmine.scoring.rules import RuleSet, make_rule


@pytest.fixture(scope="module")
def samples(root, tmp_path_factory):
    """sample.en and sample.de, copied, and their lines."""
    folder = tmp_path_factory.mktemp("samples")
    lines = {}
    for lang in ("en", "de"):
        text = (root / "mine" / "samples" / f"sample.{lang}").read_bytes()
        (folder / f"sample.{lang}").write_bytes(text)
        lines[lang] = text.decode().splitlines()
    return folder, lines["en"], lines["de"]


@pytest.fixture(scope="module")
def encoder():
    return bitextmine.load_encoder("europe5")


@pytest.fixture
def command(bitextmine):
    """The command, where `bitextmine` is to be the package."""
    return bitextmine


def loaded_after(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"], capture_output=True, check=True
    )
    return set(done.stdout.decode().split())


def test_importing_it_imports_nothing_heavy():
    loaded = loaded_after("import bitextmine\ndir(bitextmine)")
    assert not loaded & {"numpy", "torch", "pandas", "faiss", "scipy", "click"}
    functions = "evaluate_retrieval, evaluate_sts, knn, load_encoder, mine, score"
    assert not loaded_after(f"from bitextmine import {functions}") & {"torch", "pandas", "faiss", "click"}


def test_every_name_is_there_and_nothing_else():
    assert set(dir(bitextmine)) == set(bitextmine.__all__)
    for name in bitextmine.__all__:
        assert getattr(bitextmine, name) is not None
        assert name == "__version__" or not name.startswith("_")
    with pytest.raises(AttributeError, match="'no_such_thing'"):
        bitextmine.no_such_thing  # noqa: B018


def test_the_keywords_of_mine_are_the_fields_of_the_options():
    fields = {field.name for kind in (MiningOptions, Run) for field in dataclasses.fields(kind)}
    own = {"src", "tgt", "src_lang", "tgt_lang", "model", "options", "run"}
    assert inspect.signature(bitextmine.mine).parameters.keys() == fields | own


def test_examples_in_the_documentation():
    examples = {"mining.mine": 4, "scoring.api": 6, "search.exact": 3, "evaluation.retrieval": 3}
    for name, least in examples.items():
        found = doctest.testmod(importlib.import_module(f"bitextmine.{name}"))
        assert found.attempted >= least
        assert not found.failed


def test_lines_in_memory_files_and_the_command_give_the_same_pairs(command, samples, encoder):
    folder, en, de = samples
    from_lines = bitextmine.mine(en, de, src_lang="en", tgt_lang="de", model=encoder)
    assert sorted(path.name for path in folder.iterdir()) == ["sample.de", "sample.en"], "no file is left"
    from_files = bitextmine.mine(folder / "sample.en", str(folder / "sample.de"), model="europe5")
    assert (folder / "sample.en.npy").exists()
    assert from_files.signature == from_lines.signature
    assert list(from_files) == list(from_lines)
    mixed = bitextmine.mine(en, folder / "sample.de", src_lang="en", model=encoder)
    assert (mixed.signature, list(mixed)) == (from_lines.signature, list(from_lines))
    printed = command("mine", "--src", "en", "--tgt", "de", "--ids", "--model", "europe5", cwd=folder).out
    from_lines.write(folder / "lines.tsv", ids=True)
    assert printed == (folder / "lines.tsv").read_text(encoding="utf-8")


def test_the_result_of_mining(samples, encoder):
    _, en, de = samples
    found = bitextmine.mine(en, de, model=encoder, threshold="none", k=2, margin="distance")
    frame = found.to_frame()
    assert len(found) == len(frame) == len(list(found)) > 200
    assert frame.columns.tolist() == ["score", "src_line", "tgt_line", "src", "tgt"]
    assert frame["src"].tolist() == [en[line - 1] for line in frame["src_line"]]
    assert frame["tgt"].tolist() == [de[line - 1] for line in frame["tgt_line"]]
    assert [tuple(pair) for pair in found] == list(frame.itertuples(index=False, name=None))
    assert found.threshold is None
    cut = bitextmine.mine(en, de, model=encoder, threshold=0.2, k=2, margin="distance")
    assert cut.threshold == 0.2
    assert list(cut) == [pair for pair in found if pair.score >= 0.2]
    assert "src:und|tgt:und|" in found.signature
    assert "k:2|margin:distance|" in found.signature
    assert len(repr(found)) < 300
    series = bitextmine.mine(pandas.Series(en), pandas.Series(de), model=encoder, threshold="none", k=2)
    assert len(series) > 200


def test_a_result_does_not_replace_its_corpora(samples, encoder, tmp_path):
    _, en, de = samples
    for lang, lines in (("en", en), ("de", de)):
        (tmp_path / f"few.{lang}").write_text("".join(f"{line}\n" for line in lines[:50]), encoding="utf-8")
    found = bitextmine.mine(tmp_path / "few.en", tmp_path / "few.de", model=encoder)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("few.en", "few.de", "few.en.npy", "few.en.json"):
        with pytest.raises(UsageError, match="would replace"):
            found.write(tmp_path / name)
    links = bitextmine.align(tmp_path / "few.en", tmp_path / "few.de", model=encoder)
    for name in ("few.en", "few.{lang}"):
        with pytest.raises(UsageError, match="is the input itself"):
            links.write(tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": "cosine"}, "margin: unknown value 'cosine'"),
        ({"search": "index"}, "an index lies beside an embedding file"),
        ({"k": 0}, "k must be at least 1"),
        ({"gold": "gold.tsv", "threshold": 1.1}, "gold is for --threshold auto"),
        ({"model": ""}, "model: expected an encoder, or the name or folder of one, found ''"),
        ({"model": 5}, "model: expected an encoder, or the name or folder of one, found 5"),
        ({"model": "europe5", "device": "gpu"}, "device: expected auto, cpu, cuda or cuda:N, found 'gpu'"),
        ({"src_lang": 5}, "src_lang: 5 is not a language code"),
        ({"errors": "bar"}, "errors: unknown value 'bar'"),
    ],
)
def test_choices_that_are_wrong(options, message):
    with pytest.raises(UsageError, match=message):
        bitextmine.mine(["Yes."], ["Ja."], **options)


def test_score_and_filter_keep_the_index_of_a_frame(encoder):
    frame = pandas.DataFrame({"tgt": ["Ja.", "Nein."], "src": ["Yes.", "No."], "n": [1, 2]}, index=[7, 3])
    found = bitextmine.score(frame, columns=["cosine", "key"], model=encoder)
    assert found.index.tolist() == [7, 3]
    assert found.columns.tolist() == ["cosine", "key"]
    x, y = encoder.encode(["Yes.", "No."]), encoder.encode(["Ja.", "Nein."])
    np.testing.assert_allclose(found["cosine"], (x * y).sum(axis=1), atol=1e-6)
    assert len(frame.join(found).columns) == 5
    assert bitextmine.filter(frame, min={"n": 2}).kept.index.tolist() == [3]
    with pytest.raises(BitextmineError, match="no column is called 'blue'"):
        bitextmine.filter(frame, min={"blue": 1})
    assert bitextmine.score([], columns="numbers,key").shape == (0, 2)
    assert bitextmine.filter([], preset="none").kept.empty


def test_score_takes_what_mine_gives(samples, encoder):
    _, en, de = samples
    found = bitextmine.mine(en, de, model=encoder)
    scored = bitextmine.score(found, columns="cosine,numbers", model=encoder)
    pandas.testing.assert_frame_equal(
        scored, bitextmine.score(found.to_frame(), columns="cosine,numbers", model=encoder)
    )
    pandas.testing.assert_frame_equal(
        scored[:3], bitextmine.score([*found][:3], columns=scored.columns, model=encoder)
    )


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (None, {}, "expected pairs or a frame"),
        ("pairs.tsv", {}, "expected pairs or a frame"),
        ([("a", "b")], {"k": 1.5}, r"k: expected a whole number, found 1\.5"),
        ([("a", "b")], {"columns": 5}, "expected names of columns, found 5"),
        ([("a", "b")], {"columns": "nosuch"}, "no column is called 'nosuch'"),
        ([("a", "b"), ("a", None)], {"columns": "numbers"}, "pair 2 is"),
        (pandas.DataFrame({"src": ["a"], "target": ["b"]}), {}, "no column tgt; it has src, target"),
        ([("a", "b")], {"src_lang": "en"}, "neither"),
        ([("a", "b")], {"margin": "mean"}, "margin: unknown value"),
    ],
)
def test_pairs_that_cannot_be_scored(pairs, options, message):
    with pytest.raises(BitextmineError, match=message):
        bitextmine.score(pairs, **options)


def test_retrieval_from_lists_is_retrieval_from_files(encoder, root, tmp_path):
    source = root / "mine" / "samples" / "source"
    header, *rows = (source / "parallel-1.tsv").read_text(encoding="utf-8").splitlines()
    languages = header.split("\t")[1:4]
    columns = list(zip(*(row.split("\t")[1:4] for row in rows), strict=True))
    queries = dict(zip(languages, columns, strict=True))
    more = (source / "alone.de.txt").read_text(encoding="utf-8").splitlines()
    lines = ["\t".join(languages), *("\t".join(cells) for cells in zip(*columns, strict=True))]
    (tmp_path / "queries.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "distractors.de.txt").write_text("".join(f"{line}\n" for line in more), encoding="utf-8")
    lists = bitextmine.evaluate_retrieval(queries, {"de": more}, pairs="en-de,de-en", model=encoder)
    files = bitextmine.evaluate_retrieval(
        tmp_path / "queries.tsv", tmp_path, pairs="en-de,de-en", model="europe5"
    )
    assert lists.results == files.results
    assert lists.signature == files.signature
    assert lists.to_dict()["results"][0]["pool"] == len(rows) + len(more)
    assert lists.notes[0].startswith("en: no distractors: ")


def test_objects_of_options_and_two_files(tmp_path, monkeypatch):
    rules = RuleSet((make_rule("min", "numbers", 1.0),), "exact")
    pairs = [("Room 12 is free.", "La chambre 12 est libre.")] * 2
    assert bitextmine.filter(pairs, rules=rules).counts == {"numbers >= 1": 0, "duplicate (exact)": 1}
    plans = []
    monkeypatch.setattr("bitextmine.training.job.train", lambda plan, *rest, **more: plans.append(plan))
    bitextmine.train(tmp_path / "model", pairs=[("a.en", "a.fr")])
    assert (plans[0].data.corpora[0].src, plans[0].data.corpora[0].langs) == ("a.en", ("en", "fr"))
    options = bitextmine.TrainOptions("cpu-quick", "a.en-fr.tsv", settings={"model.dim": 16, "train.seed": 2})
    bitextmine.train(tmp_path / "model", options=options)
    bitextmine.train(tmp_path / "model", options=options, settings={"train.seed": 3})  # a field wins
    assert [(plan.model.dim, plan.train.seed) for plan in plans[1:]] == [(16, 2), (256, 3)]


def test_functions_take_the_objects_of_the_commands(encoder, tmp_path):
    texts = ["Good morning.", "I do not eat meat."], ["Je ne mange pas de viande.", "Bonjour."]
    plain = bitextmine.mine(*texts, model=encoder, threshold="none", retrieval="forward")
    options = bitextmine.MiningOptions(threshold="none", retrieval="union")
    run = bitextmine.Run(threads=1)
    given = bitextmine.mine(
        *texts, model=encoder, options=options, run=run, retrieval="forward", device="cpu"
    )
    assert [*given] == [*plain] and given.signature == plain.signature
    for wrong, message in (
        ({"options": run}, "options: expected MiningOptions, found Run"),
        ({"run": "cpu"}, "run: expected Run, found 'cpu'"),
    ):
        with pytest.raises(UsageError, match=message):
            bitextmine.mine(*texts, model=encoder, **wrong)
    pairs = [*zip(*texts, strict=True), ("Room 12", "Chambre 12")]
    scoring = bitextmine.ScoreOptions(columns="numbers,cosine", src="en", tgt="fr", k=2)
    pandas.testing.assert_frame_equal(
        bitextmine.score(pairs, options=scoring, model=encoder),
        bitextmine.score(pairs, columns="numbers,cosine", k=2, model=encoder, run=bitextmine.Run("cpu")),
    )
    langs = bitextmine.FilterOptions(src="en", tgt="fr")
    assert len(bitextmine.filter(pairs, preset="none", options=langs).kept) == 3
    lax, strict = bitextmine.AlignOptions(max_size=2), bitextmine.AlignOptions(documents=True)
    links = bitextmine.align(*texts, model=encoder, options=lax)
    assert "max_size:2|" in links.signature and len(links) == len(bitextmine.align(*texts, max_size=2))
    with pytest.raises(UsageError, match="documents is for the command"):
        bitextmine.align(*texts, options=strict)
    (tmp_path / "book.txt").write_text("Good morning. I am here.\n\nHello.\n")
    split = bitextmine.SplitOptions(langs=("en",), join="paragraph")
    assert [one.text for one in bitextmine.split(tmp_path / "book.txt", options=split)] == [
        "Good morning. I am here.",
        "Hello.",
    ]
    with pytest.raises(UsageError, match="options: expected AdaptOptions, found 5"):
        bitextmine.adapt("a.en", "b.fr", tmp_path / "model", options=5)


def test_results_in_notebooks(samples, encoder):
    _, en, de = samples
    mined = bitextmine.mine(en, de, model=encoder)
    html = mined._repr_html_()
    assert "<table" in html and "&lt;Bitext: " in html and "more rows: to_frame()" in html
    kept = bitextmine.filter([("a", "b"), ("a", "a")], max={"copy": 0.5})
    ranked = bitextmine.evaluate_retrieval({"en": en[:50], "de": de[:50]}, model=encoder)
    for result in (kept, ranked):
        assert "<table" in result._repr_html_()


def test_the_example_of_training(root, tmp_path):
    pytest.importorskip("sentence_transformers")
    code = [sys.executable, root / "train/example.py", tmp_path / "work"]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "P@1 0." in done.stdout
    assert (tmp_path / "work/exported/modules.json").is_file()
