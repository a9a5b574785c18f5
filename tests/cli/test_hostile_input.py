"""Files and options that nobody writes by accident: one clear line on standard error, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from safetensors.numpy import save_file

DIGITS_400, DIGITS_5000 = "9" * 400, "9" * 5000
DEEP = 100_000
PAIRS = "0.9\tA doctor.\tUn médecin.\n0.8\tA table.\tUne table.\n"


@pytest.fixture
def fails(bitextmine, tmp_path) -> Callable[..., str]:
    """Runs a command in the test's folder to an error of one line, which is returned."""

    def run(*args: str | os.PathLike[str], code: int = 1, **kwargs: Any) -> str:
        result = bitextmine(*args, cwd=tmp_path, code=code, **kwargs)
        assert "Traceback" not in result.err, result.err
        last = result.err.strip().splitlines()[-1]
        assert last.startswith("bitextmine: error: " if code == 1 else "Error: "), result.err
        return last

    return run


# --- numbers of hundreds and thousands of digits ---------------------------------------------------------


@pytest.mark.parametrize("digits", [DIGITS_400, DIGITS_5000], ids=["400", "5000"])
@pytest.mark.parametrize("command", ["--min", "--set", "--scol", "-k", "--memory"])
def test_endless_numbers_in_options(fails, tmp_path, command, digits):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    args, code = {
        "--min": (["filter", "pairs.tsv", "--min", f"score={digits}"], 2),
        "--set": (["train", "cpu-quick", "--out", "model", "--set", f"train.temperature={digits}"], 2),
        "--scol": (["score", "pairs.tsv", "--scol", digits, "--tcol", "2"], 1),
        "-k": (["mine", "--src", "en", "--tgt", "fr", "-k", digits], 2),
        "--memory": (["mine", "--src", "en", "--tgt", "fr", "--memory", f"{digits}G"], 2),
    }[command]
    fails(*args, code=code)


@pytest.mark.parametrize("digits", [DIGITS_400, DIGITS_5000], ids=["400", "5000"])
@pytest.mark.parametrize("rule", ["[min]\nscore = {}\n", "[min]\n{} = 1\n"])
def test_endless_numbers_in_a_rule_file(fails, tmp_path, rule, digits):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "rules.toml").write_text(rule.format(digits))
    message = fails("filter", "pairs.tsv", "--rules", "rules.toml")
    assert "rules.toml" in message or rule.startswith("[min]\n{}")


@pytest.mark.parametrize("digits", [DIGITS_400, DIGITS_5000], ids=["400", "5000"])
def test_endless_numbers_in_a_recipe(fails, tmp_path, digits):
    (tmp_path / "recipe.toml").write_text(
        f'[data]\ncorpora = [{{pairs = "pairs.tsv", langs = ["en", "fr"]}}]\n[train]\ntemperature = {digits}\n'
    )
    assert "recipe.toml" in fails("train", "recipe.toml", "--out", "model")


@pytest.mark.parametrize("digits", ["9" * 25, DIGITS_400, DIGITS_5000], ids=["25", "400", "5000"])
def test_endless_line_numbers_in_a_gold_standard(fails, tmp_path, digits):
    (tmp_path / "gold.tsv").write_text(f"1\t1\n{digits}\t2\n")
    (tmp_path / "pairs.tsv").write_text("0.9\t1\t1\tA doctor.\tUn médecin.\n")
    assert "gold.tsv: line 2" in fails("evaluate", "mining", "pairs.tsv", "--gold", "gold.tsv")
    (tmp_path / "gold.txt").write_text(f"[0]:[0]\n[1]:[{digits}]\n")
    assert "gold.txt: line 2" in fails("evaluate", "align", "gold.txt", "--gold", "gold.txt")


# --- nested a thousand deep ------------------------------------------------------------------------------


@pytest.mark.parametrize("deep", [DEEP])
@pytest.mark.parametrize("name", ["rules.toml", "recipe.toml", "--set"])
def test_nested_toml(fails, tmp_path, name, deep):
    value = "[" * deep + "]" * deep
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "rules.toml").write_text(f"if_present = {value}\n")
    (tmp_path / "recipe.toml").write_text(f"data = {value}\n")
    if name == "--set":
        short = "[" * min(deep, 50_000)  # the system's limit for an argument is 128 KiB
        fails("train", "cpu-quick", "--out", "model", "--set", f"train.temperature={short}", code=2)
    elif name == "rules.toml":
        assert name in fails("filter", "pairs.tsv", "--rules", name)
    else:
        assert name in fails("train", name, "--out", "model")


@pytest.mark.parametrize("deep", [200, DEEP])
@pytest.mark.parametrize("name", ["modules.json", "config.json", "pairs.tsv.json", "corpus.fr.json"])
def test_nested_json(fails, tmp_path, name, deep):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    folder = tmp_path / "model"
    folder.mkdir()
    for place in (folder, tmp_path):
        (place / name).write_text('{"a":' * deep + "[]" + "}" * deep)
    commands = {"pairs.tsv.json": ("report", "pairs.tsv", "--manifest", name, "-o", "x.html")}
    named = ("info", name) if name == "corpus.fr.json" else ("info", "model")
    message = fails(*commands.get(name, named))
    assert name in message
    assert "nested too deep" in message


# --- models and embeddings -------------------------------------------------------------------------------


@pytest.fixture
def model(tiny_model, tmp_path) -> Path:
    """A copy of a model as the test's own, beside a corpus."""
    shutil.copytree(tiny_model, tmp_path / "model")
    (tmp_path / "corpus.fr").write_text("Un médecin.\n")
    return tmp_path / "model"


@pytest.mark.parametrize("value", [5, None, "fr", [5], {"fr": 1}], ids=repr)
def test_languages_of_another_type(fails, model, value):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "languages": value}))
    message = fails("info", "model")
    assert "config.json" in message
    assert "languages" in message


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int], int]], data: bytes = b"") -> None:
    """A file of tensors: name -> (type, shape, bytes)."""
    header, at = {}, 0
    for name, (kind, shape, size) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + (data or bytes(at)))


TENSORS = {
    "float8": ("F8_E4M3", [4, 4], 16),
    "huge": ("F32", [1 << 40, 1 << 40], 64),
    "huge and empty": ("F32", [0, 1 << 62, 1 << 62], 0),
    "many axes": ("F32", [1] * 100, 4),
    "digits": ("F32", [int("9" * 400), 4], 64),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_cannot_be(fails, model, kind):
    safetensors(model / "model.safetensors", {"embedding.weight": TENSORS[kind]})
    message = fails("embed", "corpus.fr", "--model", "model")
    assert "model.safetensors" in message


@pytest.mark.parametrize("row", ["1e400", "NaN", "9" * 400, "9" * 5000, "1.5"], ids=lambda row: row[:9])
def test_rows_of_laser(fails, model, tmp_path, row):
    folder = tmp_path / "laser"
    folder.mkdir()
    shutil.copy(model / "tokenizer.model", folder / "laser.spm")
    table = np.zeros((8, 4), dtype=np.float32)
    save_file({"embed_tokens.weight": table}, folder / "laser.safetensors", {"dictionary": f'{{"a": {row}}}'})
    assert "laser.safetensors: the dictionary" in fails("info", "laser")


@pytest.mark.parametrize("deep", [DEEP])
def test_nested_dictionary_of_laser(fails, model, tmp_path, deep):
    folder = tmp_path / "laser"
    folder.mkdir()
    shutil.copy(model / "tokenizer.model", folder / "laser.spm")
    table = np.zeros((8, 4), dtype=np.float32)
    nested = '{"a":' * deep + "1" + "}" * deep
    save_file({"embed_tokens.weight": table}, folder / "laser.safetensors", {"dictionary": nested})
    assert "laser.safetensors: the dictionary" in fails("info", "laser")


@pytest.mark.parametrize(
    "shape",
    [(0, 1 << 62), (1 << 62, 0), (1 << 62, 1 << 62), (int("9" * 400), 0)],
    ids=lambda shape: str(shape)[:9],
)
def test_embeddings_of_impossible_shapes(fails, tmp_path, shape):
    header = str({"descr": "<f2", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    (tmp_path / "corpus.fr.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    manifest = {"kind": "embedding", "rows": max(0, shape[0]), "dim": max(0, shape[1])}
    (tmp_path / "corpus.fr.json").write_text(json.dumps(manifest))
    assert "corpus.fr.npy" in fails("info", "corpus.fr.npy")


# --- indexes ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def indexed_folder(bitextmine, tiny_model, parallel_text, tmp_path_factory) -> Path:
    """Two corpora with their embeddings and indexes."""
    folder = tmp_path_factory.mktemp("indexed")
    parallel_text(folder, 400)
    for kind, corpus in (("flat", "corpus.en"), ("ivf", "corpus.fr")):
        bitextmine("index", corpus, "--type", kind, "--model", tiny_model, cwd=folder)
    return folder


@pytest.fixture
def indexed(indexed_folder, tmp_path) -> Path:
    shutil.copytree(indexed_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path


def through_indexes(tiny_model: Path) -> list[str | Path]:
    return ["mine", "--src", "en", "--tgt", "fr", "--search", "index", "--model", tiny_model]


WRONG_IDS = {
    "zeros": np.zeros_like,
    "out of range": lambda ids: ids + (1 << 40),
    "one twice": lambda ids: np.where(ids == 3, 4, ids),
}


@pytest.mark.parametrize("wrong", WRONG_IDS)
@pytest.mark.parametrize("lang", ["en", "fr"])
def test_ids_that_are_no_permutation(fails, indexed, tiny_model, lang, wrong):
    path = indexed / f"corpus.{lang}.faiss"
    index = faiss.read_index(str(path))
    if lang == "en":
        ids = faiss.vector_to_array(index.id_map)
        faiss.copy_array_to_vector(WRONG_IDS[wrong](ids), index.id_map)
    else:
        for number in range(index.nlist):
            size = index.invlists.list_size(number)
            if size:
                ids = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
                ids[:] = WRONG_IDS[wrong](ids)
    faiss.write_index(index, str(path))
    message = fails(*through_indexes(tiny_model))
    assert path.name in message
    assert "run index --force" in message


WRONG_FACTS = [
    ("effort", 5),
    ("effort", {"nprobe": "x"}),
    ("effort", {"nprobe": 1 << 70}),
    ("rescored_per_neighbour", "x"),
    ("recall", 5),
    ("recall", {"k": "x"}),
    ("rows", "x"),
    ("measured", {}),
    ("auto", 5),
]


@pytest.mark.parametrize(("key", "value"), WRONG_FACTS, ids=repr)
def test_index_manifests_of_other_types(bitextmine, indexed, tiny_model, key, value):
    """An index is not up to date by a damaged manifest: it is built again."""
    # An inverted file has the efforts there are; one without takes less time to measure.
    corpus, kind = ("corpus.fr", "ivf") if key == "effort" else ("corpus.en", "flat")
    manifest = indexed / f"{corpus}.faiss.json"
    before = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**before, key: value}))
    bitextmine("index", corpus, "--type", kind, "--model", tiny_model, cwd=indexed)
    after = json.loads(manifest.read_text())
    assert {**after, "measured": 0} == {**before, "measured": 0}
    assert after["measured"].keys() == before["measured"].keys()


def test_mining_with_an_index_manifest_of_other_types(bitextmine, indexed, tiny_model):
    manifest = indexed / "corpus.fr.faiss.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "effort": [1], "recall": None}))
    assert bitextmine(*through_indexes(tiny_model), cwd=indexed).out.count("\n") > 100
    assert json.loads(manifest.read_text())["recall"]["k"] >= 1


# --- names and signatures --------------------------------------------------------------------------------


def test_names_that_are_not_utf8(bitextmine, fails, tiny_model, tmp_path):
    name = os.fsdecode(b"caf\xe9.fr")
    (tmp_path / name).write_text("Un médecin.\nUne table.\n")
    bitextmine("embed", name, "--model", tiny_model, cwd=tmp_path)
    assert "not UTF-8" in fails("index", name, "--model", tiny_model)
    for command in (("info", name), ("info", name + ".npy")):
        result = bitextmine(*command, cwd=tmp_path, code=None)
        assert "Traceback" not in result.err, result.err
        assert result.code == 0
    pairs = os.fsdecode(b"\xe9.tsv")
    (tmp_path / pairs).write_text(PAIRS)
    for command in (
        ("score", pairs, "--columns", "length_ratio", "-o", os.fsdecode(b"\xe8.tsv")),
        ("filter", pairs, "--min", "score=0", "-o", os.fsdecode(b"\xea.tsv")),
        ("filter", pairs, "--min", "score=0"),
        ("report", pairs, "-o", os.fsdecode(b"\xe9.html")),
    ):
        result = bitextmine(*command, cwd=tmp_path, code=None)
        assert "Traceback" not in result.err, result.err
        assert result.code == 0, result.err
    fails("info", os.fsdecode(b"\xff.npy"))
    fails("report", os.fsdecode(b"\xff.tsv"), "-o", "x.html")


@pytest.mark.parametrize("part", ["%ff", "%ED%B3%BF", "\udcff"], ids=ascii)
@pytest.mark.parametrize("given", [True, False])
def test_signatures_that_are_not_utf8(bitextmine, tmp_path, part, given):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    signature = f"src:en|tgt:fr|k:4|margin:ratio|threshold:{part}"
    manifest = {"kind": "bitext", "signature": signature, "threshold": {"value": 0.5}}
    (tmp_path / "pairs.tsv.json").write_text(json.dumps(manifest))
    options = ["--manifest", "pairs.tsv.json"] if given else []
    result = bitextmine("report", "pairs.tsv", *options, "-o", "report.html", cwd=tmp_path, code=None)
    assert "Traceback" not in result.err, result.err
    assert result.code in ((0, 1) if given else (0,))
    if result.code == 0:
        (tmp_path / "report.html").read_text(encoding="utf-8")
    else:
        assert "pairs.tsv.json" in result.err
