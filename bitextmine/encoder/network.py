"""Encoders in torch: batches, threads, precision and memory, and the networks of our own models."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.model import SentenceModel, fused_attention, unit_vectors
from bitextmine.encoder.pieces import Network, Pieces, offsets_of
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import BOTTLENECK, PIECES, SCALE, piece_vectors
from bitextmine.errors import BitextmineError
from bitextmine.run import Run
from bitextmine.system import bfloat16_instructions

# Pieces per batch: on a CPU a batch should stay in the cache, on a GPU it should fill the card.
BATCH_TOKENS = {"cpu": 4_096, "cuda": 131_072}

# Lines sorted by length and encoded together. On a CPU a few seconds' work, which an interrupted run loses; a GPU wants
# many batches between two waits for results.
CHUNK_LINES = {"cpu": 4_096, "cuda": 65_536}

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MOST_ROWS = 1 << 15  # sentences per call of the attention kernel; torch's on a GPU fail above 65,535


class TorchNetwork(Network):
    """A model in torch, for inference.

    Sentences are sorted by length and go through the model in batches of so many pieces. Matrices are multiplied in
    ``precision``. A batch gives the same bits whenever it comes.

    On a CPU each thread takes a batch of its own, and no operation waits for a second thread: on a busy machine that is
    several times as fast as threads that meet after every product, and their number does not change the result.
    """

    batch_tokens: Mapping[str, int] = BATCH_TOKENS

    def __init__(self, dim: int, run: Run, precision: str | None = None) -> None:
        self.dim, self.device, self._budget = dim, run.device, run.batch_tokens
        self._device = torch.device(run.device)
        self.slow = self._device.type == "cpu"
        self.chunk_lines = CHUNK_LINES[self._device.type]
        self.precision = precision or pick_precision(self._device.type)
        self._low = PRECISIONS[self.precision]
        self._run = _workers(run.threads or torch.get_num_threads()) if self.slow else None

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """Return (n, dim) unit rows of ids (total pieces,) int32 and lengths (n,), longest first and above 0."""
        raise NotImplementedError

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """Return the settings that, besides the weights, decide the last bits of a vector."""
        return {
            "batch_tokens": batch_tokens or self._budget or self.batch_tokens[self._device.type],
            "device": self._device.type,
            "precision": self.precision,
        }

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) unit rows for n sentences, float32 (float16 from a GPU); no pieces give zeros.

        A batch that does not fit into the GPU is halved; BitextmineError if a single sentence does not fit.
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
        vectors = torch.empty((len(order), self.dim), dtype=kind, device=self._device)
        budget = self.settings(batch_tokens)["batch_tokens"]
        jobs = [partial(self._fill, vectors, ids, batch, *span) for span in batches(batch.offsets, budget)]
        if self._run is None:
            for job in jobs:
                job()
        else:
            self._run(jobs)
        rows = vectors.cpu().numpy()
        out = np.zeros((len(pieces), self.dim), dtype=rows.dtype)
        out[order] = rows
        return out

    def _fill(self, vectors: Tensor, ids: Tensor, batch: Pieces, start: int, stop: int) -> None:
        first, last = int(batch.offsets[start]), int(batch.offsets[stop])
        try:
            with torch.inference_mode():
                vectors[start:stop] = self._forward(ids[first:last], batch.lengths[start:stop])
            return
        except torch.OutOfMemoryError:
            if stop - start == 1:
                raise BitextmineError(
                    f"the GPU has no room for one sentence of {last - first} pieces; use --device cpu"
                ) from None
        half = (start + stop) // 2
        self._fill(vectors, ids, batch, start, half)
        self._fill(vectors, ids, batch, half, stop)


class DeviceSums(TorchNetwork):
    """The network of a model without layers in torch, with the arguments of `Transformer`.

    Piece vectors are float32 on the device. On a CPU, `PieceSums` is faster and does the same without torch.
    """

    def __init__(self, config: EncoderConfig, weights: Mapping[str, np.ndarray], run: Run) -> None:
        super().__init__(config.dim, run)
        sums = PieceSums(weights, config)
        self.piece_rows, self.facts = sums.piece_rows, sums.facts
        state = {name: torch.from_numpy(array) for name, array in weights.items() if name != SCALE}
        state[PIECES] = torch.from_numpy(piece_vectors(weights))
        with torch.device("meta"):  # no random initial vectors
            self._model = SentenceModel(config).eval()
        self._model.load_state_dict(state, assign=True)
        self._model.to(self._device)

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        offsets = torch.from_numpy(offsets_of(lengths)).to(self._device)
        return unit_vectors(self._model(ids.long(), offsets))


class Transformer(TorchNetwork):
    """The network of a model with layers: the forward pass of `SentenceModel` without padding and masks.

    A batch is one flat row of pieces. Only attention sees sentences: it takes one run of equal lengths after another.
    Sums, norms and the states between layers stay float32.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, np.ndarray],
        run: Run | None = None,
        precision: str | None = None,
    ) -> None:
        super().__init__(config.dim, run or Run(device="cpu"), precision)
        self.config = config
        weights = {**weights, PIECES: piece_vectors(weights)}
        weights.pop(SCALE, None)
        kind = f"encoder (transformer of {config.layers} layers)"
        size = sum(array.size for array in weights.values())
        self.facts = {"kind": kind, **config.describe(), "parameters": size}
        self._weights = {}
        for name, array in weights.items():  # of matrix products, biases included, in the lower precision
            low = name.split(".")[-2] in ("bottleneck", "qkv", "out", "up", "down")
            self._weights[name] = torch.from_numpy(array).to(
                self._device, self._low if low else torch.float32
            )

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        spans, at = [], 0  # (first piece, last piece, rows, length) of each run of equal lengths
        for rows, length in runs(lengths):
            spans.append((at, at + rows * length, rows, length))
            at += rows * length
        w, dim = self._weights, self.config.dim
        hidden = functional.embedding(ids, w[PIECES])
        if self.config.bottleneck:
            hidden = functional.linear(hidden.to(self._low), w[BOTTLENECK]).float()
        for begin, end, rows, length in spans:
            hidden[begin:end].view(rows, length, dim).add_(w["positions.weight"][:length])
        for i in (i % self.config.own_layers for i in range(self.config.layers)):
            qkv = self._linear(self._norm(hidden, f"layers.{i}.attention_norm"), f"layers.{i}.qkv")
            hidden += self._linear(self._attend(qkv, spans), f"layers.{i}.out")
            up = self._linear(self._norm(hidden, f"layers.{i}.ffn_norm"), f"layers.{i}.up")
            hidden += self._linear(functional.gelu(up), f"layers.{i}.down")
        hidden = functional.layer_norm(hidden, (dim,), w["norm.weight"], w["norm.bias"])
        sums = torch.cat(
            [hidden[begin:end].view(rows, length, dim).sum(1) for begin, end, rows, length in spans]
        )
        # Only the direction of a sum counts, so that it need not become a mean first.
        return functional.normalize(sums, dim=1, eps=1e-12)

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(hidden, (self.dim,), weight, bias).to(self._low)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _attend(self, qkv: Tensor, spans: list[tuple[int, int, int, int]]) -> Tensor:
        """Return (total pieces, dim) of qkv (total pieces, 3 dim), each sentence attending to itself."""
        heads, size = self.config.heads, self.dim // self.config.heads
        out = torch.empty((len(qkv), self.dim), dtype=qkv.dtype, device=qkv.device)
        for begin, end, rows, length in spans:
            split = qkv[begin:end].view(rows, length, 3, heads, size).permute(2, 0, 3, 1, 4)
            if qkv.dtype == torch.bfloat16 and self._device.type == "cpu":
                # For short sentences two plain products are twice as fast as the fused kernel.
                q, k, v = split.reshape(3, rows * heads, length, size)
                weights = torch.bmm(q, k.transpose(1, 2)).mul_(size**-0.5).softmax(-1)
                attended = torch.bmm(weights, v).view(rows, heads, length, size)
            else:  # MOST_ROWS at a time
                parts = zip(*(each.split(MOST_ROWS) for each in split), strict=True)
                parts_out = [fused_attention(*part) for part in parts]
                attended = parts_out[0] if len(parts_out) == 1 else torch.cat(parts_out)
            out[begin:end].view(rows, length, heads, size).copy_(attended.transpose(1, 2))
        return out


def batches(offsets: np.ndarray, batch_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of batches of consecutive rows of at most batch_tokens pieces, without padding.

    offsets: (n + 1,) int64, where each row begins. A longer row is a batch of its own.
    """
    start, rows = 0, len(offsets) - 1
    while start < rows:
        fitting = int(np.searchsorted(offsets, offsets[start] + batch_tokens, side="right")) - 1
        stop = min(rows, max(start + 1, fitting))
        yield start, stop
        start = stop


def runs(lengths: np.ndarray) -> list[tuple[int, int]]:
    """Return (rows, length) of each run of equal lengths in sorted ones."""
    starts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts = np.diff(np.append(starts, len(lengths)))
    return list(zip(counts.tolist(), lengths[starts].tolist(), strict=True))


def _workers(count: int) -> Callable[[Sequence[Callable[[], None]]], None]:
    """Return a function that runs jobs on ``count`` threads, each of torch's operations on one thread.

    The function raises the first exception of a job, and drops the jobs that have not begun.
    """
    here = torch.get_num_threads()
    started = threading.Barrier(count + 1)

    def begin() -> None:
        torch.set_num_threads(1)  # of this thread, and of those to come
        torch.get_num_threads()  # has it take effect now: later this thread would take what the others have
        started.wait()

    pool = ThreadPoolExecutor(count, "encode", initializer=begin)
    for _ in range(count):
        pool.submit(int)
    started.wait()
    torch.set_num_threads(here)

    def run(jobs: Sequence[Callable[[], None]]) -> None:
        # `map` cancels the futures that are left when its iterator is closed.
        list(pool.map(lambda job: job(), jobs))

    return run


def pick_precision(kind: str) -> str:
    """Return float16 for "cuda", and bfloat16 for "cpu" if it has instructions for it: four times as fast as float32.

    The cosine to the float32 vector stays above 0.9999.
    """
    if kind == "cuda":
        return "float16"
    return "bfloat16" if bfloat16_instructions() & {"avx512_bf16", "bf16"} else "float32"
