"""Compute columns and judge rows on the workers of an executor; blocks come back in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.executor import Task
from bitextmine.scoring.columns.catalogue import pair_texts
from bitextmine.scoring.columns.neighbourhood import WindowNeighbourhood
from bitextmine.scoring.judge import Judge, Judged, SentCells
from bitextmine.scoring.request import Request, Texts

if TYPE_CHECKING:
    from bitextmine.distributed.models import SentModel
    from bitextmine.executor import Kept, Workers


def remote_columns(
    workers: Workers, request: Request, model: str | None, device: str, blocks: Iterator[tuple[Any, Texts]]
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each block with the values of its columns, the same as this process would compute.

    Blocks come with the texts of their good rows. Every node must see indexes under the same path.
    """
    from bitextmine.distributed.models import send_model

    workers.share([Path(index).absolute().parent for index in request.indexes or ()])
    sent = None if model is None else send_model(workers, model)

    def tasks() -> Iterator[Task]:
        before: deque[Texts] = deque()
        for number, (block, texts) in enumerate(blocks):
            back = _last(before, request.window - len(texts[0])) if request.looks_back else []
            args = request, sent, device, back, texts
            yield Task(f"{__name__}:columns_of", args, f"scoring block {number + 1}", key=block)
            before.append(texts)
            while sum(len(src) for src, _ in list(before)[1:]) >= request.window:
                before.popleft()

    with workers.stage("score"):
        for task, values in workers.map(tasks(), ahead=workers.slots):
            yield task.key, values


def remote_judge(
    workers: Workers, judge: Judge, request: Request, blocks: Iterator[tuple[Any, SentCells]]
) -> Iterator[tuple[Any, Judged]]:
    """Yield each block with the verdict on its good rows; blocks come with the cells of those rows.

    Which of equal pairs came first is left to the driver, which sees all of them in order.
    """
    workers.share([])
    tasks = (
        Task(
            f"{__name__}:judged",
            (judge, request, cells, len(block) - len(block.bad())),
            f"rows {block.start} to {block.start + len(block) - 1}",
            key=block,
        )
        for block, cells in blocks
    )
    with workers.stage("filter"):
        for task, found in workers.map(tasks, ahead=workers.slots):
            yield task.key, found


def _last(before: deque[Texts], pairs: int) -> list[Texts]:
    """Return the last blocks that together hold so many pairs."""
    back: list[Texts] = []
    for texts in reversed(before):
        if pairs <= 0:
            break
        back.insert(0, texts)
        pairs -= len(texts[0])
    return back


def judged(kept: Kept, judge: Judge, request: Request, cells: SentCells, count: int) -> Judged:
    """Judge good rows, on a worker."""
    if kept.get("request") != request:
        kept["tools"], kept["request"] = request.tools(), request
    return judge.judge(cells, np.arange(count), count, kept["tools"])


def columns_of(
    kept: Kept, request: Request, model: SentModel | None, device: str, back: Sequence[Texts], texts: Texts
) -> list[Any]:
    """Compute the columns of some pairs, on a worker.

    The blocks before them (`back`) are encoded as they were there: the composition of a batch decides the last bits.
    """
    if kept.get("request") != request:
        from bitextmine.distributed.models import encoder_of

        encoder = None if model is None else encoder_of(kept, model, device)
        kept["tools"], kept["request"] = request.tools(encoder), request
    tools = kept["tools"]
    if request.looks_back:
        window = tools.neighbourhood = WindowNeighbourhood(request.k, request.window)
        for src, tgt in back:
            window.remember(src, tgt, pair_texts(src, tgt, tools).vectors())
    pairs = pair_texts(*texts, tools)
    return [pairs.column(name) for name in request.names]
