"""Compute columns for blocks of sentence pairs, here or on workers: the engine of `score`, whatever holds the pairs."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.executor import Task
from bitextmine.files.formats.blocks import Added, Block, Rows
from bitextmine.files.formats.layout import Layout
from bitextmine.scoring.columns.catalogue import PairTexts, Request, Tools
from bitextmine.scoring.options import WINDOW
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.distributed.encoding import SentModel
    from bitextmine.executor import Kept
    from bitextmine.run import Run

_SAMPLE = 100  # pairs that load what all columns need
_Texts = tuple[list[str], list[str]]  # sources and targets of the good rows of a block
Item = TypeVar("Item")


class PairRows(Rows):
    """Sentence pairs in memory as `Rows`, for functions that take files as well.

    Args:
        names: of the columns, src and tgt among them.
        rows: a list of values for each pair, None for no value; read once.
    """

    def __init__(self, names: Sequence[str], rows: Iterable[list[Any]]) -> None:
        rows = iter(rows)
        first = list(itertools.islice(rows, 1))
        self._rows, self.empty = itertools.chain(first, rows), not first
        self.layout = Layout(len(names), tuple(names), {name: names.index(name) for name in ("src", "tgt")})

    def blocks(self, rows: int | None = None, most: int = 0) -> Iterator[Block]:
        """Yield the rows in blocks of `rows` (None: of a window); `most` is for files."""
        start = 1
        while part := list(itertools.islice(self._rows, rows or WINDOW)):
            yield Block(self.layout.names, part, start)
            start += len(part)


def good_rows(block: Block) -> NDArray[np.int64]:
    """Return the rows of a block that can be read."""
    bad = block.bad()
    return np.array([row for row in range(len(block)) if row not in bad], dtype=np.int64)


def texts_of(block: Block, sides: tuple[int, int]) -> _Texts:
    """Return the good rows of a block as sources and targets, which are in these columns."""
    rows = good_rows(block)
    return block.texts(sides[0], rows), block.texts(sides[1], rows)


@dataclass
class PairScorer:
    """Computes the columns of a request, with its tools, for a stream of blocks."""

    tools: Tools

    @property
    def request(self) -> Request:
        """Return the columns to compute."""
        return self.tools.request

    @property
    def signature(self) -> str:
        """Return the signature of the columns; BitextmineError if the networks of the column quality are damaged."""
        request, encoder, second = self.request, self.tools.encoder, self.tools.second
        parts: dict[str, Any] = {"columns": ",".join(request.names), "model": encoder and encoder.hash}
        if second is not None:
            parts["second"] = second.hash
        if "quality" in request.names:
            parts["quality"] = self.tools.quality.digest
        if request.uses("neighbours"):
            neighbours = f"window{request.window}"
            parts |= {"k": request.k, "margin": request.margin, "neighbours": neighbours}
        if all(request.langs):
            parts |= dict(zip(("src", "tgt"), request.langs, strict=True))
        return signature(**parts)

    def scored(
        self, blocks: Iterable[Block], layout: Layout, run: Run
    ) -> Iterator[tuple[Block, list[Added]]]:
        """Yield each block with its columns: NaN or empty text for rows that cannot be read."""
        compute = self._remotely if run.executor.distributed else self._here
        for block, values in compute(blocks, layout, run):
            columns = zip(self.request.names, values, strict=True)
            yield block, [Added(name, _spread(column, block)) for name, column in columns]

    def _here(self, blocks: Iterable[Block], layout: Layout, run: Run) -> Iterator[tuple[Block, list[Any]]]:
        """Yield blocks with their columns; if there are several, copies of this process compute them."""
        tools, blocks = self.tools, iter(blocks)
        first = list(itertools.islice(blocks, 2))
        blocks = itertools.chain(first, blocks)
        if len(first) == 2 and run.thread_count > 1 and _can_fork():
            # Copies share what columns load when they are first computed: tables, models, patterns.
            src, tgt = texts_of(first[0], (layout.src, layout.tgt))
            _columns(tools, (), (src[:_SAMPLE], tgt[:_SAMPLE]))
            tasks = self._tasks(blocks, layout)
            if _can_fork():  # without a compiled search the sample has loaded torch
                yield from mapped(lambda task: _columns(tools, *task), tasks, run.thread_count)
            else:
                yield from ((block, _columns(tools, *task)) for block, task in tasks)
            return
        for block in blocks:
            pairs = PairTexts(*texts_of(block, (layout.src, layout.tgt)), tools)
            yield block, [pairs.column(name) for name in self.request.names]

    def _tasks(
        self, blocks: Iterable[Block], layout: Layout
    ) -> Iterator[tuple[Block, tuple[list[_Texts], _Texts]]]:
        """Yield each block with the texts of the blocks that it is compared with, and its own."""
        before: deque[_Texts] = deque()
        for block in blocks:
            texts = texts_of(block, (layout.src, layout.tgt))
            room = self.request.window - len(texts[0])
            while before and sum(len(src) for src, _ in list(before)[1:]) >= room:
                before.popleft()
            yield block, (list(before), texts)
            if self.request.uses("neighbours"):
                before.append(texts)

    def _remotely(
        self, blocks: Iterable[Block], layout: Layout, run: Run
    ) -> Iterator[tuple[Block, list[Any]]]:
        """Yield the same, computed by workers."""
        from bitextmine.distributed.encoding import sent_model

        tools, device = self.tools, run.executor.device(run.device)
        with run.executor.open() as workers:
            models = [each and sent_model(each, device) for each in (tools.encoder, tools.second)]
            tasks = (
                Task(
                    f"{__name__}:columns_of", (tools.request, models, *task), f"scoring block {n}", key=block
                )
                for n, (block, task) in enumerate(self._tasks(blocks, layout), start=1)
            )
            with workers.stage("score"):
                for task, values in workers.map(tasks, ahead=workers.slots):
                    yield task.key, values


def columns_of(
    kept: Kept, request: Request, models: Sequence[SentModel | None], back: Sequence[_Texts], texts: _Texts
) -> list[Any]:
    """Compute the columns of some pairs, on a worker."""
    if "tools" not in kept or kept["tools"].request != request:
        from bitextmine.distributed.encoding import encoder_of

        kept["tools"] = Tools(request, *(None if model is None else encoder_of(model) for model in models))
    return _columns(kept["tools"], back, texts)


def _columns(tools: Tools, back: Sequence[_Texts], texts: _Texts) -> list[Any]:
    """Compute the columns of some pairs.

    The blocks before them (`back`) are encoded as they were there: the composition of a batch decides the last bits.
    """
    request = tools.request
    if request.uses("neighbours"):
        from bitextmine.scoring.columns.neighbourhood import Neighbourhood

        for own in filter(None, (tools, tools.of_second)):
            own.neighbourhood = Neighbourhood(request.k, request.window)
            for earlier in back:
                pairs = PairTexts(*earlier, own)
                own.neighbourhood.remember(pairs.src, pairs.tgt, pairs.vectors)
    pairs = PairTexts(*texts, tools)
    return [pairs.column(name) for name in request.names]


def _spread(values: Any, block: Block) -> Any:
    """Return values of the good rows of a block, with NaN or empty text for the others."""
    if len(values) == len(block):
        return values
    rows = good_rows(block)
    if isinstance(values, np.ndarray):
        out = np.full(len(block), np.nan)
        out[rows] = values
        return out
    cells = dict(zip(rows.tolist(), values, strict=True))
    return [cells.get(row, "") for row in range(len(block))]


# --- copies of this process ---

_mapped: Callable[[Any], Any] | None = None  # which the copies inherit


def _can_fork() -> bool:
    """Return True if a copy of this process can compute: on Linux, without threads that a copy would lack, or a GPU."""
    threads = [thread for thread in threading.enumerate() if type(thread).__name__ != "TMonitor"]  # tqdm's
    return sys.platform == "linux" and threads == [threading.main_thread()] and "torch" not in sys.modules


def mapped(
    function: Callable[[Any], Any], tasks: Iterable[tuple[Item, Any]], processes: int
) -> Iterator[tuple[Item, Any]]:
    """Yield each item with the value of the function for its argument, in order, computed by copies of this process.

    Copies end with the generator, and when this process ends, however it does.
    """
    global _mapped
    _mapped = function
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _follow_parent)
    waiting: deque[tuple[Item, Future[Any]]] = deque()
    others = set(multiprocessing.active_children())
    try:
        for item, argument in tasks:
            waiting.append((item, pool.submit(_call, argument)))
            if len(waiting) > 2 * processes:  # one in work and one at hand for each
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if waiting:  # nobody waits for what the copies compute
            for copy in set(multiprocessing.active_children()) - others:
                copy.terminate()


def _result(item: Item, future: Future[Any]) -> tuple[Item, Any]:
    try:
        return item, future.result()
    except BrokenProcessPool:
        raise BitextmineError("a process that computes ended; it may have been short of memory") from None


def _call(argument: Any) -> Any:
    assert _mapped is not None
    return _mapped(argument)


def _follow_parent() -> None:
    """End when the parent does; Ctrl-C is left to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
