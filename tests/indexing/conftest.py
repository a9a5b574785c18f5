"""What tests of the index share with those of the search that it rests on, and an index in memory."""

import tempfile
from pathlib import Path

import faiss
import pytest

from bitextmine.indexing.build import build_on_disk, make_plan
from bitextmine.indexing.faiss_index import Index

from ..search.conftest import one_thread, way

__all__ = ["build_index", "no_gpu", "one_thread", "way"]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """Search indexes on the CPU, also with faiss-gpu (index/check_gpu.py compares both)."""
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)


def build_index(vectors, kind="auto", *, seed=1):
    """As `index_corpus` builds it, with a modest effort."""
    plan = make_plan(vectors, kind, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        made = faiss.read_index(str(build_on_disk(vectors, plan, Path(folder), {}, memory=1 << 30).file))
    index = Index(made, plan.facts())
    if (effort := index.effort()) is not None:
        index.set_effort(min(8 if effort[0] == "nprobe" else 64, effort[2]))
    return index
