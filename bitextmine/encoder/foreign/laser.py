"""LASER's encoder (Artetxe and Schwenk, TACL 2019; LASER2): a bidirectional LSTM over pieces, the maximum over time.

A folder holds NAME.spm, the SentencePiece model as it is published, and NAME.safetensors, the weights under the names
of the published checkpoint, with its dictionary {piece: row} as JSON in the metadata key "dictionary". Without that key
the dictionary is NAME.cvocab: one piece per line, its row counted from 4. The checkpoint itself (NAME.pt) is a pickle
and is never read; the README, "Encoders from elsewhere", shows how to convert it.

Text is lower-cased, and typographic quotation marks, dashes and dots become plain ones. The published preparation
(Moses' punctuation rules) besides shifts spaces around brackets and quotation marks: where a text has those, vectors
differ a little from those of the published tool.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.protocols import Network
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import parse_json

__all__ = ["Laser", "LaserTokenizer", "is_laser"]

# The published encoder has no limit; a longer line is cut here.
MAX_PIECES = 1024

# Rows of the embedding that are no pieces, as fairseq orders them.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
END, UNKNOWN = 2, 3

EMBEDDING = "embed_tokens.weight"
GATES = re.compile(r"lstm\.(weight|bias)_(ih|hh)_l(\d+)(_reverse)?")

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
    """Whether a folder is one of LASER: it holds a SentencePiece model named *.spm."""
    return any(folder.glob("*.spm"))


class Laser:
    """A folder of LASER. Raises BitextmineError that names the file that is missing or does not fit.

    Attributes: max_pieces (int), tokenizer (LaserTokenizer), heavy (bool, whether a GPU would help).
    """

    heavy = True
    max_pieces = MAX_PIECES

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._spm = _only(folder, "*.spm")
        self._weights = _only(folder, "*.safetensors")
        self._state = read_arrays(self._weights)
        table = self._state.get(EMBEDDING)
        if table is None or table.ndim != 2:
            raise BitextmineError(
                f"{self._weights}: no matrix {EMBEDDING!r}: not the weights of LASER2 (those of LASER3 are not "
                "supported)"
            )
        self.tokenizer = LaserTokenizer(self._spm, self._dictionary(len(table)))

    def _dictionary(self, rows: int) -> dict[str, int]:
        """Piece -> row of the embedding, which has so many rows."""
        try:
            with safe_open(self._weights, framework="np") as file:
                text = (file.metadata() or {}).get("dictionary")
        except (SafetensorError, OSError) as e:
            raise BitextmineError(f"{self._weights}: not a readable safetensors file ({e!r})") from e
        if text is not None:
            where = f"{self._weights}: the dictionary in its metadata"
            try:
                found = parse_json(text)
            except ValueError as e:
                raise BitextmineError(f"{where} is not {{piece: row}} ({e})") from None
            if not isinstance(found, dict) or not all(type(row) is int for row in found.values()):
                raise BitextmineError(f"{where} is not {{piece: row}}, each row a whole number")
        else:
            path = self._weights.with_suffix(".cvocab")
            where = str(path)
            if not path.is_file():
                raise BitextmineError(
                    f"{self.folder}: no dictionary: {self._weights.name} has none in its metadata, and there is no "
                    f"{path.name}"
                )
            try:
                lines = path.read_text(encoding="utf-8").split("\n")
            except (OSError, UnicodeDecodeError) as e:
                raise BitextmineError(f"{path}: cannot be read ({e})") from None
            pieces = [line.split(" ")[0] for line in lines if line]
            found = {piece: row for row, piece in enumerate(pieces, start=len(SPECIAL))}
            if len(SPECIAL) + len(pieces) != rows:
                raise BitextmineError(
                    f"{where}: {len(pieces)} pieces and {len(SPECIAL)} special ones, but the embedding in "
                    f"{self._weights.name} has {rows} rows"
                )
        wrong = [piece for piece, row in found.items() if not 0 <= row < rows]
        if wrong:
            raise BitextmineError(
                f"{where}: {wrong[0]!r} is row {found[wrong[0]]}, but the embedding has {rows} rows"
            )
        return found

    def hash(self) -> str:
        """16 hex digits of a SHA-256 over the files that decide what the vectors are."""
        digest = hashlib.sha256()
        for path in (self._spm, self._weights, self._weights.with_suffix(".cvocab")):
            if path.is_file():
                with path.open("rb") as file:
                    digest.update(path.suffix.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]

    def network(self, device: str, precision: str) -> Network:
        """The model, ready on ``device`` (cpu, cuda, cuda:N)."""
        from bitextmine.encoder.foreign.lstm import Lstm

        _check(self._state, self._weights)
        return Lstm(self._state, device, precision)


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
        """Rows of each line, the end included, cut to ``max_pieces``, and how many lines were cut; a line of blanks
        has none."""
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


def _check(state: dict[str, np.ndarray], path: Path) -> None:
    """Makes the weights float32; raises BitextmineError unless they are those of one LSTM."""
    others = [name for name in state if name != EMBEDDING and not GATES.fullmatch(name)]
    if others:
        raise BitextmineError(f"{path}: tensor {others[0]!r} has no place in LASER's LSTM")
    gates = [GATES.fullmatch(name) for name in state if name != EMBEDDING]
    layers = 1 + max((int(found[3]) for found in gates if found), default=-1)
    ways = ["", "_reverse"] if any(found and found[4] for found in gates) else [""]
    hidden = np.atleast_1d(state.get("lstm.weight_hh_l0", np.empty(0))).shape[-1]
    width = state[EMBEDDING].shape[1]
    for layer in range(max(1, layers)):
        for way in ways:
            for name, shape in (
                (f"lstm.weight_hh_l{layer}{way}", (4 * hidden, hidden)),
                (f"lstm.weight_ih_l{layer}{way}", (4 * hidden, width)),
                (f"lstm.bias_ih_l{layer}{way}", (4 * hidden,)),
                (f"lstm.bias_hh_l{layer}{way}", (4 * hidden,)),
            ):
                if name not in state:
                    raise BitextmineError(f"{path}: no tensor {name!r}: not the weights of LASER's LSTM")
                if state[name].shape != shape:
                    raise BitextmineError(f"{path}: {name!r} has shape {state[name].shape}, expected {shape}")
        width = hidden * len(ways)
    for name, array in state.items():
        state[name] = array.astype(np.float32, copy=False)
        if not np.isfinite(state[name]).all():
            raise BitextmineError(f"{path}: {name!r} holds NaN or infinite values")
