"""Encoding without layers: a sentence's vector is the unit-length sum of its pieces' vectors.

Columns for their order and for the sentence's length (`extra_columns`) may follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bitextmine import compiled
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.extra_columns import length_table, repeat_weights, sentence_characters, waves
from bitextmine.encoder.pieces import Network, Pieces
from bitextmine.encoder.weights import CHARACTERS, PIECES, SCALE, lengths_of, quantize_rows, restore_rows

LANES = 16
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class SumParts:
    """The parts of n sentence vectors; those of several sentences add up to a longer text's, but for repeat_damping.

    sums: (n, columns) float32, the pieces' sums; the last ``order_columns`` are the first ones weighted by place
    (times ``order_weight``). pieces, characters: (n,) int64, lengths of the sentences (characters at most `LONGEST`).
    length_share: weight of the columns for the length, 0 if there are none.
    """

    sums: np.ndarray
    pieces: np.ndarray
    characters: np.ndarray
    order_columns: int
    order_weight: float
    length_share: float


class PieceSums(Network):
    """The network of a model without layers, on the CPU; ``weights`` of `read_weights`, ``config`` None for plain sums.

    It needs no torch, which takes longer to load than a thousand sentences to encode, and reads piece vectors as the
    int8 rows that are stored: a vocabulary of 48,000 then stays in the processor's cache. The same sentence has the
    same vector, to the bit, whatever the other sentences, compiled or not.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], config: EncoderConfig | None = None) -> None:
        self.values = np.ascontiguousarray(weights[PIECES])
        scale = weights.get(SCALE)
        self.scale = None if scale is None else np.ascontiguousarray(scale)
        if self.values.dtype != (np.float32 if scale is None else np.int8):
            raise ValueError(f"piece vectors of {self.values.dtype} with{'out' * (scale is None)} scales")
        self.rows, self._piece_dim = self.values.shape
        self.config = config or EncoderConfig(self.rows, self._piece_dim, layers=0)
        self._characters = weights.get(CHARACTERS)
        self._sum_dim = self._piece_dim + self.config.order_columns
        self.dim = self.config.dim
        kind, size = "encoder (mean of subword vectors)", self.values.size
        self.facts = {"kind": kind, **self.config.describe(), "parameters": size}

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """Return (n, dim) float32 unit rows for n sentences; a sentence of no pieces gives zeros."""
        # Columns for the length have their place from the start: vectors are not copied to make room.
        rows = self._units(pieces, self.dim, repeat_weights(pieces, self.config.repeat_damping))
        if self._characters is not None:
            self._add_length(rows, pieces, self._characters)
        return rows

    def parts(self, pieces: Pieces) -> SumParts:
        """Return the parts of the vectors of n sentences."""
        times = repeat_weights(pieces, self.config.repeat_damping)
        sums = self._units(pieces, self._sum_dim, times)
        # A sum is its unit vector times its length. One column tells the length: the largest, to be exact.
        column = np.abs(sums[:, : self._piece_dim]).argmax(axis=1)
        row = np.repeat(np.arange(len(pieces)), pieces.lengths)
        at = self.values[pieces.ids, column[row]].astype(np.float64)
        if self.scale is not None:
            at *= self.scale[pieces.ids]
        if times is not None:
            at *= times
        unit = sums[np.arange(len(sums)), column].astype(np.float64)
        whole = np.bincount(row, weights=at, minlength=len(pieces))
        length = np.divide(whole, unit, out=np.zeros(len(unit)), where=unit != 0)
        sums *= length[:, None].astype(np.float32)
        characters = np.zeros(len(pieces), dtype=np.int64)
        if self._characters is not None:
            characters = sentence_characters(pieces, self._characters)
        c = self.config
        return SumParts(sums, pieces.lengths, characters, c.order_columns, c.order_weight, c.length_share)

    def _units(self, pieces: Pieces, width: int, times: np.ndarray | None) -> np.ndarray:
        """Return unit sums (n, width), weighted by ``times`` (pieces,); columns beyond the sums' are uninitialised."""
        if len(pieces.ids) and not 0 <= int(pieces.ids.min()) <= int(pieces.ids.max()) < self.rows:
            raise ValueError(f"piece ids must lie in 0..{self.rows - 1}")
        out = np.empty((len(pieces), width), dtype=np.float32)
        columns = self.config.order_columns
        wave = waves(pieces, self.config.order_weight) if columns else None
        if wave is not None and times is not None:
            wave *= times
        library = compiled.library("encoder")
        if library is None:
            for start in range(0, len(pieces), BLOCK_ROWS):
                stop = min(start + BLOCK_ROWS, len(pieces))
                part = slice(pieces.offsets[start], pieces.offsets[stop])
                weights = (None if each is None else each[part] for each in (times, wave))
                sums = self._sums(pieces.take(np.arange(start, stop)), *weights)
                _unit(sums, out[start:stop, : self._sum_dim])
            return out
        sentences = (pieces.ids, pieces.offsets, len(pieces))
        library.sum_pieces(
            self.values, self.scale, self._piece_dim, *sentences, times, columns, wave, width, out
        )
        return out

    def _add_length(self, out: np.ndarray, pieces: Pieces, characters: np.ndarray) -> None:
        """Do what `model.with_length` does, without torch: out (n, dim) has unit rows in its first columns."""
        share = self.config.length_share
        units = out[:, : self._sum_dim]
        units *= np.float32((1 - share) ** 0.5)
        columns = length_table() * np.float32(share**0.5)
        out[:, self._sum_dim :] = columns[sentence_characters(pieces, characters)]
        zero = np.flatnonzero(units[:, 0] == 0)
        out[zero[~units[zero].any(axis=1)]] = 0

    def _sums(self, pieces: Pieces, times: np.ndarray | None, wave: np.ndarray | None) -> np.ndarray:
        """Add up in the order of the pieces: the first of each sentence, then the second, and so on.

        times, wave: (pieces,) float32 weights of each piece in the sum and in the order columns (None: 1, no columns).
        """
        sums = np.zeros((len(pieces), self._sum_dim), dtype=np.float32)
        lengths = pieces.lengths
        order = np.argsort(-lengths, kind="stable")
        scales = np.float32(1) if self.scale is None else self.scale[pieces.ids]
        times = np.broadcast_to(scales if times is None else scales * times, len(pieces.ids))
        wave = None if wave is None else scales * wave
        for place in range(int(lengths.max(initial=0))):
            rows = order[: int((lengths > place).sum())]
            at = pieces.offsets[rows] + place
            values = self.values[pieces.ids[at]]
            sums[rows, : self._piece_dim] += restore_rows(values, times[at])
            if wave is not None:
                columns = values[:, : self.config.order_columns]
                sums[rows, self._piece_dim :] += restore_rows(columns, wave[at])
        return sums

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors of pieces and n-grams, (rows, d) int8, and their norms (rows,) float32."""
        return self._piece_rows

    @cached_property
    def _piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        values, scale = quantize_rows(self.values) if self.scale is None else (self.values, self.scale)
        return values, scale * lengths_of(values).astype(np.float32)


def _unit(sums: np.ndarray, out: np.ndarray) -> None:
    """Rows (n, dim) float32 brought to length 1; squares are added as sums.c adds them, in 16 lanes."""
    wide = np.zeros((len(sums), -(-sums.shape[1] // LANES) * LANES), dtype=np.float32)
    wide[:, : sums.shape[1]] = sums
    wide *= wide
    lanes = np.zeros((len(sums), LANES), dtype=np.float32)
    for start in range(0, wide.shape[1], LANES):
        lanes += wide[:, start : start + LANES]
    half = LANES // 2
    while half:
        lanes[:, :half] += lanes[:, half : 2 * half]
        half //= 2
    length = np.sqrt(lanes[:, :1])
    # Below this a direction is rounding noise: no pieces, or pieces that cancel out.
    nonzero = length > np.float32(1e-12)
    np.divide(sums, length, out=out, where=nonzero)
    out[~nonzero[:, 0]] = 0
