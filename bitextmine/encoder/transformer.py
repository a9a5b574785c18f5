"""Encoding with torch: the forward pass of `SentenceModel` as inference wants it, on CPU and GPU."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.batching import runs, whole_batches
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.weights import PIECES, SCALE, restore_rows
from bitextmine.errors import BitextmineError

__all__ = ["TorchNetwork", "pick_precision"]

# Pieces per batch: on a CPU a batch should stay in the cache, on a GPU it should fill the card.
BATCH_TOKENS = {"cpu": 4_096, "cuda": 131_072}

# Lines sorted by length, encoded and handed back together. On a CPU that is a few seconds' work, which is what a
# killed run loses; a GPU wants many batches between two waits for results.
CHUNK_LINES = {"cpu": 4_096, "cuda": 65_536}

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class TorchNetwork:
    """A model in torch, for inference: no padding and no masks.

    A batch holds sentences sorted by length as one flat row of pieces, on which all but the attention works;
    attention takes one run of equal lengths after another. Matrices are multiplied in ``precision``, sums, norms
    and what is carried from layer to layer stay float32.

    On a CPU each thread takes a batch of its own, and no operation waits for a second thread: on a machine with other
    work to do that is several times as fast as threads that meet after every product. A batch gives the same
    bits whatever the number of threads.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, np.ndarray],
        device: str = "cpu",
        precision: str = "auto",
    ) -> None:
        self.config = config
        self.device = device
        self.dim = config.dim
        self._device = torch.device(device)
        self.slow = self._device.type == "cpu"
        self.chunk_lines = CHUNK_LINES[self._device.type]
        self.precision = pick_precision(self._device.type) if precision == "auto" else precision
        if self.precision not in PRECISIONS:
            raise BitextmineError(
                f"precision: expected auto or one of {', '.join(PRECISIONS)}, found {precision!r}"
            )
        self._low = PRECISIONS[self.precision]
        weights = dict(weights)
        scale = weights.pop(SCALE, None)
        if scale is not None:
            weights[PIECES] = restore_rows(weights[PIECES], scale)
        self._parameters = sum(array.size for array in weights.values())
        self._weights = {
            name: torch.from_numpy(array).to(self._device, self._low if _is_matrix(name) else torch.float32)
            for name, array in weights.items()
        }
        self._workers = Workers(torch.get_num_threads()) if self._device.type == "cpu" else None

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """What else than the weights decides the last bits of a vector."""
        return {
            "batch_tokens": batch_tokens or BATCH_TOKENS[self._device.type],
            "device": self._device.type,
            "precision": self.precision,
        }

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) unit rows for n sentences, float32 (float16 from a GPU); a sentence of no pieces gives zeros.

        ``batch_tokens`` is the most pieces in a batch. A batch that does not fit into the GPU is halved; raises
        BitextmineError if a single sentence does not fit.
        """
        on_gpu = self._device.type == "cuda"
        order = np.argsort(-pieces.lengths, kind="stable")
        order = order[: int((pieces.lengths > 0).sum())]
        batch = pieces.take(order)
        ids = torch.from_numpy(batch.ids)
        # One copy to the GPU and one back for all of the batches, which run without a wait in between.
        if on_gpu:
            ids = ids.pin_memory().to(self._device, non_blocking=True)
        kind = torch.float16 if on_gpu else torch.float32
        found = torch.empty((len(order), self.dim), dtype=kind, device=self._device)
        budget = batch_tokens or BATCH_TOKENS[self._device.type]
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

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """ids (total pieces,) int32, lengths (n,) sorted and above 0 -> (n, dim) float32 unit rows."""
        spans, at = [], 0  # (first piece, last piece, rows, length) of each run of equal lengths
        for rows, length in runs(lengths):
            spans.append((at, at + rows * length, rows, length))
            at += rows * length
        w, dim = self._weights, self.dim
        hidden = functional.embedding(ids, w[PIECES])
        if self.config.layers:
            for begin, end, rows, length in spans:
                hidden[begin:end].view(rows, length, dim).add_(w["positions.weight"][:length])
            for i in range(self.config.layers):
                qkv = self._linear(self._norm(hidden, f"layers.{i}.attention_norm"), f"layers.{i}.qkv")
                hidden += self._linear(self._attend(qkv, spans), f"layers.{i}.out")
                up = self._linear(self._norm(hidden, f"layers.{i}.ffn_norm"), f"layers.{i}.up")
                hidden += self._linear(functional.gelu(up), f"layers.{i}.down")
            hidden = functional.layer_norm(hidden, (dim,), w["norm.weight"], w["norm.bias"])
        sums = torch.empty((len(lengths), dim), device=self._device)
        row = 0
        for begin, end, rows, length in spans:
            torch.sum(hidden[begin:end].view(rows, length, dim), 1, out=sums[row : row + rows])
            row += rows
        # Only the direction of a sum counts, so that it need not become a mean first.
        return functional.normalize(sums, dim=1, eps=1e-12)

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(hidden, (self.dim,), weight, bias).to(self._low)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _attend(self, qkv: Tensor, spans: list[tuple[int, int, int, int]]) -> Tensor:
        """qkv (total pieces, 3 dim) -> (total pieces, dim), each sentence attending to itself."""
        heads, size = self.config.heads, self.dim // self.config.heads
        out = torch.empty((len(qkv), self.dim), dtype=qkv.dtype, device=qkv.device)
        for begin, end, rows, length in spans:
            split = qkv[begin:end].view(rows, length, 3, heads, size).permute(2, 0, 3, 1, 4)
            if qkv.dtype == torch.bfloat16 and self._device.type == "cpu":
                # For short sentences two plain products are twice as fast as the fused kernel.
                q, k, v = split.reshape(3, rows * heads, length, size)
                weights = torch.bmm(q, k.transpose(1, 2)).mul_(size**-0.5).softmax(-1)
                attended = torch.bmm(weights, v).view(rows, heads, length, size)
            else:
                attended = functional.scaled_dot_product_attention(*split)
            out[begin:end].view(rows, length, heads, size).copy_(attended.transpose(1, 2))
        return out

    def describe(self) -> dict[str, Any]:
        layers = self.config.layers
        kind = f"transformer of {layers} layers" if layers else "mean of subword vectors"
        return {
            "kind": f"encoder ({kind})",
            "dim": self.dim,
            "layers": layers,
            "vocab_size": self.config.vocab_size,
            "parameters": self._parameters,
        }


class Workers:
    """Threads that run torch's operations side by side, each operation on one thread."""

    def __init__(self, count: int) -> None:
        here = torch.get_num_threads()
        started = threading.Barrier(count + 1)

        def begin() -> None:
            torch.set_num_threads(1)  # of this thread, and of those to come
            started.wait()

        self._pool = ThreadPoolExecutor(count, "encode", initializer=begin)
        for _ in range(count):
            self._pool.submit(int)
        started.wait()
        torch.set_num_threads(here)

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Runs all jobs; the first exception of one is raised, and the jobs that have not begun are dropped."""
        futures = [self._pool.submit(job) for job in jobs]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _is_matrix(name: str) -> bool:
    """Whether a tensor belongs to a matrix product: its precision is the lower one, biases included."""
    return name.split(".")[-2] in ("qkv", "out", "up", "down")


def pick_precision(kind: str) -> str:
    """What a kind of device ("cpu", "cuda") multiplies matrices in: float16 on a GPU, bfloat16 on a CPU with
    instructions for it (four times as fast there; the cosine to the float32 vector stays above 0.9999)."""
    if kind == "cuda":
        return "float16"
    return "bfloat16" if _has_bfloat16() else "float32"


@cache
def _has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 itself; torch would emulate it, slowly, where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flag = "bf16" if platform.machine() == "aarch64" else "avx512_bf16"
    line = next((x for x in text.splitlines() if x.startswith(("flags", "Features"))), "")
    return flag in line.split()
