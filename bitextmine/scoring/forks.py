"""Compute in copies of this process, which share what it has loaded."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from bitextmine.errors import BitextmineError

Item = TypeVar("Item")


def can_fork() -> bool:
    """Return True if a copy of this process can compute: on Linux, without threads that a copy would lack, or a GPU."""
    threads = [thread for thread in threading.enumerate() if type(thread).__name__ != "TMonitor"]  # tqdm's
    return sys.platform == "linux" and threads == [threading.main_thread()] and "torch" not in sys.modules


def mapped(
    function: Callable[[Any], Any], tasks: Iterable[tuple[Item, Any]], processes: int
) -> Iterator[tuple[Item, Any]]:
    """Yield each item with the value of the function for its argument, in order, computed by copies of this process.

    Copies end with the generator, and when this process ends, however it does.
    """
    context = multiprocessing.get_context("fork")
    ends: list[Any] = []
    copies: list[Any] = []
    busy: deque[tuple[Any, Item]] = deque()
    try:
        for number, (item, argument) in enumerate(tasks):
            if len(busy) == processes:
                yield _result(*busy.popleft())
            if len(ends) < processes:
                mine, other = context.Pipe()
                ends.append(mine)
                copies.append(context.Process(target=_serve, args=(function, other, list(ends)), daemon=True))
                copies[-1].start()
                other.close()
            ends[number % processes].send(argument)
            busy.append((ends[number % processes], item))
        while busy:
            yield _result(*busy.popleft())
    finally:
        for end, copy in zip(ends, copies, strict=True):
            end.close()
            if busy:  # nobody waits for what it computes
                copy.terminate()
            copy.join()


def _result(end: Any, item: Item) -> tuple[Item, Any]:
    try:
        value, error = end.recv()
    except (EOFError, ConnectionResetError):
        raise BitextmineError("a process that computes ended; it may have been short of memory") from None
    if error is not None:
        raise error
    return item, value


def _serve(function: Callable[[Any], Any], end: Any, inherited: list[Any]) -> None:
    """Answer the requests that come through a pipe, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which then closes the pipe
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for pipe_end in inherited:  # or the pipe would stay open when the parent dies
        pipe_end.close()
    while True:
        try:
            argument = end.recv()
        except EOFError:
            return
        value = error = None
        try:
            value = function(argument)
        except Exception as e:
            error = e
        try:
            end.send((value, error))
        except BrokenPipeError:
            return
