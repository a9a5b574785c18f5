"""A cluster that is none: calls are made at once, in this process. What Ray does is tested in test_cluster.py."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitextmine.distributed import encoding, models
from bitextmine.distributed.options import RayOptions
from bitextmine.distributed.pool import Call, Report
from bitextmine.distributed.worker import Worker

from ..encoder.conftest import make_folder, tiny_tokenizer

__all__ = ["Here", "here", "make_folder", "tiny_tokenizer"]


class Here:
    """What `Cluster` and its `Pool` are to those who use them. after: called with each call when it is made."""

    slots = 4

    def __init__(self, options: RayOptions, after: Callable[[Call], None] = lambda call: None) -> None:
        self.options, self.after = options, after
        self.pool, self.ray = self, SimpleNamespace(put=lambda data: data)
        self.made: list[Any] = []
        self.kept: dict[str, Any] = {}

    def share(self, folders: Any) -> None:
        assert all(Path(folder).is_dir() for folder in folders)

    def nodes(self) -> list[Any]:
        return []

    def report(self) -> Report:
        return Report()

    def in_order(self, calls: Iterator[Call], ahead: int = 0) -> Iterator[tuple[Call, Any]]:
        waiting: list[Call] = []
        for call in calls:  # as late as a cluster may answer: limits and rows are those of some time ago
            waiting.append(call)
            if len(waiting) > ahead:
                yield waiting[0], self._make(waiting[0])
                waiting.pop(0)
        for call in waiting:
            yield call, self._make(call)

    def one(self, call: Call) -> Any:
        return self._make(call)

    def again(self, call: Call) -> Any:
        return self._make(call)

    def _make(self, call: Call) -> Any:
        done = Worker.run(self._worker, call.function, *call.args)
        if done.error is not None:
            raise AssertionError(done.error)
        self.made.append(call.key)
        self.after(call)
        return done.value

    @property
    def _worker(self) -> Any:
        return SimpleNamespace(_kept=self.kept, _stage="bitextmine.distributed.tiles")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Here]:
    """Makes a `Here`, which those who connect to a cluster then get."""

    def make(rows: int | None = None, report: Path | None = None, **more: Any) -> Here:
        cluster = Here(RayOptions("local", rows=rows, report=report), **more)
        monkeypatch.setattr(encoding, "connected", lambda options: contextlib.nullcontext(cluster))
        monkeypatch.setattr(models, "_unpacked", lambda model: FOLDERS[model.key])
        for room in (encoding, models):
            monkeypatch.setattr(room, "send_model", _sent)
        return cluster

    send = models.send_model

    def _sent(cluster: Here, model: Any) -> models.SentModel:
        sent = send(cluster, model)  # type: ignore[arg-type]
        FOLDERS[sent.key] = Path(model)
        return sent

    return make


FOLDERS: dict[str, Path] = {}
