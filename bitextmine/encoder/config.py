"""The shape of an encoder: the content of a model folder's config.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bitextmine.console import counted
from bitextmine.encoder.extra_columns import COLUMNS
from bitextmine.errors import BitextmineError

FORMAT, KIND = 1, "bitextmine-encoder"

Count = Annotated[int, Meta(ge=1)]
CountOrZero = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]
# Keys that are left out of a config.json where they are 0, so that older versions can read it.
OPTIONAL = (
    "transliterate",
    "ngrams",
    "order_columns",
    "order_weight",
    "repeat_damping",
    "length_share",
    "bottleneck",
    "recurrent",
    "pairs",
)
SUMS_ONLY = ("ngrams", "length_share", "order_columns", "repeat_damping")


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """Shape of an encoder; one set of weights serves every language.

    Attributes:
        layers: transformer layers; with 0, a vector is the mean of subword vectors, and heads, ffn and dropout are
            not used.
        max_pieces: the longest sentence that is encoded; the rest of a longer one is cut.
        transliterate: its tokenizer spells Greek and Cyrillic words in Latin letters, or words of all scripts ("all";
            `Tokenizer`).
        ngrams: n-grams, with vectors after the pieces' vectors (`Ngrams`); they count as pieces of a sentence.
        length_share: share of a vector's squared length in its last columns, which hold the sentence's length
            (`extra_columns`).
        order_columns: columns before those, which hold the order of the pieces: sums of the first
            columns of the pieces' vectors, weighted by place and by order_weight.
        repeat_damping: n equal pieces or n-grams of a sentence count n ** (1 - repeat_damping) (`extra_columns`).
        bottleneck: with layers, dimensions of the piece vectors, which a matrix brings to dim (0: dim, no matrix).
        languages: codes of the languages that it knows.
        pairs: training pairs by language, also of languages with too few to know them; empty if unknown.
        recurrent: layers that are applied repeatedly until there are ``layers`` of them (0: all have own weights).

    Raises:
        BitextmineError: a value is out of range, or two disagree.
    """

    vocab_size: Count
    dim: Count = 512
    layers: CountOrZero = 2
    heads: Count = 8
    ffn: Count = 1024
    dropout: Share = 0.1
    max_pieces: Count = 200
    languages: tuple[str, ...] = ()
    transliterate: bool | Literal["all"] = False
    ngrams: CountOrZero = 0
    length_share: Share = 0.0
    order_columns: CountOrZero = 0
    order_weight: Annotated[float, Meta(ge=0, lt=1e9)] = 0.0
    repeat_damping: Share = 0.0
    bottleneck: CountOrZero = 0
    recurrent: CountOrZero = 0
    pairs: dict[str, CountOrZero] = dataclasses.field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Count the vectors, of pieces and of n-grams."""
        return self.vocab_size + self.ngrams

    @property
    def piece_dim(self) -> int:
        """Return the dimensions of the pieces' part of a sentence vector: without columns for order and length."""
        return self.dim - self.order_columns - (COLUMNS if self.length_share else 0)

    @property
    def stored_dim(self) -> int:
        """Return the dimensions of a piece vector as it is stored."""
        return self.bottleneck or self.piece_dim

    @property
    def own_layers(self) -> int:
        """Count the layers with weights of their own: layer i of ``layers`` is number i modulo this."""
        return self.recurrent or self.layers

    def __post_init__(self) -> None:
        if problem := next(self._problems(), None):
            raise BitextmineError(f"model: {problem}")

    def _problems(self) -> Iterator[str]:
        layers, columns, dim = counted(self.layers, "layer"), self.order_columns, self.dim
        for key in SUMS_ONLY:
            if self.layers and (value := getattr(self, key)):
                yield f"{key} {value} with {layers}: only a model without layers has them"
        if self.layers and dim % self.heads:
            yield f"heads must divide dim, found heads {self.heads} and dim {dim}"
        if self.bottleneck and not (self.layers and self.bottleneck < dim):
            rule = "it must be below dim, and only a model with layers has one"
            yield f"bottleneck {self.bottleneck} with dim {dim} and {layers}: {rule}"
        if self.recurrent and (self.recurrent > self.layers or self.layers % self.recurrent):
            yield f"{self.recurrent} recurrent of {layers}: it must divide their number"
        if bool(self.order_weight) != bool(columns):
            yield f"order_columns and order_weight go together, found {columns} and {self.order_weight}"
        if columns and columns > self.piece_dim:
            yield (
                f"{columns} order_columns repeat as many columns of the pieces' vectors, but dim {dim} "
                f"less all columns for order and length leaves {max(0, self.piece_dim)}"
            )
        if self.piece_dim < 1:
            yield f"{COLUMNS} columns for the length (length_share) leave none of dim {dim} to the pieces"

    def describe(self) -> dict[str, Any]:
        """Return the shape for `bitextmine info`, without zeros."""
        extras = ("ngrams", "order_columns", "length_share", "repeat_damping", "bottleneck", "recurrent")
        settings = {key: getattr(self, key) for key in extras if getattr(self, key)}
        return {"dim": self.dim, "layers": self.layers, "vocab_size": self.vocab_size, **settings}

    def to_json(self) -> dict[str, Any]:
        """Return the content of config.json."""
        content = {**dataclasses.asdict(self), "languages": list(self.languages)}
        kept = {key: value for key, value in content.items() if value or key not in OPTIONAL}
        return {"format": FORMAT, "kind": KIND, **kept}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> EncoderConfig:
        """Read the content of config.json; ``where`` names the file in errors.

        Raises:
            BitextmineError: another kind of file, a newer format, a missing or an unknown key, or a wrong value.
        """
        values = dict(content)
        if (kind := values.pop("kind", None)) != KIND:
            raise BitextmineError(
                f'{where}: not a bitextmine encoder: "kind" is {kind!r}, not {KIND!r} (a model of '
                "transformers works once sentence-transformers has saved it: that adds modules.json)"
            )
        if (version := values.pop("format", None)) != FORMAT:
            raise BitextmineError(
                f"{where}: format {version!r}, but this version reads format {FORMAT}: update bitextmine or train anew"
            )
        if unknown := sorted(values.keys() - {field.name for field in dataclasses.fields(cls)}):
            raise BitextmineError(f"{where}: unknown key {unknown[0]!r}")
        try:
            return msgspec.convert(values, cls)
        except (msgspec.ValidationError, BitextmineError) as e:
            raise BitextmineError(f"{where}: {e}") from e
