"""A corpus with its vectors, less the lines that are not mined."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.embeddings.store import VectorFile
from bitextmine.errors import BitextmineError
from bitextmine.files.corpus import Corpus
from bitextmine.mining.dedup import Unique, unique_lines
from bitextmine.mining.options import Dedup

# Vectors of up to this many bytes are held in memory, more are read from their file.
IN_MEMORY = 1 << 28
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Side:
    """One corpus as mining sees it: `unique` are the lines that are mined, none with a zero vector.

    `matrix`, float16 (lines, d), is the embedding of all lines, of which `in_memory` bytes are held in memory at most;
    `cleaned` the number of lines that each rule of `cleaning` left out.
    """

    text: Corpus
    unique: Unique
    matrix: NDArray[Any] | VectorFile
    cleaned: Mapping[str, int] = field(default_factory=dict)
    in_memory: int = IN_MEMORY

    @property
    def npy(self) -> Path | None:
        """Return the file of the embedding; None in memory."""
        return self.matrix.path if isinstance(self.matrix, VectorFile) else None

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """Return the vectors of the lines that are mined, float16 (rows of unique, d)."""
        return packed_rows(self.matrix, self.unique.rows, self.in_memory)

    def check(self) -> None:
        """Raise BitextmineError if the embedding's file has changed since it was opened."""
        if isinstance(self.matrix, VectorFile):
            self.matrix.check()

    def counts(self) -> dict[str, Any]:
        """Return the numbers of lines, for the JSON beside the output."""
        return {
            "corpus": self.text.name,
            "lang": self.text.lang,
            "lines": self.unique.lines,
            "mined_lines": len(self.unique.rows),
            "repeated": self.unique.repeated,
            "empty_or_unknown": self.unique.empty - sum(self.cleaned.values()),
            **({"cleaned": dict(self.cleaned)} if self.cleaned else {}),
        }

    def without(self, dropped: NDArray[np.bool_], cleaned: Mapping[str, int]) -> Side:
        """Return the side without the rows where the mask (u,) is true; BitextmineError if no line is left."""
        unique = self.unique.without(dropped) if dropped.any() else self.unique
        if not len(unique.rows):
            rules = ", ".join(f"{rule}: {count:,}" for rule, count in cleaned.items() if count)
            raise BitextmineError(
                f"{self.text.name}: nothing to mine: cleaning dropped all {counted(unique.lines, 'line')} ({rules}). "
                "--no-clean keeps them."
            )
        return replace(self, unique=unique, cleaned=cleaned)


Sides = tuple[Side, Side]


def load_side(
    text: Corpus,
    embedding: str | os.PathLike[str] | NDArray[Any],
    *,
    dedup: Dedup = Dedup.EXACT,
    in_memory: int = IN_MEMORY,
) -> Side:
    """Return a corpus with its embedding (a file, or the vectors), less blank lines and lines unknown to the encoder.

    Raises:
        BitextmineError: the embedding is of another text, or no line can be mined.
    """
    matrix = embedding if isinstance(embedding, np.ndarray) else VectorFile(embedding)
    if isinstance(matrix, VectorFile) and (
        len(matrix) != len(text) or matrix.manifest.text_sha256 not in ("", text.sha256)
    ):
        raise BitextmineError(
            f"{matrix.path}: not made of {text.name} as it is now: the text changed; run the same command again"
        )
    everything = text.derive(("unique", dedup), lambda: unique_lines(text.lines(), dedup))
    unique: Unique = everything.without(_zero_rows(matrix, everything.rows))
    if not len(unique.rows):
        raise BitextmineError(
            f"{text.path or text.name}: nothing to mine: {unique.lines} line(s), {everything.empty} of them blank, "
            f"{unique.empty - everything.empty} with nothing in them that the model knows"
        )
    return Side(text, unique, matrix, in_memory=in_memory)


def packed_rows(
    matrix: NDArray[Any] | VectorFile, rows: NDArray[np.int64], in_memory: int = IN_MEMORY
) -> NDArray[Any]:
    """Return these rows (ascending) of a matrix (n, d), (len(rows), d), of the same type.

    All rows of an array are the array itself. More than `in_memory` bytes stay in their file, which is read in blocks,
    also if only some of the rows are wanted.
    """
    shape = (len(rows), matrix.shape[1])
    if isinstance(matrix, VectorFile):
        if shape[0] * shape[1] * matrix.dtype.itemsize > in_memory:
            some = matrix if len(rows) == len(matrix) else matrix.only(rows)
            return cast("NDArray[Any]", some)  # searches read it in blocks like one
    elif len(rows) == len(matrix):
        return matrix
    out = np.empty(shape, matrix.dtype)
    for start in range(0, len(rows), _BLOCK):
        out[start : start + _BLOCK] = matrix[rows[start : start + _BLOCK]]
    return out


def _zero_rows(matrix: NDArray[Any] | VectorFile, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask (len(rows),) of the rows that are all zero: the vocabulary knows nothing in those lines."""
    zero = np.empty(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        zero[start : start + _BLOCK] = ~matrix[some].any(axis=1)
    return zero
