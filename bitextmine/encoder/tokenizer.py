"""SentencePiece, spoken to in batches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError

__all__ = ["Tokenizer"]

# No SentencePiece piece spans more than 16 characters, and normalisation joins at most a few into one: a line
# of more than this many characters per piece wanted can be cut before it is tokenised, and a line of a
# megabyte costs no more than a long sentence.
CHARACTERS_PER_PIECE = 64


class Tokenizer:
    """Cuts lines into pieces with a SentencePiece model (normalisation, case folding included, is the model's).

    Raises BitextmineError when ``path`` is missing or is no SentencePiece model.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise BitextmineError(f"{self.path}: no such file: a model folder needs its tokenizer.model")
        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.LoadFromFile(os.fspath(self.path))
        except (RuntimeError, OSError) as e:
            raise BitextmineError(f"{self.path}: not a SentencePiece model ({e})") from e

    @property
    def vocab_size(self) -> int:
        return int(self._model.get_piece_size())

    def pieces(self) -> list[str]:
        """The vocabulary, piece i for id i; the unknown piece is an empty string."""
        return ["" if self._model.is_unknown(i) else self._model.id_to_piece(i) for i in range(self.vocab_size)]

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Pieces of each line, cut to ``max_pieces``, and how many lines were cut.

        Runs on ``threads`` threads of its own and lets other Python threads go on meanwhile.
        """
        if max_pieces is not None:
            limit = max_pieces * CHARACTERS_PER_PIECE
            lines = [line if len(line) <= limit else line[:limit] for line in lines]
        # SentencePiece takes UTF-8; a lone surrogate (possible only in text made in Python) has none.
        try:
            lists = self._model.encode(list(lines), num_threads=threads) if lines else []
        except UnicodeEncodeError:
            clean = [line.encode("utf-8", "replace").decode("utf-8") for line in lines]
            lists = self._model.encode(clean, num_threads=threads)
        pieces = Pieces.from_lists(lists)
        if max_pieces is None:
            return pieces, 0
        lengths = pieces.lengths
        cut = int((lengths > max_pieces).sum())
        if cut:
            import numpy as np

            pieces = pieces.take(np.arange(len(pieces)), max_pieces)
        return pieces, cut
