"""A corpus with its vectors, less the lines that are not mined."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.store import VectorFile, check_rows
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import allocate
from bitextmine.files.corpus import Corpus
from bitextmine.mining.choices import Dedup
from bitextmine.mining.dedup import Unique, unique_lines
from bitextmine.search.rows import release

# Packed rows up to this many bytes are held in memory, more in a temporary file.
IN_MEMORY = 1 << 28
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Side:
    """One corpus as mining sees it.

    Attributes:
        text: the corpus.
        unique: the lines that are mined, none with a zero vector.
        matrix: float16 (lines, d), the embedding of all lines.
        dedup: the level of `unique`.
        cleaned: the lines that each rule of `cleaning` left out; empty without cleaning.
        in_memory: the most bytes of packed vectors to hold in memory.
    """

    text: Corpus
    unique: Unique
    matrix: NDArray[Any] | VectorFile
    dedup: Dedup = Dedup.EXACT
    cleaned: Mapping[str, int] = field(default_factory=dict)
    in_memory: int = IN_MEMORY

    @property
    def npy(self) -> Path | None:
        """Return the file of the embedding; None in memory."""
        return self.matrix.path if isinstance(self.matrix, VectorFile) else None

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """Return the vectors of the lines that are mined, float16 (rows of unique, d)."""
        folder = tempfile.gettempdir() if self.npy is None else self.npy.parent
        return packed_rows(self.matrix, self.unique.rows, folder, self.in_memory)

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
        """Return the side without the rows where the mask (u,) is true.

        Raises:
            BitextmineError: no line is left; `cleaned`, the lines that each rule took, tells why.
        """
        unique = self.unique.without(dropped) if dropped.any() else self.unique
        if not len(unique.rows):
            rules = ", ".join(f"{count} {rule}" for rule, count in cleaned.items() if count)
            raise BitextmineError(
                f"{self.text.name}: nothing to mine: of {unique.lines} line(s) the rules took {rules}; "
                "--no-clean keeps these"
            )
        return replace(self, unique=unique, cleaned=cleaned)


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
    if isinstance(matrix, VectorFile):
        check_rows(matrix.path, matrix.manifest, rows=len(text))
        if matrix.manifest.text_sha256 not in ("", text.sha256):
            raise BitextmineError(
                f"{matrix.path}: not made of {text.name} as it is now: the text changed; run the same command again"
            )
    everything = text.derive(("unique", dedup), lambda: unique_lines(text.lines(), dedup))
    unique: Unique = everything.without(_zero_rows(matrix, everything.rows))
    blank = everything.empty
    if not len(unique.rows):
        raise BitextmineError(
            f"{text.path or text.name}: nothing to mine: {unique.lines} line(s), {blank} of them blank, "
            f"{unique.empty - blank} with nothing in them that the model knows"
        )
    return Side(text, unique, matrix, dedup, in_memory=in_memory)


def packed_rows(
    matrix: NDArray[Any] | VectorFile,
    rows: NDArray[np.int64],
    folder: str | os.PathLike[str],
    in_memory: int = IN_MEMORY,
) -> NDArray[Any]:
    """Return these rows (ascending) of a matrix (n, d) as an array of their own, (len(rows), d), of the same type.

    All rows of an array are the array itself, not a copy. Above `in_memory` bytes all rows of an embedding are its
    file, which is read in blocks; some of them are a map of a temporary file in `folder` (or, if that cannot be
    written, in the system's) that vanishes with the array.

    Raises:
        BitextmineError: the disk has no room for the file.
    """
    shape = (len(rows), matrix.shape[1])
    size = shape[0] * shape[1] * matrix.dtype.itemsize
    if len(rows) == len(matrix):
        if isinstance(matrix, np.ndarray):
            return matrix
        if size > in_memory:
            return cast(
                "NDArray[Any]", matrix
            )  # read in blocks like one; a map of a file that shrinks would be fatal
    out: NDArray[Any]
    if size <= in_memory:
        out = np.empty(shape, matrix.dtype)
    else:
        try:
            file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError:
            folder = Path(tempfile.gettempdir())
            file = tempfile.TemporaryFile()  # noqa: SIM115
        with file:
            try:
                allocate(file.fileno(), size)
            except OSError as e:
                raise BitextmineError(
                    f"{folder}: cannot set {size:,} bytes aside for the lines without repetitions: "
                    f"{e.strerror}; free some space"
                ) from None
            out = np.memmap(file, dtype=matrix.dtype, mode="r+", shape=shape)  # the map keeps the file alive
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        out[start : start + _BLOCK] = matrix[some]
        _release(matrix, some)
        release(out, start, start + _BLOCK)
    return out


def _zero_rows(matrix: NDArray[Any] | VectorFile, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask (len(rows),) of the rows that are all zero: the vocabulary knows nothing in those lines."""
    zero = np.empty(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        zero[start : start + _BLOCK] = ~matrix[some].any(axis=1)
        _release(matrix, some)
    return zero


def _release(matrix: NDArray[Any] | VectorFile, rows: NDArray[np.int64]) -> None:
    if isinstance(matrix, np.ndarray):
        release(matrix, int(rows[0]), int(rows[-1]) + 1)
