"""What an encoder is, in numbers: the content of a model folder's config.json."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from bitextmine.console import counted
from bitextmine.encoder.columns.lengths import COLUMNS
from bitextmine.errors import BitextmineError

__all__ = ["EncoderConfig"]

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """Shape of an encoder; one set of weights serves every language.

    layers = 0 is the mean of subword vectors; heads, ffn and dropout then mean nothing.
    max_pieces is the longest sentence that is encoded, in pieces: the rest of a longer one is cut. ngrams: how many
    n-grams have vectors, too, after those of the pieces (`Ngrams`; they count as pieces of a sentence). length_share:
    the share of a vector's squared length that its last columns have, which tell how long the sentence is (`lengths`).
    order_columns: so many columns before those tell where the pieces stand (`order`): the sums of the first columns of
    the pieces' vectors, weighed by place and by order_weight. bottleneck: of a model with layers, the numbers in the
    vector of a piece, which a matrix then brings to dim (0: dim of them, and no matrix). recurrent: so many layers are
    applied again and again until there are ``layers`` of them (0: each layer is of its own).
    """

    vocab_size: int
    dim: int = 512
    layers: int = 2
    heads: int = 8
    ffn: int = 1024
    dropout: float = 0.1
    max_pieces: int = 200
    languages: tuple[str, ...] = ()
    ngrams: int = 0
    length_share: float = 0.0
    order_columns: int = 0
    order_weight: float = 0.0
    bottleneck: int = 0
    recurrent: int = 0

    @property
    def rows(self) -> int:
        """Vectors of the model: of pieces and of n-grams."""
        return self.vocab_size + self.ngrams

    @property
    def piece_dim(self) -> int:
        """Numbers in what is made of a piece: those of a sentence less the columns for its order and its length."""
        return self.dim - self.order_columns - (COLUMNS if self.length_share else 0)

    @property
    def stored_dim(self) -> int:
        """Numbers in the vector of a piece as it is stored."""
        return self.bottleneck or self.piece_dim

    @property
    def own_layers(self) -> int:
        """Layers that have weights: layer i of ``layers`` is number i modulo so many."""
        return self.recurrent or self.layers

    def __post_init__(self) -> None:
        """Raises BitextmineError that names the key and both numbers, where two disagree."""
        for key, least in (
            ("vocab_size", 1),
            ("dim", 1),
            ("layers", 0),
            ("max_pieces", 1),
            ("ngrams", 0),
            ("order_columns", 0),
            ("bottleneck", 0),
            ("recurrent", 0),
        ):
            value = getattr(self, key)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise BitextmineError(
                    f"model: {key} must be a whole number of at least {least}, found {value!r}"
                )
        if self.layers and (not isinstance(self.heads, int) or self.heads < 1 or self.dim % self.heads):
            raise BitextmineError(
                f"model: heads must divide dim, found heads {self.heads!r} and dim {self.dim}"
            )
        if self.layers and (not isinstance(self.ffn, int) or self.ffn < 1):
            raise BitextmineError(f"model: ffn must be a whole number of at least 1, found {self.ffn!r}")
        layers = counted(self.layers, "layer")
        if self.bottleneck and not (self.layers and self.bottleneck < self.dim):
            raise BitextmineError(
                f"model: bottleneck {self.bottleneck} with dim {self.dim} and {layers}: it must be below "
                "dim, and only a model with layers has one"
            )
        if self.recurrent and (self.recurrent > self.layers or self.layers % self.recurrent):
            raise BitextmineError(
                f"model: {self.recurrent} recurrent of {layers}: it must divide their number"
            )
        if self.layers and self.ngrams:
            raise BitextmineError(
                f"model: {self.ngrams} ngrams with {layers}: only a model without layers has n-grams"
            )
        share = self.length_share
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise BitextmineError(f"model: length_share must lie in [0, 1), found {share!r}")
        if share and self.layers:
            raise BitextmineError(
                f"model: length_share {share} with {layers}: only a model without layers has it"
            )
        weight = self.order_weight
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
            raise BitextmineError(f"model: order_weight must be a number of at least 0, found {weight!r}")
        if bool(weight) != bool(self.order_columns):
            raise BitextmineError(
                f"model: order_columns and order_weight go together, found {self.order_columns} and {weight}"
            )
        if self.order_columns and self.layers:
            raise BitextmineError(
                f"model: order_columns {self.order_columns} with {layers}: only a model without layers "
                "has them"
            )
        if self.order_columns and self.order_columns > self.piece_dim:
            raise BitextmineError(
                f"model: {self.order_columns} order_columns are made of as many columns of the pieces' vectors, of "
                f"which dim {self.dim}, less all columns for order and length, leaves {max(0, self.piece_dim)}"
            )
        if self.piece_dim < 1:
            raise BitextmineError(
                f"model: {COLUMNS} columns for the length (length_share) leave none of dim {self.dim} to the pieces"
            )
        if not isinstance(self.dropout, (int, float)) or not 0 <= self.dropout < 1:
            raise BitextmineError(f"model: dropout must lie in [0, 1), found {self.dropout!r}")

    def describe(self) -> dict[str, Any]:
        """What `bitextmine info` says of it; what is 0 is left out."""
        extras = {
            key: getattr(self, key)
            for key in ("ngrams", "order_columns", "length_share", "bottleneck", "recurrent")
        }
        return {
            "dim": self.dim,
            "layers": self.layers,
            "vocab_size": self.vocab_size,
            **{key: value for key, value in extras.items() if value},
        }

    def to_json(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        content["languages"] = list(self.languages)
        if not self.ngrams:
            del content["ngrams"]  # so that versions before it can read the folder
        if not self.length_share:
            del content["length_share"]  # likewise
        if not self.order_columns:
            del content["order_columns"], content["order_weight"]
        for key in ("bottleneck", "recurrent"):
            if not content[key]:
                del content[key]
        return {"format": FORMAT, "kind": "bitextmine-encoder", **content}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> EncoderConfig:
        """Reads a config.json's content; ``where`` names the file in errors.

        Raises BitextmineError for another kind of file, a newer format, a missing or an unknown key.
        """
        values = dict(content)
        kind = values.pop("kind", None)
        if kind != "bitextmine-encoder":
            raise BitextmineError(
                f"{where}: not a bitextmine encoder: \"kind\" is {kind!r}, not 'bitextmine-encoder' (a model of "
                "transformers works once sentence-transformers has saved it: that adds modules.json)"
            )
        found = values.pop("format", None)
        if found != FORMAT:
            raise BitextmineError(
                f"{where}: format {found!r}, but this version reads format {FORMAT}: update bitextmine or train anew"
            )
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise BitextmineError(f"{where}: unknown key {unknown[0]!r}")
        if "vocab_size" not in values:
            raise BitextmineError(f"{where}: no 'vocab_size'")
        languages = values.get("languages", [])
        if not isinstance(languages, list) or not all(isinstance(code, str) for code in languages):
            raise BitextmineError(f"{where}: languages must be a list of codes, found {languages!r}")
        values["languages"] = tuple(languages)
        try:
            return cls(**values)
        except BitextmineError as e:
            raise BitextmineError(f"{where}: {e}") from e
