"""Search over tiles is exact search: the same bytes, whatever the tiles, and whatever a run before has left."""

from pathlib import Path

import numpy as np
import pytest

from bitextmine.distributed import tiles
from bitextmine.distributed.tiles import FileRows, shard_rows, spans
from bitextmine.embeddings.store import Manifest, manifest_path, npy_header, open_embedding, vectors_digest
from bitextmine.errors import BitextmineError
from bitextmine.files.json_toml import write_json
from bitextmine.search import checkpoint as checkpoints
from bitextmine.search.checkpoint import Checkpoint
from bitextmine.search.exact import search_both
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import SearchOptions

from ..search.oracle import both, corpus
from .conftest import Here, Stopped, same


def search_tiles(workers, x, y, k, folder, **how):
    return tiles.search_tiles(workers, x, y, k, SearchOptions(memory=1 << 28), folder, **how)


def written(path, rows, lines=None):
    path.write_bytes(npy_header(*rows.shape) + np.ascontiguousarray(rows, "<f2").tobytes())
    digest = vectors_digest(path)
    write_json(manifest_path(path), Manifest(*rows.shape, vectors_blake2b=digest).to_json())
    vectors, _ = open_embedding(path)
    return FileRows(path, digest, lines, vectors if lines is None else np.array(vectors[lines]))


@pytest.fixture
def work(tmp_path):
    return tmp_path / "work.tiles"


@pytest.mark.parametrize(
    ("n", "m", "rows", "k", "how"),
    [
        (300, 250, 64, 5, {}),
        (300, 250, 1000, 5, {}),
        (65, 64, 64, 3, {"coarse": True}),
        (200, 333, 48, 4, {"coarse": True, "repeats": 0.3, "zeros": 0.1}),
        (3, 150, 40, 8, {"near": 0.5}),
        (1, 1, 16, 2, {}),
        (60, 45, 7, 2, {"repeats": 0.5}),
    ],
)
def test_tiles_find_what_one_search_finds(n, m, rows, k, how, tmp_path, work):
    rng = np.random.default_rng(n)
    x, y = (
        written(tmp_path / f"{name}.npy", corpus(rng, size, 32, **how)) for name, size in (("x", n), ("y", m))
    )
    told: list[int] = []
    found = search_tiles(Here(rows), x, y, k, folder=work, progress=told.append)
    same(found, search_both(x.vectors, y.vectors, k))
    same(found, Neighbours(*both(x.vectors, y.vectors, k)))
    assert not work.exists()
    assert sum(told) <= n


def test_only_the_lines_that_are_mined_are_compared(tmp_path, work):
    rng = np.random.default_rng(7)
    x = written(tmp_path / "x.npy", corpus(rng, 200, 16, repeats=0.2), np.flatnonzero(rng.random(200) < 0.6))
    y = written(tmp_path / "y.npy", corpus(rng, 150, 16))
    found = search_tiles(Here(50), x, y, 4, folder=work)
    same(found, search_both(x.vectors, y.vectors, 4))


def test_a_file_that_is_gone_or_damaged_is_made_again(tmp_path, work):
    rng = np.random.default_rng(4)
    x, y = (written(tmp_path / f"{name}.npy", corpus(rng, 200, 16)) for name in "xy")
    harmed: list[tuple[int, ...]] = []

    def harm(call):
        path = Path(call.args[-1])
        if call.key in ((0, 64, 64, 128), (128, 192, 0, 64)) and call.key not in harmed:
            harmed.append(call.key)
            if call.key[0]:
                path.write_bytes(path.read_bytes()[:-100])
            else:
                path.unlink()

    cluster = Here(64, after=harm)
    same(search_tiles(cluster, x, y, 4, folder=work), search_both(x.vectors, y.vectors, 4))
    assert len(harmed) == 2
    assert len(cluster.made) == 16 + 2


@pytest.mark.parametrize("at", [1, 6, 13])
def test_finished_tiles_are_not_done_again(at, tmp_path, work):
    rng = np.random.default_rng(5)
    x, y = (written(tmp_path / f"{name}.npy", corpus(rng, 256, 16, repeats=0.1)) for name in "xy")

    def stop(call):
        if len(cluster.made) == at:
            raise Stopped

    cluster = Here(64, after=stop)
    checkpoint = Checkpoint(tmp_path / "both.search.part")
    with pytest.raises(Stopped):
        search_tiles(cluster, x, y, 4, folder=work, checkpoint=checkpoint)
    left = {path: path.stat().st_mtime_ns for path in work.glob("*.npz")}
    assert len(left) == at
    seen: dict[Path, int] = {}
    again = Here(64, after=lambda call: seen.update({p: p.stat().st_mtime_ns for p in left if p.exists()}))
    same(search_tiles(again, x, y, 4, folder=work), search_both(x.vectors, y.vectors, 4))
    assert seen == left


def test_the_checkpoint_is_that_of_a_search_on_one_machine(tmp_path, work, monkeypatch):
    monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_SHARE", 0)
    rng = np.random.default_rng(6)
    x, y = (written(tmp_path / f"{name}.npy", corpus(rng, 256, 16, repeats=0.1)) for name in "xy")
    wanted = search_both(x.vectors, y.vectors, 4)

    def stop(rows):
        if checkpoint.path.exists() and rows:
            raise Stopped

    checkpoint = Checkpoint(tmp_path / "both.search.part")
    with pytest.raises(Stopped):
        options = SearchOptions(block_rows=50)
        search_both(x.vectors, y.vectors, 4, options, progress=stop, checkpoint=checkpoint)
    cluster = Here(64)
    again = Checkpoint(checkpoint.path)
    same(search_tiles(cluster, x, y, 4, folder=work, checkpoint=again), wanted)
    assert cluster.made[0][0] == 50, "it goes on where the other one stopped"
    rows: list[int] = []
    again = Checkpoint(checkpoint.path)
    same(search_both(x.vectors, y.vectors, 4, progress=rows.append, checkpoint=again), wanted)
    assert len(rows) == 1, "nothing was left to do"


def test_a_worker_that_sees_other_vectors_is_told_of(tmp_path, work):
    rng = np.random.default_rng(8)
    x, y = (written(tmp_path / f"{name}.npy", corpus(rng, 100, 16)) for name in "xy")
    other = FileRows(x.npy, y.digest, None, y.vectors)
    with pytest.raises(BitextmineError, match="holds other vectors on the node"):
        search_tiles(Here(64), other, y, 4, folder=work)


def test_shards_depend_on_the_number_of_rows_alone():
    assert shard_rows(100) == 1 << 16
    assert shard_rows(10**7) == 156_672
    assert shard_rows(10**9) == 1 << 22
    assert list(spans(50, 200, 64)) == [(50, 64), (64, 128), (128, 192), (192, 200)]
    assert list(spans(0, 0, 64)) == []
