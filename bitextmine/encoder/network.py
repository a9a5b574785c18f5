"""Running a torch model over tokenised sentences: batches, threads, precision, memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bitextmine.encoder.batching import whole_batches
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.system import bfloat16_instructions

# Pieces per batch: on a CPU a batch should stay in the cache, on a GPU it should fill the card.
BATCH_TOKENS = {"cpu": 4_096, "cuda": 131_072}

# Lines sorted by length and encoded together. On a CPU a few seconds' work, which an interrupted run loses; a GPU wants
# many batches between two waits for results.
CHUNK_LINES = {"cpu": 4_096, "cuda": 65_536}

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class TorchNetwork(ABC):
    """A model in torch, for inference.

    Sentences are sorted by length and go through the model in batches of so many pieces. Matrices are multiplied in
    ``precision``. A batch gives the same bits whenever it comes.

    On a CPU each thread takes a batch of its own, and no operation waits for a second thread: on a busy machine that is
    several times as fast as threads that meet after every product, and their number does not change the result.
    """

    batch_tokens: Mapping[str, int] = BATCH_TOKENS

    def __init__(self, dim: int, run: Run, precision: str) -> None:
        self.dim, self.device, self._budget = dim, run.device, run.batch_tokens
        self._device = torch.device(run.device)
        self.slow = self._device.type == "cpu"
        self.chunk_lines = CHUNK_LINES[self._device.type]
        self.precision = pick_precision(self._device.type) if precision == "auto" else precision
        if self.precision not in PRECISIONS:
            raise BitextmineError(
                f"precision: expected auto or one of {', '.join(PRECISIONS)}, found {precision!r}"
            )
        self._low = PRECISIONS[self.precision]
        self._workers = Workers(run.threads or torch.get_num_threads()) if self.slow else None

    @abstractmethod
    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """Return (n, dim) unit rows of ids (total pieces,) int32 and lengths (n,), longest first and above 0."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return kind, dimensions and size, for `bitextmine info`."""

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """Return the settings that, besides the weights, decide the last bits of a vector."""
        return {
            "batch_tokens": batch_tokens or self._budget or self.batch_tokens[self._device.type],
            "device": self._device.type,
            "precision": self.precision,
        }

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) unit rows for n sentences, float32 (float16 from a GPU); no pieces give zeros.

        A batch of ``batch_tokens`` pieces that does not fit into the GPU is halved; raises BitextmineError if a single
        sentence does not fit.
        """
        on_gpu = self._device.type == "cuda"
        order = np.argsort(-pieces.lengths, kind="stable")
        order = order[: int((pieces.lengths > 0).sum())]
        batch = pieces.take(order)
        ids = torch.from_numpy(batch.ids)
        # One copy to the GPU and one back for all batches, which run without a wait in between.
        if on_gpu:
            ids = ids.pin_memory().to(self._device, non_blocking=True)
        kind = torch.float16 if on_gpu else torch.float32
        found = torch.empty((len(order), self.dim), dtype=kind, device=self._device)
        budget = self.settings(batch_tokens)["batch_tokens"]
        jobs = [
            partial(self._fill, found, ids, batch, start, stop)
            for start, stop in whole_batches(batch.offsets, budget)
        ]
        if self._workers is None:
            for job in jobs:
                job()
        else:
            self._workers.run(jobs)
        rows = found.cpu().numpy()
        out = np.zeros((len(pieces), self.dim), dtype=rows.dtype)
        out[order] = rows
        return out

    def _fill(self, found: Tensor, ids: Tensor, batch: Pieces, start: int, stop: int) -> None:
        first, last = int(batch.offsets[start]), int(batch.offsets[stop])
        try:
            with torch.inference_mode():
                found[start:stop] = self._forward(ids[first:last], batch.lengths[start:stop])
            return
        except torch.OutOfMemoryError:
            if stop - start == 1:
                raise BitextmineError(
                    f"the GPU has no room for one sentence of {last - first} pieces; use --device cpu"
                ) from None
        half = (start + stop) // 2
        self._fill(found, ids, batch, start, half)
        self._fill(found, ids, batch, half, stop)


class Workers:
    """Threads that run torch's operations side by side, each operation on one thread."""

    def __init__(self, count: int) -> None:
        here = torch.get_num_threads()
        started = threading.Barrier(count + 1)

        def begin() -> None:
            torch.set_num_threads(1)  # of this thread, and of those to come
            torch.get_num_threads()  # has it take effect now: later this thread would take what the others have
            started.wait()

        self._pool = ThreadPoolExecutor(count, "encode", initializer=begin)
        for _ in range(count):
            self._pool.submit(int)
        started.wait()
        torch.set_num_threads(here)

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run all jobs; the first exception is raised, and the jobs that have not begun are dropped."""
        futures = [self._pool.submit(job) for job in jobs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def pick_precision(kind: str) -> str:
    """Return the precision of matrix products for a device type ("cpu", "cuda").

    It is float16 on a GPU and bfloat16 on a CPU with instructions for it, which is four times as fast as float32 there;
    the cosine to the float32 vector stays above 0.9999.
    """
    if kind == "cuda":
        return "float16"
    return "bfloat16" if bfloat16_instructions() & {"avx512_bf16", "bf16"} else "float32"
