"""`bitextmine index`, and mining through indexes."""

import json
import shutil

import pytest

from .helpers import MINE

THROUGH = (*MINE, "--search", "index")


@pytest.fixture(scope="module")
def indexed_folder(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """Two corpora with embeddings and indexes."""
    folder = tmp_path_factory.mktemp("indexed")
    parallel_text(folder, 350, extra=50)
    for kind, corpus in (("flat", "corpus.en"), ("ivf", "corpus.fr")):
        bitextmine("index", corpus, "--type", kind, "--model", tiny_model, cwd=folder)
    return folder


@pytest.fixture
def indexed(indexed_folder, tmp_path):
    shutil.copytree(indexed_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path


def flipped(path):
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", ["a bit", "truncated", "manifest"])
def test_a_damaged_index_is_built_again_as_it_was(bm, indexed, damage):
    path, manifest = indexed / "corpus.fr.faiss", indexed / "corpus.fr.faiss.json"
    before = json.loads(manifest.read_text())
    if damage == "a bit":
        flipped(path)
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        manifest.write_text(json.dumps({**before, "effort": [1], "recall": None}))
    said = bm(*THROUGH).err
    assert "corpus.fr.faiss" in said and "building it again (--type ivf)" in said
    after = json.loads(manifest.read_text())
    assert [after[key] for key in ("type", "factory", "sha256")] == [
        before[key] for key in ("type", "factory", "sha256")
    ]


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_foreign_files_instead_of_an_index(bm, tmp_path, suffix):
    name = f"corpus.fr.faiss{suffix}"
    (tmp_path / name).write_text("IxFI" if name.endswith("faiss") else '{"kind": "notes"}')
    message = bm.refused("index", "corpus.en", "corpus.fr")
    assert f"{name}: " in message and "--force" in message
    bm("index", "corpus.fr", "--force")
    assert json.loads((tmp_path / "corpus.fr.faiss.json").read_text())["kind"] == "index"
