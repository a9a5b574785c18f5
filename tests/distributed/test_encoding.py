"""A corpus encoded in shards is the corpus encoded by one process, byte for byte."""

from pathlib import Path

import numpy as np
import pytest

from bitextmine.distributed.encoding import ClusterEncoding
from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.selection import SelectedVectors
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.encoder import load_encoder
from bitextmine.files.corpus import Corpus
from bitextmine.run import Run

from .conftest import Here, Stopped

LINES = [f"the cat number {i % 37} sat on mat {i - i % 5}" if i % 11 else "" for i in range(900)]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.fr"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=[0, 1], ids=["sums", "layers"])
def model(request, make_folder, tmp_path):
    """Of the second kind, lines that came before are not encoded again."""
    return make_folder(tmp_path / "model", request.param)


def files(npy):
    return [npy.read_bytes(), npy.with_suffix(".json").read_bytes()]


def embedded(corpus, model, cluster, out):
    encoder = load_encoder(model, "cpu")
    options = EmbedOptions(out=out, chunk_lines=64)
    if cluster is None:
        return files(embed_corpus(corpus, encoder, options=options))
    with ClusterEncoding(cluster, encoder) as encoding:
        return files(embed_corpus(corpus, encoder, options=options, encoding=encoding))


@pytest.mark.parametrize("rows", [64, 200, 5000])
def test_shards_are_put_together_to_the_same_bytes(rows, corpus, model, tmp_path):
    wanted = embedded(corpus, model, None, tmp_path / "plain.npy")
    cluster = Here(rows)
    assert embedded(corpus, model, cluster, tmp_path / "shards.npy") == wanted
    assert len(cluster.made) > 900 // (rows + 64), "in so many shards, and a call that asks about the encoder"
    assert not (tmp_path / "shards.npy.shards").exists()
    made = len(cluster.made)
    assert embedded(corpus, model, cluster, tmp_path / "shards.npy") == wanted
    assert len(cluster.made) == made, "up to date: no worker is asked"


def test_finished_shards_are_not_done_again(corpus, model, tmp_path, monkeypatch):
    wanted = embedded(corpus, model, None, tmp_path / "plain.npy")
    folder = tmp_path / "shards.npy.shards"

    def stop(call):
        if len(list(folder.glob("*.npz"))) == 5:
            raise Stopped

    # As when a power cut comes before rows are on disk: those of the shards are there.
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(EmbeddingWriter, "sync", lambda self: None)
        embedded(corpus, model, Here(128, after=stop), tmp_path / "shards.npy")
    left = {path: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
    assert len(left) == 5
    seen: dict[Path, int] = {}
    again = Here(128, after=lambda call: seen.update({p: p.stat().st_mtime_ns for p in left if p.exists()}))
    assert embedded(corpus, model, again, tmp_path / "shards.npy") == wanted
    assert seen == left


def test_a_run_on_one_machine_takes_up_what_a_cluster_has_begun_and_the_other_way_round(
    corpus, model, tmp_path
):
    wanted = embedded(corpus, model, None, tmp_path / "plain.npy")

    def stop(call):
        if call.key is not None and call.key.start >= 512:
            raise Stopped

    with pytest.raises(Stopped):
        embedded(corpus, model, Here(128, after=stop), tmp_path / "one.npy")
    assert (tmp_path / "one.npy.shards").is_dir()
    assert embedded(corpus, model, None, tmp_path / "one.npy") == wanted
    assert not (tmp_path / "one.npy.shards").exists()

    cluster = Here(200)
    encoder = load_encoder(model, "cpu")
    encode, count = encoder.encode_pieces, 0

    def stop_here(*args, **more):
        nonlocal count
        count += 1
        if count == 4:
            raise Stopped
        return encode(*args, **more)

    encoder.encode_pieces = stop_here
    with pytest.raises(Stopped):
        embed_corpus(corpus, encoder, options=EmbedOptions(out=tmp_path / "two.npy", chunk_lines=64))
    assert embedded(corpus, model, cluster, tmp_path / "two.npy") == wanted
    assert next(shard.start for shard in cluster.made if shard is not None) == 192


def test_selected_lines_are_encoded_by_the_workers(corpus, model, tmp_path, monkeypatch):
    monkeypatch.setattr("bitextmine.embeddings.selection._SLOW_BLOCK", 30)
    encoder = load_encoder(model, "cpu")
    encoder.network.chunk_lines = 40
    text, lines, found, cluster = Corpus(corpus), np.arange(5, 300, 2), [], Here()
    with ClusterEncoding(cluster, encoder) as encoding:
        for name, elsewhere in (("here", None), ("there", encoding.vectors)):
            folder = tmp_path / name
            with SelectedVectors(text, encoder, Run("cpu"), folder, elsewhere) as vectors:
                vectors.encode(lines)
                assert not len(vectors.missing(lines))
            found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1] and len(cluster.made) >= 4
