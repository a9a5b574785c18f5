"""A search through indexes by workers is the search through indexes: the same bytes, whatever the tiles, and whatever a
run before has left."""

import numpy as np
import pytest

from bitextmine.distributed import lists as on_cluster
from bitextmine.distributed.lists import ClusterSearcher
from bitextmine.distributed.tiles import FileRows
from bitextmine.embeddings.store import npy_header, open_vectors
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.search import checkpoint as checkpoints
from bitextmine.search import indexed as both
from bitextmine.search.faiss_index import Index
from bitextmine.search.indexed import Indexed, search_both_indexed
from bitextmine.search.lists import ROUTE_ROWS, Block, block_rows

from ..search.conftest import build_index
from ..search.oracle import corpus
from .conftest import Here, Stopped, same


class Side:
    """An embedding of all lines, its index, and the lines that are mined."""

    def __init__(self, path, matrix, kind, mined=None):
        path.write_bytes(npy_header(*matrix.shape) + np.ascontiguousarray(matrix, "<f2").tobytes())
        self.matrix = open_vectors(path)
        self.index: Index = build_index(self.matrix, kind)
        self.vectors = self.matrix if mined is None else np.array(self.matrix[mined])
        self.rows = None
        if mined is not None:
            self.rows = np.full(len(matrix), -1)
            self.rows[mined] = np.arange(len(mined))
        self.file = FileRows(path, mined, self.vectors)


def search(x, y, k, cluster=None, folder=None, **more):
    run = Run(memory=1 << 28)
    elsewhere = None
    if cluster is not None:
        identity = {"x": "of this test"}
        elsewhere = ClusterSearcher(cluster, x.file, y.file, identity, folder=folder).lists
    sides = (Indexed(side.vectors, side.index, side.rows) for side in (x, y))
    return search_both_indexed(*sides, k, run, elsewhere=elsewhere, **more)[0]


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(both, "SAMPLE", 200)


@pytest.fixture
def sides(tmp_path):
    def make(n, m, kind="ivf", mined=1.0, **how):
        rng = np.random.default_rng(n + m)
        y = corpus(rng, m, 24, **how)
        x = corpus(rng, n, 24, **how).astype(np.float32) * 0.5
        x[: min(n, m)] += y[: min(n, m)]  # translations, of which lists find more than by chance
        x /= np.linalg.norm(x, axis=1, keepdims=True) + 1e-9
        picks = [np.flatnonzero(rng.random(size) < mined) if mined < 1 else None for size in (n, m)]
        return (
            Side(tmp_path / "x.npy", x.astype(np.float16), kind, picks[0]),
            Side(tmp_path / "y.npy", y.astype(np.float16), kind, picks[1]),
        )

    return make


@pytest.mark.parametrize(
    ("n", "m", "rows", "k", "how"),
    [
        (5000, 4500, 700, 4, {}),
        (5000, 4500, 10_000, 3, {}),
        (4500, 3000, 300, 5, {"mined": 0.7}),
        (3000, 5000, 512, 4, {"coarse": True, "repeats": 0.3}),
        (2500, 2600, 400, 2, {"coarse": True, "mined": 0.6, "repeats": 0.2}),
        (2100, 150, 64, 8, {"kind": "IVF5,SQ8"}),
    ],
)
def test_workers_find_what_one_process_finds(n, m, rows, k, how, sides, tmp_path):
    x, y = sides(n, m, **how)
    told: list[int] = []
    cluster = Here(rows)
    found = search(x, y, k, cluster, tmp_path / "work", progress=told.append)
    same(found, search(x, y, k))
    assert len([key for key in cluster.made if key is not None]) >= 2
    assert sum(told) <= n + m


@pytest.mark.parametrize(("at", "saves"), [(1, True), (9, False), (25, True)])
def test_what_is_finished_is_not_done_again(at, saves, sides, tmp_path, monkeypatch):
    """With 9 tiles in a row of the first pass, three rows of them; in the second pass as many."""
    if saves:
        monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 0.0)
        monkeypatch.setattr(checkpoints, "_SHARE", 0)
    x, y = sides(4500, 4400, coarse=True, repeats=0.2)
    work = tmp_path / "work"
    whole = Here(500)
    wanted = search(x, y, 4, whole, work)
    same(wanted, search(x, y, 4))
    total = sum(key is not None for key in whole.made)
    for left in work.glob("*"):
        left.unlink()
    work.rmdir()

    def stop(call):
        if sum(key is not None for key in cluster.made) == at:
            raise Stopped

    cluster = Here(500, after=stop)
    with pytest.raises(Stopped):
        search(x, y, 4, cluster, work)
    begun: list[bool] = []
    compare = Block.search
    monkeypatch.setattr(Block, "search", lambda *a: begun.append(True) or compare(*a))
    same(search(x, y, 4, Here(500), work), wanted)
    assert len(begun) == total - at


def test_workers_of_another_kind_are_told_of(sides, tmp_path, monkeypatch):
    x, y = sides(2500, 2400)
    kinds = iter(["float32 AVX2"])
    monkeypatch.setattr(on_cluster, "_arithmetic", lambda: next(kinds, "bfloat16 AVX512"))
    with pytest.raises(BitextmineError, match="finds lists in bfloat16 AVX512, and the machine that"):
        search(x, y, 4, Here(), tmp_path / "work")


@pytest.mark.parametrize("memory", [1 << 20, 50 << 20, 77_777_777, 1 << 40])
def test_where_rows_are_looked_for_does_not_depend_on_the_memory(memory):
    """Of 512 numbers and a thousand lists, products of 2,048 rows are not, to the last bit, those of a part of them."""
    assert block_rows(512, 30, 4, 2, memory) % ROUTE_ROWS == 0
