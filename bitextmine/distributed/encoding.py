"""Encode a corpus on workers: shards of lines go out, rows come back in files, in order."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.distributed.tiles import result_of, shard_rows, write_arrays
from bitextmine.embeddings.embed import EncodedLines, Lines, encode_lines
from bitextmine.embeddings.store import DTYPE, shards_path
from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.encoder.encoder import PRECOMPUTED, Encoder, load_same
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.executor import Executor, Kept, Task, Workers
from bitextmine.files.journal import journal_folder, remove_folder
from bitextmine.run import Run

_HERE = "bitextmine.distributed.encoding"


class ClusterEncoding(contextlib.ExitStack):
    """Encodes lines on workers, for `embeddings.embed.embed_corpus`, to the bytes of an encoder on one machine.

    A worker writes the rows of a shard into a file of the folder CORPUS.npy.shards; the driver appends the files to the
    embedding, in order, and removes them. A driver that was killed finds the finished ones. Twice as many files as the
    workers have tasks lie there at most. The cluster is connected to when there is something to encode, until the end
    of the ``with`` block.
    """

    chunk_lines: int
    slow: bool

    def __init__(self, executor: Executor, encoder: Encoder, device: str = "auto") -> None:
        super().__init__()
        self._executor, self._sent = executor, sent_model(encoder, executor.device(device))
        self._facts: dict[str, Any] = {}

    @cached_property
    def _workers(self) -> Workers:
        return self.enter_context(self._executor.open())

    def prepare(self, folder: Path, batch_tokens: int | None) -> dict[str, Any]:
        """Prepare workers that see `folder`; return the settings that their vectors depend on."""
        self._workers.share([folder])
        task = Task(f"{_HERE}:encoder_facts", (self._sent, batch_tokens), "loading the model")
        self._facts = self._workers.run(task)
        self.chunk_lines, self.slow = self._facts["chunk_lines"], self._facts["slow"]
        settings: dict[str, Any] = self._facts["settings"]
        return settings

    def encode(
        self, lines: Iterator[Lines], rows: int, writer: EmbeddingWriter, batch_tokens: int | None
    ) -> Iterator[EncodedLines]:
        """Yield the chunks of a corpus of so many rows with their vectors, in order; `writer` writes them."""
        size = self._workers.shard_rows or shard_rows(rows, least=self.chunk_lines)
        folder = shards_path(writer.npy_path.absolute())
        tasks = self._tasks(lines, size, folder, batch_tokens)
        finished: list[tuple[int, Path]] = []
        with (
            journal_folder(folder, "shards", writer.identity),
            self._workers.stage(f"embed {writer.npy_path.name}"),
        ):
            for task, _ in self._workers.map(tasks, ahead=self._workers.slots):
                shard: _Shard = task.key
                arrays = result_of(self._workers, task, shard.path)
                at = 0
                for part, cut in zip(shard.lines, arrays["cut"].tolist(), strict=True):
                    yield EncodedLines(part, arrays["rows"][at : at + part.count_fresh], cut)
                    at += part.count_fresh
                finished.append((shard.stop, shard.path))
                while finished and finished[0][0] <= writer.safe_rows:
                    finished.pop(0)[1].unlink(missing_ok=True)
            writer.sync()
            remove_folder(folder, "shards")

    def vectors(self, blocks: Iterable[list[str]], batch_tokens: int | None) -> Iterator[np.ndarray]:
        """Yield the vectors of blocks of lines, in order."""
        tasks = (
            Task(f"{_HERE}:encode_block", (self._sent, batch_tokens, lines), f"encoding block {n}")
            for n, lines in enumerate(blocks, start=1)
        )
        with self._workers.stage("embed lines"):
            for _, rows in self._workers.map(tasks, ahead=self._workers.slots):
                yield rows

    def _tasks(
        self, lines: Iterator[Lines], size: int, folder: Path, batch_tokens: int | None
    ) -> Iterator[Task]:
        for _, group in itertools.groupby(lines, lambda part: part.start // size):
            parts = list(group)
            shard = _Shard(folder, parts)
            texts = [list(part.fresh) for part in parts]
            args = (self._sent, batch_tokens, self._facts, texts, str(shard.path))
            what = f"encoding lines {shard.start + 1} to {shard.stop}"
            yield Task(f"{_HERE}:encode_shard", args, what, key=shard)


def encoding_of(
    run: Run, encoder: Encoder | None
) -> contextlib.AbstractContextManager[ClusterEncoding | None]:
    """Return what encodes in place of an encoder, for a ``with`` block: a cluster's workers, or None, this process."""
    if encoder is None or encoder.name == PRECOMPUTED or not run.executor.distributed:
        return contextlib.nullcontext()
    return ClusterEncoding(run.executor, encoder, run.device)


class _Shard:
    """Chunks of lines that one worker encodes, and the file for their rows."""

    def __init__(self, folder: Path, lines: Sequence[Lines]) -> None:
        self.lines = [dataclasses.replace(part, fresh=()) for part in lines]  # the text is in the call
        self.start, self.stop = lines[0].start, lines[-1].start + lines[-1].count
        self.path = folder / f"{self.start}-{self.stop}.npz"


def encoder_facts(_: Kept, model: SentModel, batch_tokens: int | None) -> dict[str, Any]:
    """Return the properties of the worker's encoder that decide the batches, and the last bits of a vector."""
    network = encoder_of(model).network
    settings = network.settings(batch_tokens)
    return {"chunk_lines": network.chunk_lines, "slow": network.slow, "settings": settings}


def encode_block(_: Kept, model: SentModel, batch_tokens: int | None, lines: list[str]) -> np.ndarray:
    """Return the vectors of lines, on a worker."""
    return encoder_of(model).encode(lines, batch_tokens=batch_tokens)


def encode_shard(
    kept: Kept,
    model: SentModel,
    batch_tokens: int | None,
    facts: dict[str, Any],
    texts: Sequence[list[str]],
    path: str,
) -> None:
    """Write the vectors of chunks of lines to a file, and the number of lines that were cut in each.

    A finished file stays as it is. `facts` are those of the first worker (`encoder_facts`); other ones would mean other
    bytes, and are an error.
    """
    if Path(path).exists():
        return
    here = encoder_facts(kept, model, batch_tokens)
    if here != facts:
        raise BitextmineError(
            f"the workers encode in different ways ({json.dumps(facts['settings'])} and "
            f"{json.dumps(here['settings'])}), and rows would depend on who made them; use nodes of one kind"
        )
    parts, cuts = [], []
    chunks = (Lines(0, len(lines), None, lines) for lines in texts)
    for part in encode_lines(encoder_of(model), chunks, batch_tokens):
        with np.errstate(over="ignore"):  # the driver finds what is infinite
            parts.append(np.ascontiguousarray(part.vectors, dtype=DTYPE))
        cuts.append(part.cut)
    write_arrays(path, {"rows": np.concatenate(parts), "cut": np.array(cuts)})


@dataclass(frozen=True)
class SentModel:
    """An encoder as tasks carry it: what `load_encoder` finds it by on every node, its hash, and a worker's device."""

    source: str
    hash: str
    device: str


def sent_model(encoder: Encoder, device: str) -> SentModel:
    """Return an encoder for tasks; UsageError if `load_encoder` did not make it."""
    if not encoder.source:
        raise UsageError(f"model {encoder.name!r}: on a cluster, give the encoder's name or folder")
    return SentModel(encoder.source, encoder.hash, device)


def encoder_of(model: SentModel) -> Encoder:
    """Return the encoder on a worker, loaded once; BitextmineError if it is not the driver's."""
    try:
        return load_same(model.source, Run(device=model.device), model.hash)
    except BitextmineError as e:
        raise BitextmineError(
            f"the node {socket.gethostname()}: {e}; nodes must see the model's folder, under the same path"
        ) from None
