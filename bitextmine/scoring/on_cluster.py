"""Columns computed, and rows judged, by the workers of an executor, block by block; rows come out in their order."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.executor import Task
from bitextmine.scoring.columns.catalogue import COLUMNS, pair_texts
from bitextmine.scoring.columns.texts import Tools
from bitextmine.scoring.judge import Judge, Judged, PlacedRule, SentCells

if TYPE_CHECKING:
    from bitextmine.distributed.models import SentModel
    from bitextmine.executor import Executor, Kept

__all__ = ["ClusterColumns", "ClusterJudge", "Texts"]

_HERE = "bitextmine.scoring.on_cluster"
Texts = tuple[list[str], list[str]]


@dataclass(frozen=True)
class _Wanted:
    """What a worker computes: the columns, and what their tools are made of (`Tools`)."""

    names: tuple[str, ...]
    margin: str
    src_lang: str
    tgt_lang: str
    batch_tokens: int | None
    device: str
    model: SentModel | None
    k: int
    window: int
    indexes: tuple[str, str] | None

    @property
    def looks_back(self) -> bool:
        """Whether a block is seen together with the pairs before it."""
        return self.indexes is None and any(COLUMNS[name].neighbours for name in self.names)


class ClusterColumns:
    """Computes columns on a cluster, within a ``with`` block: the values that this process would compute.

    model: a name or folder, None where no column needs an encoder. indexes: the embedded corpora that a margin's
    neighbours are in, which nodes must see under the same path.
    """

    def __init__(
        self,
        executor: Executor,
        names: Sequence[str],
        tools: Tools,
        *,
        model: str | None,
        k: int,
        window: int,
        indexes: tuple[Any, Any] | None,
    ) -> None:
        self._executor, self._names, self._tools, self._model = executor, tuple(names), tools, model
        self._k, self._window = k, window
        self._indexes = None if indexes is None else tuple(Path(index).absolute() for index in indexes)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> ClusterColumns:
        from bitextmine.distributed.models import send_model

        self._workers = self._stack.enter_context(self._executor.open())
        try:
            self._workers.share([index.parent for index in self._indexes or ()])
            tools = self._tools
            self._wanted = _Wanted(
                self._names,
                tools.margin,
                tools.src_lang,
                tools.tgt_lang,
                tools.batch_tokens,
                self._executor.device(tools.device),
                None if self._model is None else send_model(self._workers, self._model),
                self._k,
                self._window,
                None if self._indexes is None else (str(self._indexes[0]), str(self._indexes[1])),
            )
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def of(self, blocks: Iterator[tuple[Any, Texts]]) -> Iterator[tuple[Any, list[Any]]]:
        """Each block with the values of the columns for its pairs, in order. blocks: with the texts of their good rows,
        in the order of the stream."""

        def tasks() -> Iterator[Task]:
            before: deque[Texts] = deque()
            for number, (block, texts) in enumerate(blocks):
                back = _as_many(before, self._window - len(texts[0])) if self._wanted.looks_back else []
                args = (self._wanted, back, texts)
                yield Task(f"{_HERE}:columns_of", args, f"scoring block {number + 1}", key=block)
                before.append(texts)
                while sum(len(src) for src, _ in list(before)[1:]) >= self._window:
                    before.popleft()

        with self._workers.stage("score"):
            for task, values in self._workers.map(tasks(), ahead=self._workers.slots):
                yield task.key, values


@dataclass(frozen=True)
class _Rules:
    """What a worker judges rows by."""

    rules: tuple[PlacedRule, ...]
    duplicates: str
    src_lang: str
    tgt_lang: str
    keeps: bool


class ClusterJudge:
    """Judges rows on a cluster, within a ``with`` block, as `judge.Judge` does here. Which of equal pairs came first is
    left to the driver, which sees all of them, in their order."""

    def __init__(
        self,
        executor: Executor,
        rules: tuple[PlacedRule, ...],
        duplicates: str,
        tools: Tools,
        *,
        keeps: bool = False,
    ) -> None:
        self._executor = executor
        self._rules = _Rules(rules, duplicates, tools.src_lang, tools.tgt_lang, keeps)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> ClusterJudge:
        self._workers = self._stack.enter_context(self._executor.open())
        try:
            self._workers.share([])
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def of(self, blocks: Iterator[tuple[Any, SentCells]]) -> Iterator[tuple[Any, Judged]]:
        """Each block with what became of its good rows, in order. blocks: with what is sent of those rows."""
        tasks = (
            Task(
                f"{_HERE}:judged",
                (self._rules, cells, len(block) - len(block.bad())),
                f"rows {block.start} to {block.start + len(block) - 1}",
                key=block,
            )
            for block, cells in blocks
        )
        with self._workers.stage("filter"):
            for task, found in self._workers.map(tasks, ahead=self._workers.slots):
                yield task.key, found


def judged(kept: Kept, rules: _Rules, cells: SentCells, count: int) -> Judged:
    """On a worker: what becomes of so many rows, all of them good."""
    if kept.get("rules") != rules:
        tools = Tools(src_lang=rules.src_lang, tgt_lang=rules.tgt_lang)
        computed = {rule.rule.column for rule in rules.rules if rule.place is None}
        tools.prepare([COLUMNS[name] for name in sorted(computed)])
        kept["judge"] = Judge(rules.rules, rules.duplicates, tools, keeps=rules.keeps)
        kept["rules"] = rules
    judge: Judge = kept["judge"]
    return judge.judge(cells, np.arange(count), count)


def _as_many(before: deque[Texts], pairs: int) -> list[Texts]:
    """The last blocks, as many as hold so many pairs."""
    back: list[Texts] = []
    for texts in reversed(before):
        if pairs <= 0:
            break
        back.insert(0, texts)
        pairs -= len(texts[0])
    return back


def columns_of(kept: Kept, wanted: _Wanted, back: Sequence[Texts], texts: Texts) -> list[Any]:
    """On a worker: the values of each column for some pairs. back: the blocks before, of which their vectors are made
    as they were made there, as what is encoded together decides the last bits."""
    from bitextmine.scoring.columns.neighbourhood import WindowNeighbourhood

    tools = _tools(kept, wanted)
    if wanted.looks_back:
        window = tools.neighbourhood = WindowNeighbourhood(wanted.k, wanted.window)
        for src, tgt in back:
            window.remember(src, tgt, pair_texts(src, tgt, tools).vectors())
    pairs = pair_texts(*texts, tools)
    return [pairs.column(name) for name in wanted.names]


def _tools(kept: Kept, wanted: _Wanted) -> Tools:
    if kept.get("wanted") != wanted:
        from bitextmine.distributed.models import encoder_of

        tools = Tools(
            encoder=None if wanted.model is None else encoder_of(kept, wanted.model, wanted.device),
            margin=wanted.margin,
            src_lang=wanted.src_lang,
            tgt_lang=wanted.tgt_lang,
            device=wanted.device,
            batch_tokens=wanted.batch_tokens,
        )
        tools.prepare([COLUMNS[name] for name in wanted.names])
        if wanted.indexes is not None and tools.encoder is not None:
            from bitextmine.scoring.columns.neighbourhood import IndexNeighbourhood

            tools.neighbourhood = IndexNeighbourhood(*wanted.indexes, tools.encoder, wanted.k)
        kept["tools"], kept["wanted"] = tools, wanted
    found: Tools = kept["tools"]
    return found
