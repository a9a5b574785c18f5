"""Nodes that have just joined: the cluster lists them before they take work. Ray is a stand-in that refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitextmine.distributed import cluster as clusters
from bitextmine.distributed import pool as pools
from bitextmine.distributed.cluster import Cluster
from bitextmine.distributed.options import RayOptions
from bitextmine.distributed.pool import Call, Pool
from bitextmine.distributed.worker import Done
from bitextmine.errors import BitextmineError
from bitextmine.version import __version__

ray = pytest.importorskip("ray", reason="--ray needs the extra 'ray'")

FIT = {"host": "here", "version": __version__, "trouble": None, "python": "", "unseen": [], "readonly": []}


class Stub:
    """Ray with one node, which refuses the first `refuse` tasks and actors that are sent to it."""

    exceptions = ray.exceptions

    def __init__(self, refuse: int, facts: dict[str, Any] = FIT) -> None:
        self.refuse, self.facts, self.sent, self.gone = refuse, facts, 0, False

    def nodes(self) -> list[dict[str, Any]]:
        resources = {"CPU": 1.0, "object_store_memory": 1e9}
        return [
            {
                "NodeID": "a" * 56,
                "NodeManagerAddress": "10.0.0.1",
                "Alive": not self.gone,
                "Resources": resources,
            }
        ]

    def _answer(self, error: type[Exception], value: Any) -> Any:
        self.sent += 1
        return error("The node doesn't exist any more") if self.sent <= self.refuse else value

    def remote(self, *what: Any, **_: Any) -> Any:
        if what:  # the class of the actor
            return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._actor))
        task = SimpleNamespace(
            remote=lambda tokens: [self._answer(self.exceptions.TaskUnschedulableError, self.facts)]
        )
        return lambda _: SimpleNamespace(options=lambda **_: task)

    def _actor(self, cpus: int) -> Any:
        found = self._answer(self.exceptions.ActorUnschedulableError, 1)
        answered = SimpleNamespace(remote=lambda *_: Ref(found))
        run = SimpleNamespace(remote=lambda *_: Ref(Done("done", None, 0.0, 0)))
        return SimpleNamespace(pid=answered, run=run)

    def wait(self, refs: list[Any], num_returns: int = 1, timeout: float | None = None) -> Any:
        return refs, []

    def get(self, ref: Any) -> Any:
        value = ref.value if isinstance(ref, Ref) else ref[0]
        if isinstance(value, Exception):
            raise value
        return value

    def kill(self, actor: Any) -> None:
        pass


class Ref:
    """What a worker will answer."""

    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(pools, "_LOOK_SECONDS", 0.01)


def test_a_node_that_refuses_at_first_is_asked_again(tmp_path: Path) -> None:
    stub = Stub(refuse=3)
    Cluster(stub, RayOptions()).share([tmp_path])
    assert stub.sent == 4
    assert not list(tmp_path.iterdir()), "the files that nodes looked for are gone"


def test_for_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "JOIN_SECONDS", 0.05)
    with pytest.raises(
        BitextmineError, match=r"node 10\.0\.0\.1 of the Ray cluster: no worker starts there: "
    ):
        Cluster(Stub(refuse=10**9), RayOptions()).share([tmp_path])


def test_a_node_that_goes_while_it_is_asked_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub(refuse=10**9)
    monkeypatch.setattr(stub, "wait", lambda *_, **__: (setattr(stub, "gone", True), ([], []))[1])
    with pytest.raises(BitextmineError, match="has no node with room for a worker"):
        Cluster(stub, RayOptions()).share([tmp_path])


def test_newcomers_are_not_waited_for(tmp_path: Path) -> None:
    stub = Stub(refuse=2)
    cluster = Cluster(stub, RayOptions())
    cluster._folders[tmp_path] = None
    assert [len(cluster.newcomers()) for _ in range(4)] == [0, 0, 1, 1]
    assert stub.sent == 3
    assert not list(tmp_path.iterdir())


def test_an_unfit_newcomer_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(Stub(0, {**FIT, "version": "0.0.1"}), RayOptions())
    assert cluster.newcomers() == cluster.newcomers() == []
    assert caplog.text.count("has bitextmine 0.0.1, and this is") == 1
    assert caplog.text.count("nothing is given to it") == 1


def test_a_node_that_starts_no_workers_at_first_gets_some_later() -> None:
    stub = Stub(refuse=7)  # three of them would be taken for a node where workers die
    cluster = Cluster(stub, RayOptions())
    cluster._good.add("a" * 56)
    pool = Pool(cluster)
    assert pool.one(Call("module:name", (), "something")) == "done"
    assert pool.report().lost_workers == 0


def test_a_node_that_never_starts_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "JOIN_SECONDS", 0.05)
    cluster = Cluster(Stub(refuse=10**9), RayOptions())
    cluster._good.add("a" * 56)
    with pytest.raises(BitextmineError, match="no worker stays alive on any node"):
        Pool(cluster).one(Call("module:name", (), "something"))
