"""Tokenised sentences of different lengths in two flat arrays; the parts of an encoder, whoever made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return where each of n rows begins and the last one ends, (n + 1,) int64."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclasses.dataclass(frozen=True)
class Pieces:
    """n sentences: ``ids`` (sum of lengths,) int32 piece ids, ``offsets`` (n + 1,) int64 where each begins."""

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]]) -> Pieces:
        """Return sentences given as lists of ids."""
        offsets = offsets_of(np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)))
        ids = np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=int(offsets[-1]))
        return cls(ids, offsets)

    @property
    def lengths(self) -> np.ndarray:
        """Pieces of each sentence, (n,) int64."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: np.ndarray, max_pieces: int | None = None) -> Pieces:
        """Return a copy of the sentences of ``rows`` (m,) int, in that order, each cut to ``max_pieces``."""
        starts = self.offsets[rows]
        lengths = self.offsets[np.asarray(rows) + 1] - starts
        if max_pieces is not None:
            lengths = np.minimum(lengths, max_pieces)
        offsets = offsets_of(lengths)
        within = np.arange(offsets[-1], dtype=np.int64)
        within += np.repeat(starts - offsets[:-1], lengths)
        return Pieces(np.asarray(self.ids[within], dtype=np.int32), offsets)

    def keep(self, mask: np.ndarray) -> Pieces:
        """Return the same sentences without the pieces where ``mask`` (sum of lengths,) bool is False."""
        return Pieces(self.ids[mask], offsets_of(mask)[self.offsets])

    def first(self, most: int) -> tuple[Pieces, int]:
        """Return the first ``most`` pieces of each sentence, and the number of sentences that had more."""
        cut = int((self.lengths > most).sum())
        return (self.take(np.arange(len(self)), most) if cut else self), cut

    @staticmethod
    def join(parts: Sequence[Pieces]) -> Pieces:
        """Return the sentences of all parts, one after another."""
        lengths = np.concatenate([part.lengths for part in parts])
        return Pieces(np.concatenate([part.ids for part in parts]), offsets_of(lengths))


class PieceMaker(Protocol):
    """A tokeniser."""

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Return the pieces of each line, cut to ``max_pieces``, and the number of lines cut; blank lines have none."""


class Network:
    """A model.

    device: cpu, cuda or cuda:N; dim: dimensions of a vector; chunk_lines: lines that are best encoded together; slow:
    a line takes longer to encode than to look up; facts: kind, dimensions and size, for `bitextmine info`.
    """

    device = "cpu"
    dim = 0
    chunk_lines = 4_096
    slow = False
    facts: dict[str, Any]

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) float unit rows; zeros for a sentence of no pieces."""
        raise NotImplementedError

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """Return the settings that, besides the weights, decide the last bits of a vector."""
        return {}


@runtime_checkable
class PieceRows(Protocol):
    """A network whose sentence vectors are sums of vectors of pieces."""

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pieces' vectors, (pieces, d) int8, each on a scale of its own, and their norms (pieces,)."""
