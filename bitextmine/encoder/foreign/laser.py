"""LASER's encoder (Artetxe and Schwenk, TACL 2019; LASER2): a bidirectional LSTM over pieces, the maximum over time.

A folder holds NAME.spm, the SentencePiece model as it is published, and NAME.safetensors, the weights under the names
of the published checkpoint, with its dictionary {piece: row} as JSON in the metadata key "dictionary". The checkpoint
itself (NAME.pt) is a pickle and is never read; the README, "Encoders from elsewhere", shows how to convert it.

Text is lower-cased, and typographic quotation marks, dashes and dots become plain ones. The published preparation
(Moses' punctuation rules) also shifts spaces around brackets and quotation marks: vectors of text that has those differ
a little from those of the published tool.
"""

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from bitextmine.encoder.network import TorchNetwork
from bitextmine.encoder.pieces import Network, PieceMaker, Pieces
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import check_finite, read_arrays
from bitextmine.errors import BitextmineError
from bitextmine.run import Run

# Longer lines are cut; the published encoder has no limit.
MAX_PIECES = 1024

END, UNKNOWN = 2, 3  # rows of the embedding that are no pieces

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


def load(folder: Path, run: Run) -> tuple[Network, PieceMaker, int]:
    """Load a folder; raises BitextmineError if a file is missing or does not fit."""
    spm, weights = _only(folder, "*.spm"), _only(folder, "*.safetensors")
    state = read_arrays(weights)
    table = state.get(EMBEDDING)
    if table is None or table.ndim != 2:
        raise BitextmineError(
            f"{weights}: no matrix {EMBEDDING!r}: not the weights of LASER2 (LASER3 is not supported)"
        )
    tokenizer = LaserTokenizer(spm, _dictionary(weights, len(table)))
    here = dataclasses.replace(run, device=run.device_name)
    check_finite(state, weights)
    try:
        return Lstm(state, here), tokenizer, MAX_PIECES
    except (RuntimeError, KeyError, IndexError) as e:  # from loading the weights into torch's LSTM
        raise BitextmineError(f"{weights}: not the weights of LASER's LSTM: {e}") from None


def weight_files(folder: Path) -> dict[str, Path]:
    """Return the files that decide the vectors, by suffix."""
    return {path.suffix: path for path in (_only(folder, "*.spm"), _only(folder, "*.safetensors"))}


def _dictionary(weights: Path, rows: int) -> dict[str, int]:
    """Return piece -> row of an embedding of ``rows`` rows."""
    with safe_open(weights, framework="np") as file:
        text = (file.metadata() or {}).get("dictionary")
    if text is None:
        raise BitextmineError(
            f"{weights}: no dictionary in its metadata; convert the model as the README shows"
        )
    try:
        dictionary = msgspec.json.decode(text, type=dict[str, Annotated[int, msgspec.Meta(ge=0)]])
    except msgspec.DecodeError as e:  # ValidationError is one
        raise BitextmineError(
            f"{weights}: the dictionary in its metadata is not {{piece: row}} ({e})"
        ) from None
    for piece, row in dictionary.items():
        if row >= rows:
            raise BitextmineError(
                f"{weights}: the dictionary in its metadata: {piece!r} is row {row}, but the embedding has {rows} rows"
            )
    return dictionary


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
        filled = pieces.lengths > 0
        offsets = pieces.offsets.copy()
        offsets[1:] += np.cumsum(filled)
        ids = np.insert(self._rows[pieces.ids], pieces.offsets[1:][filled], END)
        return Pieces(ids.astype(np.int32, copy=False), offsets), cut


class Lstm(TorchNetwork):
    """A stack of LSTMs; a vector is the unit-length maximum of the last layer's states over a sentence.

    weights: EMBEDDING (pieces, width) and a torch.nn.LSTM's weights under the prefix "lstm.", float32 (RuntimeError
    for others).
    """

    def __init__(self, weights: Mapping[str, np.ndarray], run: Run) -> None:
        table = weights[EMBEDDING]
        hidden = weights["lstm.weight_hh_l0"].shape[1]
        both_ways = "lstm.weight_hh_l0_reverse" in weights
        layers = sum(name.startswith("lstm.weight_hh") for name in weights) // (1 + both_ways)
        super().__init__(hidden * (1 + both_ways), run, "float32")
        self.facts = {
            "kind": "encoder (LASER: LSTM, maximum over time)",
            "dim": self.dim,
            "layers": layers,
            "vocab_size": len(table),
            "parameters": sum(array.size for array in weights.values()),
        }
        self._table = torch.from_numpy(table).to(self._device, self._low)
        lstm = nn.LSTM(table.shape[1], hidden, layers, bidirectional=both_ways, batch_first=True)
        rest = {name: array for name, array in weights.items() if name != EMBEDDING}
        lstm.load_state_dict(
            {name.removeprefix("lstm."): torch.from_numpy(array) for name, array in rest.items()}
        )
        self._lstm = lstm.to(self._device, self._low).eval().requires_grad_(False)

    def _forward(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        counts = lengths.tolist()
        sentences = functional.embedding(ids.long(), self._table).split(counts)
        packed = pack_padded_sequence(pad_sequence(sentences, batch_first=True), counts, batch_first=True)
        # In float32 cuDNN would round products to 10 bits (TF32).
        exact = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
        with exact if self._device.type == "cuda" else contextlib.nullcontext():
            states = self._lstm(packed)[0]
        states, _ = pad_packed_sequence(states, batch_first=True, padding_value=-torch.inf)
        return functional.normalize(states.amax(1).float(), dim=1, eps=1e-12)


def _only(folder: Path, pattern: str) -> Path:
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        pickles = "; a pickle (*.pt) is not read: convert it as the README shows" * any(folder.glob("*.pt"))
        raise BitextmineError(f"{folder}: a folder of LASER holds one {pattern}, found {names}{pickles}")
    return paths[0]
