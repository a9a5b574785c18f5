import pytest
import torch

from bitextmine.search import faiss_index, fused
from bitextmine.search.faiss_index import faiss


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """On small matrices several threads only wait for one another, and for whoever else uses the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # what processors() goes by, and with it faiss
        yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """Search indexes on the CPU, also with faiss-gpu."""
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)


@pytest.fixture(params=["compiled", "plain"])
def way(request, monkeypatch):
    """Both ways in which the package computes: with the C library, and as where it could not be built."""
    if request.param == "plain":
        monkeypatch.setattr(fused, "library", lambda: None)
    elif fused.library() is None:
        pytest.skip("no compiled search here")
    return str(request.param)


def build_index(vectors, kind="auto"):
    """As `index_corpus` builds it, with a modest effort."""
    index = faiss_index.build_index(vectors, kind)
    index.set_effort(min(8, index.effort()[1]))
    return index
