"""LASER's encoder (Artetxe and Schwenk, TACL 2019; LASER2): a bidirectional LSTM over pieces, the maximum over time.

A folder holds NAME.spm, the SentencePiece model as it is published, and NAME.safetensors, the weights under the names
of the published checkpoint, with its dictionary {piece: row} as JSON in the metadata key "dictionary". Without that key
the dictionary is NAME.cvocab: one piece per line, its row counted from 4. The checkpoint itself (NAME.pt) is a pickle
and is never read; the README, "Encoders from elsewhere", shows how to convert it.

Text is lower-cased, and typographic quotation marks, dashes and dots become plain ones. The published preparation
(Moses' punctuation rules) also shifts spaces around brackets and quotation marks: vectors of text that has those differ
a little from those of the published tool.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import safe_open

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.protocols import Network
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import check_finite, read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import parse_json
from bitextmine.run import Run

# Longer lines are cut; the published encoder has no limit.
MAX_PIECES = 1024

# Rows of the embedding that are no pieces, as fairseq orders them.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
END, UNKNOWN = 2, 3

EMBEDDING = "embed_tokens.weight"

PLAIN = str.maketrans(
    {
        **dict.fromkeys("„“”«»", '"'),
        **dict.fromkeys("‘’‚´`", "'"),
        **dict.fromkeys("–—", "-"),
        "…": "...",
        "\u00a0": " ",
    }
)


def is_laser(folder: Path) -> bool:
    """Return True for a folder that holds a SentencePiece model named *.spm."""
    return any(folder.glob("*.spm"))


class Laser:
    """A folder of LASER.

    Raises:
        BitextmineError: a file is missing or does not fit; the message names it.
    """

    heavy = True
    max_pieces = MAX_PIECES

    def __init__(self, folder: Path) -> None:
        self._spm = _only(folder, "*.spm")
        self._weights = _only(folder, "*.safetensors")
        self._cvocab = self._weights.with_suffix(".cvocab")
        self._state = read_arrays(self._weights)
        table = self._state.get(EMBEDDING)
        if table is None or table.ndim != 2:
            raise BitextmineError(
                f"{self._weights}: no matrix {EMBEDDING!r}: not the weights of LASER2 (LASER3 is not supported)"
            )
        self.tokenizer = LaserTokenizer(self._spm, self._dictionary(len(table)))

    def _dictionary(self, rows: int) -> dict[str, int]:
        """Return piece -> row of the embedding, which has so many rows."""
        with safe_open(self._weights, framework="np") as file:
            text = (file.metadata() or {}).get("dictionary")
        if text is not None:
            where = f"{self._weights}: the dictionary in its metadata"
            try:
                found = parse_json(text)
            except ValueError as e:
                raise BitextmineError(f"{where} is not {{piece: row}} ({e})") from None
            if not isinstance(found, dict) or not all(type(row) is int for row in found.values()):
                raise BitextmineError(f"{where} is not {{piece: row}}, each row a whole number")
        else:
            where = str(self._cvocab)
            try:
                lines = self._cvocab.read_text(encoding="utf-8").split("\n")
            except FileNotFoundError:
                raise BitextmineError(
                    f"{self._weights}: no dictionary in its metadata, and there is no {self._cvocab.name}"
                ) from None
            except (OSError, UnicodeDecodeError) as e:
                raise BitextmineError(f"{where}: cannot be read ({e})") from None
            pieces = [line.split(" ")[0] for line in lines if line]
            found = {piece: row for row, piece in enumerate(pieces, start=len(SPECIAL))}
            if len(SPECIAL) + len(pieces) != rows:
                raise BitextmineError(
                    f"{where}: {len(pieces)} pieces and {len(SPECIAL)} special ones, but the embedding in "
                    f"{self._weights.name} has {rows} rows"
                )
        for piece, row in found.items():
            if not 0 <= row < rows:
                raise BitextmineError(f"{where}: {piece!r} is row {row}, but the embedding has {rows} rows")
        return found

    def hash(self) -> str:
        """Return 16 hex digits of a SHA-256 over the files that decide the vectors."""
        digest = hashlib.sha256()
        for path in (self._spm, self._weights, self._cvocab):
            if path.is_file():
                with path.open("rb") as file:
                    digest.update(path.suffix.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]

    def network(self, run: Run, precision: str) -> Network:
        """Return the model on ``run.device``."""
        from bitextmine.encoder.foreign.lstm import Lstm

        check_finite(self._state, self._weights)
        try:
            return Lstm(self._state, run, precision)
        except (RuntimeError, KeyError, IndexError) as e:  # from loading the weights into torch's LSTM
            raise BitextmineError(f"{self._weights}: not the weights of LASER's LSTM: {e}") from None


class LaserTokenizer:
    """Pieces of SentencePiece as rows of LASER's embedding, with the end-of-sentence row after each sentence.

    dictionary: piece -> row; a piece that it lacks is the unknown one.
    """

    def __init__(self, spm: str | os.PathLike[str], dictionary: Mapping[str, int]) -> None:
        self._model = Tokenizer(spm)
        names = self._model.pieces()
        self._rows = np.array([dictionary.get(name, UNKNOWN) for name in names], dtype=np.int32)

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Return the rows of each line, the end included, cut to ``max_pieces``, and the number of lines cut.

        A blank line has no rows.
        """
        texts = [line.translate(PLAIN).lower() for line in lines]
        most = None if max_pieces is None else max(1, max_pieces - 1)
        pieces, cut = self._model.encode(texts, most, threads)
        some = pieces.lengths > 0
        offsets = pieces.offsets.copy()
        offsets[1:] += np.cumsum(some)
        ids = np.insert(self._rows[pieces.ids], pieces.offsets[1:][some], END)
        return Pieces(ids.astype(np.int32, copy=False), offsets), cut


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        pickles = ", ".join(path.name for path in sorted(folder.glob("*.pt")))
        hint = (
            f"; {pickles} is a pickle, which is not read: convert it as the README shows" if pickles else ""
        )
        raise BitextmineError(f"{folder}: a folder of LASER holds one {pattern}, found {names}{hint}")
    return found[0]
