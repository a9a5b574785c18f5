"""A text with its vectors, less what is not mined."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.embeddings.held import Held
from bitextmine.embeddings.store import check_rows
from bitextmine.errors import BitextmineError
from bitextmine.mining.dedup import Dedup, Unique, unique_lines
from bitextmine.mining.packing import IN_MEMORY, packed_rows, zero_rows
from bitextmine.mining.texts import FileText, LinesText, Text

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["Side", "embed_lines", "load_side", "make_side"]


@dataclass(frozen=True)
class Side:
    """One text as mining sees it: which of its lines are mined, and their vectors.

    matrix: float16 (lines, d), the embedding of all lines; vectors: float16 (rows of unique, d), those that
    are mined, none of them zero. dedup: the level that `unique` was made with. held: the file of the embedding, None
    where it is in memory alone. unknown: lines (after deduplication) left out because the encoder knows nothing in
    them. cleaned: how many lines each rule of `cleaning` left out; empty where it was not asked for.
    """

    text: Text
    unique: Unique
    matrix: NDArray
    vectors: NDArray
    dedup: Dedup = Dedup.EXACT
    held: Held | None = None
    unknown: int = 0
    cleaned: Mapping[str, int] = field(default_factory=dict)

    @property
    def npy(self) -> Path | None:
        """The file of the embedding."""
        return None if self.held is None else self.held.path

    def check_size(self) -> None:
        """Raises BitextmineError where the embedding's file lost its end; costs nothing."""
        if self.held is not None:
            self.held.check_size()

    def check_vectors(self) -> None:
        """Raises BitextmineError where the embedding's file is not what it was when it was opened; reads it."""
        if self.held is not None:
            self.held.check()

    def counts(self) -> dict[str, Any]:
        """What became of the lines."""
        return {
            "corpus": self.text.name,
            "lang": self.text.lang,
            "lines": self.unique.lines,
            "mined_lines": len(self.unique.rows),
            "repeated": self.unique.repeated,
            "empty_or_unknown": self.unique.empty - sum(self.cleaned.values()),
            **({"cleaned": dict(self.cleaned)} if self.cleaned else {}),
        }

    def without(
        self, dropped: NDArray[np.bool_], cleaned: Mapping[str, int], in_memory: int = IN_MEMORY
    ) -> Side:
        """The same, less the rows where the mask (u,) is true. cleaned: how many lines which rule took.

        Raises BitextmineError when no line is left.
        """
        if not dropped.any():
            return replace(self, cleaned=cleaned)
        unique = self.unique.without(dropped)
        if not len(unique.rows):
            rules = ", ".join(f"{count} {rule}" for rule, count in cleaned.items() if count)
            raise BitextmineError(
                f"{self.text.name}: nothing to mine: {unique.lines} line(s), of which the rules took {rules}; "
                "--no-clean keeps these"
            )
        folder = tempfile.gettempdir() if self.npy is None else self.npy.parent
        vectors = packed_rows(self.matrix, unique.rows, folder, in_memory)
        return replace(self, unique=unique, vectors=vectors, cleaned=cleaned)


def load_side(
    text: Text, npy: str | os.PathLike[str], *, dedup: Dedup = Dedup.EXACT, in_memory: int = IN_MEMORY
) -> Side:
    """Read a corpus and its embedding; see `make_side`. A temporary file goes beside the embedding.

    The side's text is bound to what was embedded: it raises BitextmineError when it is read and has changed. Raises
    BitextmineError when the embedding has not one row per line, and when no line can be mined.
    """
    held = Held(npy, in_memory=in_memory)
    if isinstance(text, FileText) and held.manifest.text_sha256:
        text = replace(text, sha256=held.manifest.text_sha256)
    unique = unique_lines(text.lines(), dedup)
    check_rows(held.path, held.manifest, rows=unique.lines)
    try:
        return make_side(
            text, unique, held.vectors, dedup=dedup, in_memory=in_memory, folder=held.path.parent, held=held
        )
    except BitextmineError:
        held.check()
        raise


def make_side(
    text: Text,
    unique: Unique,
    matrix: NDArray,
    *,
    dedup: Dedup = Dedup.EXACT,
    in_memory: int = IN_MEMORY,
    folder: str | os.PathLike[str] | None = None,
    held: Held | None = None,
) -> Side:
    """Leave out the lines that cannot be mined: blank ones, and those of which the encoder knows nothing.

    unique: the distinct lines of the text; matrix (lines, d): the vectors of all lines. The vectors that are left are
    held in memory up to `in_memory` bytes, else in a temporary file in `folder` (None: the system's).

    Raises BitextmineError when no line is left.
    """
    blank = unique.empty
    unique = unique.without(zero_rows(matrix, unique.rows))
    if not len(unique.rows):
        where = text.path if isinstance(text, FileText) else text.name
        raise BitextmineError(
            f"{where}: nothing to mine: {unique.lines} line(s), {blank} of them blank, "
            f"{unique.empty - blank} with nothing in them that the model knows"
        )
    vectors = packed_rows(matrix, unique.rows, folder or tempfile.gettempdir(), in_memory)
    return Side(text, unique, matrix, vectors, dedup, held, unique.empty - blank)


def embed_lines(text: LinesText, encoder: Encoder, batch_tokens: int | None = None) -> NDArray[np.float16]:
    """(lines, d) float16 unit rows, the same numbers that an embedding file of these lines would hold.

    Raises BitextmineError for a text without a line.
    """
    if not text.sentences:
        raise BitextmineError(f"{text.name}: empty: there is no line to embed")
    matrix = np.empty((len(text.sentences), encoder.dim), dtype=np.float16)
    step = encoder.network.chunk_lines  # as in files: what shares a batch decides the last bit
    for start in range(0, len(matrix), step):
        pieces, _, inverse = encoder.tokenize(text.sentences[start : start + step])
        vectors = encoder.encode_pieces(pieces, batch_tokens=batch_tokens)
        matrix[start : start + step] = vectors if inverse is None else vectors[inverse]
    return matrix
