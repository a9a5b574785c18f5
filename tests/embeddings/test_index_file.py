import json

import numpy as np
import pytest

from bitextmine.console import silent
from bitextmine.embeddings import index_file as file
from bitextmine.embeddings.index_file import check_index, index_paths, load_index, open_index
from bitextmine.embeddings.store import Manifest, open_embedding
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search.indexed import Indexed
from bitextmine.search.options import IndexOptions

from ..search import oracle


def index_corpus(npy, kind="auto", *, memory=None, progress=silent, **options):
    return file.index_corpus(npy, IndexOptions(kind, **options), Run(memory=memory), progress)


def embed(path, vectors, text="a"):
    identity = {"corpus": path.stem, "text_sha256": text * 64, "model": "m", "model_hash": "0" * 16}
    with EmbeddingWriter(path, len(vectors), vectors.shape[1], identity) as writer:
        writer.write(0, vectors)
        writer.finish(Manifest(rows=len(vectors), dim=vectors.shape[1], lang="fr", **identity))
    return path


def contents(npy):
    """The index and its manifest."""
    return tuple(path.read_bytes() for path in index_paths(npy))


@pytest.fixture
def npy(tmp_path):
    return embed(tmp_path / "corpus.fr.npy", oracle.corpus(np.random.default_rng(0), 500, 32, 0.1, 0.05))


@pytest.mark.parametrize("kind", ["auto", "ivf", "HNSW32_SQ8", "PCA16,Flat"])
def test_what_is_loaded_is_what_was_built(npy, kind):
    seen: list[int] = []
    report = index_corpus(npy, kind, progress=seen.append)
    vectors, _ = open_embedding(npy)
    assert report.built
    assert report.path == npy.with_name("corpus.fr.faiss")
    assert sum(seen) == report.facts["distinct_rows"] == load_index(report.path).rows
    recall = report.facts["recall"]
    assert 0.5 < recall["at_1"] <= 1
    manifest = json.loads(index_paths(npy)[1].read_text())
    assert manifest["kind"] == "index"
    assert manifest["recall"] == recall
    assert manifest["embedding"]["text_sha256"] == "a" * 64
    index = load_index(report.path)
    nprobe, _ = index.effort()
    assert ({"nprobe": nprobe} if nprobe else {}) == manifest["effort"]
    sim, ids = Indexed(vectors, index).search(vectors, 3)
    some = (vectors != 0).any(axis=1)
    assert (ids[some, 0] >= 0).all()
    assert (sim[some, 0] > 0.99).mean() > 0.9
    for text in (kind if kind == "PCA16,Flat" else "corpus.fr.faiss", "recall", "32"):
        assert text in report.to_table()


def test_a_rerun_does_nothing_and_force_makes_the_same(npy):
    first = index_corpus(npy, "ivf")
    made = contents(npy)
    again = index_corpus(npy, "ivf")
    assert not again.built
    assert again.facts == first.facts
    assert index_corpus(npy, "ivf", force=True).built
    assert contents(npy) == made
    assert sorted(path.name for path in npy.parent.iterdir()) == [
        f"corpus.fr.{kind}" for kind in ("faiss", "faiss.json", "json", "npy")
    ]


def test_freshness_goes_by_content(npy):
    assert check_index(npy) == "not indexed yet"
    index_corpus(npy, "flat")
    assert check_index(npy) is None
    assert check_index(npy, "flat") is None
    assert check_index(npy, "ivf") == "made as 'flat', not 'ivf'"
    embed(npy, oracle.vectors(np.random.default_rng(1), 500, 32), "b")
    assert check_index(npy) == "the vectors changed"
    open_index(npy)
    assert check_index(npy) is None


def test_damage_is_told(npy):
    report = index_corpus(npy)
    file, manifest = index_paths(npy)
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    said = f"{len(whole) - 100:,} bytes, but corpus.fr.faiss.json says"
    assert said in check_index(npy)
    with pytest.raises(BitextmineError, match=said):
        load_index(file)
    file.write_bytes(b"x" * len(whole))
    with pytest.raises(BitextmineError, match="not a whole FAISS index"):
        load_index(file)
    file.write_bytes(whole)
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**facts, "dim": 16}))
    with pytest.raises(BitextmineError, match=r"dim is 32, but .* says 16"):
        load_index(file)
    manifest.write_text(json.dumps({**facts, "effort": {"efSearch": 64}}))  # of HNSW
    assert check_index(npy) == "tuned by an earlier version"
    manifest.write_text(json.dumps({**facts, "kind": "embedding"}))
    with pytest.raises(BitextmineError, match="not an index"):
        load_index(file)
    manifest.unlink()
    with pytest.raises(BitextmineError, match=r"manifest corpus.fr.faiss.json is missing"):
        load_index(file)
    file.unlink()
    with pytest.raises(BitextmineError, match="no such index"):
        load_index(report.path)


FACTORIES = ["ivf", "IVF2,PQ8x4fs", "OPQ8_32,IVF4,PQ8x4fs", "IVF4_HNSW8,SQ8", "PQ4x4,Refine(PQ8x4)"]
FACTORIES += ["RQ4x4", "PRQ2x2x4", "HNSW8_2x4+PQ4"]


@pytest.mark.parametrize("kind", FACTORIES)
def test_factory_strings_write_nothing_to_standard_output(npy, capfd, kind):
    index_corpus(npy, kind)
    load_index(index_paths(npy)[0])
    assert not capfd.readouterr().out  # FAISS itself warns of few rows, on standard error


@pytest.mark.parametrize("after", ["_checksum", "write_json"])
def test_a_kill_leaves_nothing_that_is_taken_for_an_index(npy, monkeypatch, after):
    """Before the manifest is written, or between it and the index."""
    index_corpus(npy, "flat")
    embed(npy, oracle.vectors(np.random.default_rng(1), 500, 32), "b")
    real = getattr(file, after)

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(file, after, killed)
        index_corpus(npy, "flat", force=True)
    assert check_index(npy) is not None
    assert index_corpus(npy, "flat").built
    assert check_index(npy) is None
