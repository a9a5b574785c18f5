"""The encoder as every other stage sees it: lines in, unit vectors out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bitextmine.encoder.batching import length_batches
from bitextmine.encoder.folder import folder_hash, load_folder, resolve
from bitextmine.encoder.model import SentenceModel
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.errors import BitextmineError

__all__ = ["Encoder", "load_encoder", "pick_device", "unit_vectors"]

# Pieces per batch. On a CPU a batch should stay in the cache, on a GPU it should fill the card.
BATCH_TOKENS = {"cpu": 8_192, "cuda": 131_072}


def pick_device(device: str = "auto") -> torch.device:
    """ "auto" is the GPU when there is one; raises BitextmineError for a device that is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
    except RuntimeError:
        raise BitextmineError(
            f"--device {device}: no such kind of device; use auto, cpu, cuda or cuda:N"
        ) from None
    if picked.type not in BATCH_TOKENS:
        raise BitextmineError(f"--device {device}: only cpu and cuda are supported")
    if picked.type == "cuda":
        count = torch.cuda.device_count()
        if (picked.index or 0) >= count:
            raise BitextmineError(
                f"--device {device}: this machine shows {count} CUDA devices; use --device cpu"
            )
    return picked


def unit_vectors(vectors: torch.Tensor) -> torch.Tensor:
    """(n, d) -> the same rows with Euclidean length 1, in float32; a row of zeros stays zeros, never NaN."""
    vectors = vectors.float()
    length = vectors.norm(dim=1, keepdim=True)
    # Below this length a row's direction is rounding noise: an empty sentence, or pieces that cancel out.
    return torch.where(length > 1e-12, vectors / length.clamp(min=1e-12), torch.zeros_like(vectors))


class Encoder:
    """Turns lines of any of its languages into comparable vectors; make one with `load_encoder`.

    Attributes: dim (int), name (str, the folder's), hash (16 hex digits of the folder's content), languages
    (tuple of str, those it was trained on), device (torch.device).
    """

    def __init__(
        self, model: SentenceModel, tokenizer: Tokenizer, *, name: str, hash: str, device: torch.device
    ) -> None:
        self.device = device
        self.model = model.to(device).eval()
        self.tokenizer = tokenizer
        self.config = model.config
        self.name, self.hash = name, hash
        self.dim = model.config.dim
        self.languages = model.config.languages

    def encode(self, lines: Sequence[str], *, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) float32 unit rows, row i for line i.

        A line without pieces (empty, or blanks only) gets the zero row: its cosine with everything is 0.
        Lines of more than ``config.max_pieces`` pieces are cut. Each distinct line is encoded once.
        """
        pieces, _, inverse = self.tokenize(lines)
        vectors = self.encode_pieces(pieces, batch_tokens=batch_tokens)
        return vectors if inverse is None else vectors[inverse]

    def tokenize(self, lines: Sequence[str]) -> tuple[Pieces, int, np.ndarray | None]:
        """Pieces of the distinct lines, how many of the lines were cut to max_pieces, and for each line the row
        of its pieces (None: row i is line i)."""
        first: dict[str, int] = {}
        inverse: np.ndarray | None = np.fromiter(
            (first.setdefault(line, len(first)) for line in lines), dtype=np.int64, count=len(lines)
        )
        if len(first) == len(lines):
            inverse = None
        threads = max(1, torch.get_num_threads())
        pieces, cut = self.tokenizer.encode(list(first), self.config.max_pieces, threads=threads)
        return pieces, cut, inverse

    def encode_pieces(self, pieces: Pieces, *, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) float32 unit rows for n tokenised sentences; a sentence of no pieces gives zeros.

        The same pieces with the same ``batch_tokens`` give the same bits on one machine.
        """
        out = np.empty((len(pieces), self.dim), dtype=np.float32)
        with torch.inference_mode():
            for rows in self._batches(pieces, batch_tokens or BATCH_TOKENS[self.device.type]):
                self._run(pieces, rows, out)
        return out

    def _batches(self, pieces: Pieces, batch_tokens: int) -> Iterator[np.ndarray]:
        if self.config.layers:
            return length_batches(pieces.lengths, batch_tokens)
        # Sums need no padding: rows in their own order read the pieces in order, too.
        step = max(1, int(batch_tokens * len(pieces) / max(1, len(pieces.ids))))
        return (np.arange(i, min(i + step, len(pieces))) for i in range(0, len(pieces), step))

    def _run(self, pieces: Pieces, rows: np.ndarray, out: np.ndarray) -> None:
        batch = pieces.take(rows)
        ids, offsets = torch.from_numpy(batch.ids).long(), torch.from_numpy(batch.offsets)
        try:
            if self.device.type == "cuda":
                ids = ids.pin_memory().to(self.device, non_blocking=True)
                offsets = offsets.pin_memory().to(self.device, non_blocking=True)
                with torch.autocast("cuda", dtype=torch.float16, enabled=self.config.layers > 0):
                    vectors = self.model(ids, offsets)
            else:
                vectors = self.model(ids, offsets)
            out[rows] = unit_vectors(vectors).cpu().numpy()
            return
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise BitextmineError(
                    f"the GPU has no room for one sentence of {len(batch.ids)} pieces; use --device cpu"
                ) from None
        half = len(rows) // 2
        self._run(pieces, rows[:half], out)
        self._run(pieces, rows[half:], out)

    def describe(self) -> dict[str, Any]:
        """What `bitextmine info` says of a model."""
        config = self.config
        kind = f"transformer of {config.layers} layers" if config.layers else "mean of subword vectors"
        return {
            "kind": f"encoder ({kind})",
            "name": self.name,
            "hash": self.hash,
            "languages": ", ".join(config.languages) or "not stated",
            "dim": config.dim,
            "layers": config.layers,
            "vocab_size": config.vocab_size,
            "max_pieces": config.max_pieces,
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }


def load_encoder(model: str | os.PathLike[str] = "default", device: str = "auto") -> Encoder:
    """An encoder by the name of a packaged one or from a model folder, ready on ``device`` (auto, cpu, cuda,
    cuda:N). Raises BitextmineError that names the file or the value that is wrong."""
    folder = resolve(model)
    _, network, tokenizer = load_folder(folder)
    return Encoder(
        network,
        tokenizer,
        name=Path(folder).resolve().name,
        hash=folder_hash(folder),
        device=pick_device(device),
    )
