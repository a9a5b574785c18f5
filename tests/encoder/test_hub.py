"""Encoders by their name on the hub; the hub is a folder here."""

import inspect
import json

import numpy as np
import pytest

from bitextmine.embeddings.embed import embed_corpus
from bitextmine.encoder import load_encoder
from bitextmine.encoder.folder import hub_name
from bitextmine.errors import BitextmineError

huggingface_hub = pytest.importorskip("huggingface_hub")

REPOSITORY, COMMIT = "some-org/tiny.model-v1.5", "b" * 40


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("org/name", ("org/name", None)),
        ("org/name@refs/pr/3", ("org/name", "refs/pr/3")),
        ("name", None),
        ("a/b/c", None),
        ("./a/b", None),
        ("org/name@", None),
        ("here/there", None),
        ("here/missing", None),
        ("here/missing@main", ("here/missing", "main")),
    ],
)
def test_what_is_a_name_of_the_hub(model, name, tmp_path, monkeypatch):
    (tmp_path / "here" / "there").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert hub_name(model) == name


@pytest.fixture
def hub(make_folder, tmp_path, monkeypatch):
    """The folder of a published model, and the revisions that were asked for."""
    folder = make_folder(tmp_path / "cache" / "snapshots" / COMMIT, 0)
    asked = []
    real = inspect.signature(huggingface_hub.snapshot_download)

    def download(*args, **given):
        given = real.bind(*args, **given).arguments
        asked.append(given["revision"])
        if given["repo_id"] != REPOSITORY:
            raise OSError("404: no such repository\nand more")
        names = ("config.json", "model.safetensors", "pytorch_model.bin", "own.py", "onnx/config.json")
        wanted = huggingface_hub.utils.filter_repo_objects(names, allow_patterns=given["allow_patterns"])
        assert list(wanted) == ["config.json", "model.safetensors"], "no pickles and no code"
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return folder, asked


def test_a_model_of_the_hub(hub, tmp_path):
    """The commit is in the manifest."""
    folder, asked = hub
    (tmp_path / "text.en").write_text("the cat sat on the mat\nLe chat\n")
    encoder = load_encoder(f"{REPOSITORY}@v1")
    npy = embed_corpus(tmp_path / "text.en", encoder)
    assert json.loads(npy.with_suffix(".json").read_text())["model_hash"] == f"{REPOSITORY}@{COMMIT}"
    own = load_encoder(folder)
    np.testing.assert_allclose(np.load(npy), own.encode(["the cat sat on the mat", "Le chat"]), atol=1e-3)
    assert (asked, encoder.name) == (["v1"], REPOSITORY)


def test_what_cannot_be_fetched(hub):
    folder, _ = hub
    with pytest.raises(BitextmineError, match=r"no/such: no such folder, and the hub .*404: no such"):
        load_encoder("no/such")
    (folder / "config.json").unlink()
    with pytest.raises(BitextmineError, match=r"has no modules.json, config.json or \*.spm"):
        load_encoder(REPOSITORY)
