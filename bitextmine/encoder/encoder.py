"""The encoder as every other stage sees it: lines in, unit vectors out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.device import device_name
from bitextmine.encoder.folder import WEIGHTS, folder_hash, read_folder, resolve
from bitextmine.encoder.foreign.laser import Laser, is_laser
from bitextmine.encoder.foreign.sentence_transformers import Import, is_imported
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.sums import PieceSums
from bitextmine.encoder.weights import read_weights
from bitextmine.errors import BitextmineError
from bitextmine.system import processors

__all__ = ["Encoder", "Network", "PieceMaker", "load_encoder"]


class PieceMaker(Protocol):
    """What an encoder asks of a tokeniser."""

    def encode(
        self, lines: Sequence[str], max_pieces: int | None = None, threads: int = 1
    ) -> tuple[Pieces, int]:
        """Pieces of each line, cut to ``max_pieces``, and how many lines were cut; a line of blanks has none."""


class Network(Protocol):
    """What an encoder asks of a model: `PieceSums`, `Transformer`, `Backbone`, `Lstm`."""

    device: str
    dim: int
    chunk_lines: int  # lines that are best encoded together
    slow: bool  # whether a line takes longer to encode than to look up

    def vectors(self, pieces: Pieces, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) float unit rows; zeros for a sentence of no pieces."""

    def settings(self, batch_tokens: int | None) -> dict[str, Any]:
        """What else than the weights decides the last bits of a vector."""

    def describe(self) -> dict[str, Any]:
        """Kind, dimensions and size, for `bitextmine info`."""


class Encoder:
    """Turns lines of any of its languages into comparable vectors; make one with `load_encoder`.

    Attributes: dim (int), max_pieces (int), name (str, the folder's), hash (16 hex digits of the folder's content),
    languages (tuple of str, those it was trained on), device (str: cpu, cuda, cuda:N).
    """

    def __init__(
        self,
        network: Network,
        tokenizer: PieceMaker,
        *,
        name: str,
        hash: str,
        max_pieces: int,
        languages: tuple[str, ...] = (),
    ) -> None:
        self.network = network
        self.tokenizer = tokenizer
        self.name, self.hash = name, hash
        self.dim, self.device = network.dim, network.device
        self.max_pieces, self.languages = max_pieces, languages

    def encode(self, lines: Sequence[str], *, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) float32 unit rows, row i for line i.

        A line without pieces (empty, or blanks only) gets the zero row: its cosine with everything is 0.
        Lines of more than ``max_pieces`` pieces are cut. Each distinct line is encoded once.
        """
        pieces, _, inverse = self.tokenize(lines)
        vectors = self.encode_pieces(pieces, batch_tokens=batch_tokens).astype(np.float32, copy=False)
        return vectors if inverse is None else vectors[inverse]

    def tokenize(self, lines: Sequence[str]) -> tuple[Pieces, int, np.ndarray | None]:
        """Pieces of the distinct lines, how many of these were cut to max_pieces, and for each line the row of
        its pieces (None: row i is line i)."""
        first: dict[str, int] = {}
        inverse: np.ndarray | None = np.fromiter(
            (first.setdefault(line, len(first)) for line in lines), dtype=np.int64, count=len(lines)
        )
        if len(first) == len(lines):
            inverse = None
        pieces, cut = self.tokenizer.encode(list(first), self.max_pieces, threads=processors())
        return pieces, cut, inverse

    def encode_pieces(self, pieces: Pieces, *, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) unit rows for n tokenised sentences, float32 (from a GPU float16); no pieces give zeros.

        The same pieces with the same ``batch_tokens`` give the same bits on one machine.
        """
        return self.network.vectors(pieces, batch_tokens)

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The vector of each piece, (pieces, d) int8, each on a scale of its own, and its norm (pieces,) float32.

        Raises BitextmineError for an encoder whose sentence vectors are not sums of such vectors.
        """
        if not isinstance(self.network, PieceSums):
            raise BitextmineError(
                f"the encoder '{self.name}' has no vectors of pieces to compare, as --rescore would: it has layers, "
                "or runs on a GPU"
            )
        return self.network.piece_rows()

    def describe(self) -> dict[str, Any]:
        """What `bitextmine info` says of a model."""
        network = self.network.describe()
        return {
            "kind": network.pop("kind"),
            "name": self.name,
            "hash": self.hash,
            "languages": ", ".join(self.languages) or "not stated",
            "max_pieces": self.max_pieces,
            **network,
        }


def load_encoder(
    model: str | os.PathLike[str] = "default", device: str = "auto", *, precision: str = "auto"
) -> Encoder:
    """An encoder by the name of a packaged one, from a model folder or from a folder of sentence-transformers or
    LASER, ready on ``device`` (auto, cpu, cuda, cuda:N).

    ``precision`` is that of the matrix products in a model with layers: auto (the fastest that the device has
    instructions for), float32, bfloat16, float16.

    Raises BitextmineError that names the file or the value that is wrong.
    """
    folder = resolve(model)
    name = Path(folder).resolve().name
    if is_imported(folder) or is_laser(folder):
        found = Import(folder) if is_imported(folder) else Laser(folder)
        place = device_name(device) if found.heavy else "cpu"
        return Encoder(
            found.network(place, precision),
            found.tokenizer,
            name=name,
            hash=found.hash(),
            max_pieces=found.max_pieces,
        )
    config, tokenizer = read_folder(folder)
    return Encoder(
        _network(config, folder / WEIGHTS, device, precision),
        tokenizer,
        name=name,
        hash=folder_hash(folder),
        max_pieces=config.max_pieces,
        languages=config.languages,
    )


def _network(config: EncoderConfig, weights: Path, device: str, precision: str) -> Network:
    # A sum of piece vectors takes less time than the words take to look up: a GPU would wait for text.
    place = device_name(device if config.layers or device != "auto" else "cpu")
    state = read_weights(config, weights)
    if place == "cpu" and not config.layers:
        return PieceSums(state, config.ngrams, config.length_share, config.order_columns, config.order_weight)
    from bitextmine.encoder.transformer import Transformer

    return Transformer(config, state, place, precision)
