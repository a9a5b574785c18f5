"""Workers on all nodes of a cluster, and calls that are given to them: in order, and again where a worker dies."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bitextmine.console import counted
from bitextmine.distributed.nodes import JOIN_SECONDS, TELL_SECONDS, Members, Node, first_line
from bitextmine.distributed.worker import Done, Worker
from bitextmine.errors import BitextmineError
from bitextmine.system import size

__all__ = ["Call", "Pool", "Report"]

log = logging.getLogger(__name__)

_QUEUED = 2  # calls that a worker has: one that it works on, one that waits, so that it need not
_TRIES = 5  # a call that so many workers died of is not tried again
_STARTS = 3  # workers of a node that may die before they have done anything
_LOOK_SECONDS = 2.0  # between looks at which nodes there are


@dataclass
class Call:
    """A function "module:name" of this package and its arguments. what: what it does, in words, for messages; key:
    for whoever made the call."""

    function: str
    args: tuple[Any, ...]
    what: str
    key: Any = None
    lost: int = 0
    done: Done | None = None


@dataclass
class Report:
    """What the workers did since the pool was made, or since the last report. seconds: of all calls; again: calls that
    were made again because a worker died, or what it had written was gone; peak: the most memory of one worker."""

    calls: int = 0
    seconds: float = 0.0
    again: int = 0
    lost_workers: int = 0
    workers: int = 0
    nodes: int = 0
    peak: int = 0

    def __str__(self) -> str:
        text = (
            f"{counted(self.calls, 'task')} by {counted(self.workers, 'worker')} on {counted(self.nodes, 'node')}, "
            f"{self.seconds:.1f} s of work, {size(self.peak)} of memory at most in one"
        )
        if self.lost_workers:
            text += f"; {counted(self.lost_workers, 'worker')} lost"
        if self.again:
            text += f", {counted(self.again, 'task')} done again"
        return text


@dataclass
class _Hired:
    """A worker. ref: what its first call will answer, None once it has; calls: those it has, first come first."""

    actor: Any
    node: Node
    ref: Any
    calls: dict[Any, Call] = field(default_factory=dict)


class Pool:
    """Makes calls on workers, which it starts on every node, also on those that join later.

    In the object store lie the arguments of no more than two calls for each worker, and of those that `in_order` may
    begin ahead.
    """

    def __init__(self, cluster: Members) -> None:
        self._cluster, self._ray = cluster, cluster.ray
        self._workers: list[_Hired] = []
        self._todo: deque[Call] = deque()
        self._failed_starts: dict[str, int] = {}
        self._refused: dict[
            str, float
        ] = {}  # since when a node refuses workers, as one does that has just joined
        self._looked = self._told = 0.0
        self._report = Report()
        self._seen_workers: set[int] = set()
        self._seen_nodes: set[str] = set()
        self._number = 0
        self._staff()

    @property
    def slots(self) -> int:
        """How many calls the workers that are there, or starting, can have."""
        return _QUEUED * max(1, len(self._workers))

    def report(self) -> Report:
        """What was done since the last report."""
        report, self._report = self._report, Report()
        report.workers, report.nodes = len(self._seen_workers), len(self._seen_nodes)
        self._seen_workers, self._seen_nodes = set(), set()
        return report

    def in_order(self, calls: Iterator[Call], ahead: int = 0) -> Iterator[tuple[Call, Any]]:
        """Each call with what it returned, in the order of `calls`. As many are taken from it as workers have room for;
        with `ahead`, this many more may be finished before the one that comes next.

        Raises BitextmineError with a worker's message, and for a call that several workers died of.
        """
        order: deque[Call] = deque()
        left: Iterator[Call] | None = calls
        try:
            while True:
                while left is not None and len(order) < self.slots + ahead:
                    call = next(left, None)
                    if call is None:
                        left = None
                        break
                    order.append(call)
                    self._todo.append(call)
                    self._assign()
                if not order:
                    return
                if order[0].done is None:
                    self._wait()
                    continue
                call = order.popleft()
                yield call, self._value(call)
        finally:
            self._drop(order)

    def again(self, call: Call) -> Any:
        """Makes a call again whose result has got lost, before all others, and returns what it returns."""
        call.done, call.lost = None, call.lost + 1
        self._report.again += 1
        self._check_tries(call, "what it wrote was gone")
        self._todo.appendleft(call)
        self._until_done(call)
        return self._value(call)

    def one(self, call: Call) -> Any:
        """What a single call returns."""
        return next(self.in_order(iter([call])))[1]

    def close(self) -> None:
        """Stops all workers, whatever they do."""
        workers, self._workers = self._workers, []
        for worker in workers:
            with contextlib.suppress(Exception):
                self._ray.kill(worker.actor)

    # --- what is done ---

    def _value(self, call: Call) -> Any:
        assert call.done is not None
        if call.done.error is not None:
            raise BitextmineError(call.done.error)
        return call.done.value

    def _assign(self) -> None:
        """Gives calls to the workers that have fewest."""
        while self._todo:
            free = [worker for worker in self._workers if worker.ref is None and len(worker.calls) < _QUEUED]
            if not free:
                return
            worker = min(free, key=lambda one: len(one.calls))
            call = self._todo.popleft()
            worker.calls[worker.actor.run.remote(call.function, *call.args)] = call

    def _wait(self) -> None:
        """Until something happens, or for a second."""
        self._assign()
        refs = [ref for worker in self._workers for ref in ([worker.ref] if worker.ref else worker.calls)]
        if refs:
            first, _ = self._ray.wait(refs, num_returns=1, timeout=1.0)
            # and whatever else has come by now
            ready = set(self._ray.wait(refs, num_returns=len(refs), timeout=0)[0] if first else ())
        else:
            ready = set()
            time.sleep(0.2)
        for worker in list(self._workers):
            for ref in [ref for ref in ([worker.ref] if worker.ref else list(worker.calls)) if ref in ready]:
                if worker in self._workers and not self._took(worker, ref):
                    break
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._staff()
        self._assign()

    def _took(self, worker: _Hired, ref: Any) -> bool:
        """Takes what a worker answered; False where it has died."""
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(ref)
        except errors.RayTaskError as e:
            cause = e.as_instanceof_cause()
            if isinstance(cause, (errors.ObjectStoreFullError, errors.OutOfDiskError)):
                raise BitextmineError(_full(worker.node.address)) from None
            raise cause from None
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            raise BitextmineError(_full(worker.node.address)) from None
        except errors.RayError as e:
            if isinstance(e, errors.ActorUnschedulableError) and self._may_join(worker):
                self._workers.remove(worker)  # the next look at the nodes starts another
            else:
                self._lost(worker, first_line(e))
            return False
        if worker.ref is not None:
            worker.ref = None
            self._failed_starts.pop(worker.node.id, None)
            self._refused.pop(worker.node.id, None)
            return True
        call = worker.calls.pop(ref)
        call.done = answer
        self._report.calls += 1
        self._report.seconds += answer.seconds
        self._report.peak = max(self._report.peak, answer.peak)
        self._seen_workers.add(id(worker))
        self._seen_nodes.add(worker.node.id)
        return True

    def _may_join(self, worker: _Hired) -> bool:
        """Whether a node that would not start a worker may do so later: the first minute that it is asked."""
        begin = self._refused.setdefault(worker.node.id, time.monotonic())
        return worker.ref is not None and time.monotonic() - begin < JOIN_SECONDS

    def _lost(self, worker: _Hired, reason: str) -> None:
        """Lets a worker go that has died, and puts its calls first."""
        self._workers.remove(worker)
        with contextlib.suppress(Exception):
            self._ray.kill(worker.actor)
        if worker.ref is not None:
            failed = self._failed_starts[worker.node.id] = self._failed_starts.get(worker.node.id, 0) + 1
            if failed == _STARTS:
                log.warning(
                    "node %s: %d workers died as they started (%s); no more are started there",
                    worker.node.address,
                    failed,
                    reason,
                )
        else:
            self._report.lost_workers += 1
            log.warning(
                "a worker on node %s is lost (%s); what it had in hand is done again",
                worker.node.address,
                reason,
            )
        for number, call in enumerate(worker.calls.values()):
            if not number:  # the others waited
                call.lost += 1
                self._report.again += 1
                self._check_tries(call, reason)
        self._todo.extendleft(reversed(worker.calls.values()))
        self._looked = 0.0

    def _until_done(self, call: Call) -> None:
        while call.done is None:
            self._wait()

    def _check_tries(self, call: Call, reason: str) -> None:
        if call.lost >= _TRIES:
            raise BitextmineError(
                f"{call.what}: tried {call.lost} times, and each time the worker was lost ({reason}); if it ran out of "
                "memory, smaller shards (--ray-rows) or fewer workers on a node (--ray-cpus) need less"
            )

    def _drop(self, calls: deque[Call]) -> None:
        """Forgets calls whose results nobody waits for; those that run go on until the workers are stopped."""
        gone = {id(call) for call in calls}
        self._todo = deque(call for call in self._todo if id(call) not in gone)

    # --- who does it ---

    def _staff(self) -> None:
        """Starts workers where there is room for them, and lets those go whose node is gone."""
        nodes = self._cluster.newcomers()
        alive = {node.id for node in self._cluster.nodes()}
        for worker in list(self._workers):
            if worker.node.id not in alive:
                self._lost(worker, "the node is gone")
        for node in nodes:
            there = sum(worker.node.id == node.id for worker in self._workers)
            if self._failed_starts.get(node.id, 0) < _STARTS:
                for _ in range(node.workers - there):
                    self._workers.append(self._start(node))
        self._looked = time.monotonic()
        if all(worker.ref is not None for worker in self._workers):
            if not self._told:
                self._told = self._looked
            elif self._looked - self._told >= TELL_SECONDS:
                what = "no worker is left" if not self._workers else "no worker has started yet"
                log.warning("%s: waiting for processors of the Ray cluster (Ctrl-C stops)", what)
                self._told = self._looked
            if not self._workers and self._failed_starts:
                raise BitextmineError(
                    "no worker stays alive on any node of the Ray cluster; its logs say why"
                )
        else:
            self._told = 0.0

    def _start(self, node: Node) -> _Hired:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = self._cluster.options
        self._number += 1
        actor = (
            self._ray.remote(Worker)
            .options(
                num_cpus=options.cpus,
                num_gpus=options.gpus,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            )
            .remote(options.cpus)
        )
        return _Hired(actor, node, actor.pid.remote())


def _full(address: str) -> str:
    return (
        f"the object store of node {address} of the Ray cluster is full; start Ray with a larger one "
        "(ray start --object-store-memory BYTES), or take smaller shards (--ray-rows)"
    )
