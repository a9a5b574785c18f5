"""`bitextmine info`."""

import json
import shutil
import struct
from pathlib import Path

import pytest

from .helpers import MINE

DEEP = 100_000


def facts(bm, *args, **options):
    return dict(line.split(": ", 1) for line in bm("info", *args, **options).out.splitlines())


def test_kinds_of_files(bm, mined, tiny_model, tmp_path):
    bm(*MINE, "-o", "out.tsv")
    bm("index", "corpus.fr", "--type", "flat")
    assert facts(bm, "corpus.fr").items() >= {("lines", "35"), ("language", "fr")}
    assert facts(bm, "corpus.fr.npy") == facts(bm, "corpus.fr.json")
    assert facts(bm, "corpus.fr.json")["rows"] == "35"
    assert "margin:ratio" in bm("info", "out.tsv").out
    assert "recall" in bm("info", "corpus.fr.faiss").out == bm("info", "corpus.fr.faiss.json").out
    (tmp_path / "corpus.fr.faiss").write_bytes(b"junk")
    assert "corpus.fr.faiss: 4 bytes, but corpus.fr.faiss.json says" in bm.fails("info", "corpus.fr.faiss")
    assert "32" in bm("info", tiny_model).out
    piped = facts(bm, "-", stdin=b"One.\n\nTwo.\n")
    assert (piped["what"], piped["lines"], piped["blank lines"]) == ("corpus", "3", "1")


def test_files_that_it_does_not_describe(bm, mined, tmp_path):
    bm(*MINE, "-o", "out.tsv")
    bm("index", "corpus.fr", "--type", "flat")
    (tmp_path / "corpus.fr.faiss").rename(tmp_path / "e.faiss")
    for name in ("a.tmx", "a.jsonl.gz", "page.html", "recipe.toml"):
        (tmp_path / name).write_text("Some text.\n")
        said = bm.fails("info", name)
        assert name in said and "info describes an encoder, an embedding" in said
        assert f"({name}.json)" in said
    (tmp_path / "recipe.json").write_text('{"train": {"batch": 2}}')
    assert "recipe.json: JSON, without a manifest" in bm.fails("info", "recipe.json")
    assert "e.faiss: an index, without a manifest (e.faiss.json)" in bm.fails("info", "e.faiss")


def test_a_name_that_the_hub_does_not_have(bm):
    pytest.importorskip("huggingface_hub")
    said = bm.fails("info", "nobody/nothing", env={"HF_HUB_OFFLINE": "1"})
    assert "nobody/nothing: no such folder, and the hub does not give such a model" in said


@pytest.mark.parametrize(
    "shape", [(0, 1 << 62), (1 << 62, 1 << 62), (int("9" * 400), 0)], ids=lambda s: str(s)[:9]
)
def test_embeddings_of_impossible_shapes(bm, tmp_path, shape):
    header = str({"descr": "<f2", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    (tmp_path / "corpus.fr.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    manifest = {"kind": "embedding", "rows": max(0, shape[0]), "dim": max(0, shape[1])}
    (tmp_path / "corpus.fr.json").write_text(json.dumps(manifest))
    assert "corpus.fr.npy" in bm.fails("info", "corpus.fr.npy")


@pytest.fixture
def model(tiny_model, tmp_path):
    """A copy of a model as the test's own, beside a corpus."""
    shutil.copytree(tiny_model, tmp_path / "model")
    (tmp_path / "corpus.fr").write_text("Un médecin.\n")
    return tmp_path / "model"


@pytest.mark.parametrize("deep", [200, DEEP])
@pytest.mark.parametrize("name", ["model/modules.json", "model/config.json", "corpus.fr.json"])
def test_deeply_nested_json(bm, tmp_path, name, deep):
    (tmp_path / "model").mkdir()
    (tmp_path / name).write_text('{"a":' * deep + "[]" + "}" * deep)
    message = bm.fails("info", name if "/" not in name else "model")
    assert Path(name).name in message and "nested too deep" in message


TENSORS = {
    "float8": ("F8_E4M3", [4, 4], 16),
    "huge": ("F32", [1 << 40, 1 << 40], 64),
    "huge and empty": ("F32", [0, 1 << 62, 1 << 62], 0),
    "many axes": ("F32", [1] * 100, 4),
    "digits": ("F32", [int("9" * 400), 4], 64),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_impossible_tensors(bm, model, kind):
    dtype, shape, size = TENSORS[kind]
    header = {"embedding.weight": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    assert "model.safetensors" in bm.fails("embed", "corpus.fr", "--model", "model")
