"""The options of training an encoder and of fitting its scorer; nothing heavy is imported here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from bitextmine.arguments import finite
from bitextmine.declarations import Kind, Opt, Options, Path
from bitextmine.errors import UsageError

OUT = Opt("--out", "Model folder to create.", metavar="FOLDER")
Data = Annotated[
    Path | None,
    Opt(
        "--data",
        "Folder of the corpora.",
        metavar="FOLDER",
        default="the recipe's folder, or the current one",
    ),
]


def weights(value: Any) -> Mapping[str, float]:
    """Return weights by name, also of text, NAME=WEIGHT,NAME; a weight is 1 if it is not given."""
    if not isinstance(value, str):
        return dict(value)
    parsed = {}
    for part in value.split(","):
        name, _, text = part.partition("=")
        weight = finite(text or 1)
        if not name or not weight >= 0:
            raise UsageError(f"expected NAME or NAME=WEIGHT, with a weight of at least 0, found {part!r}")
        parsed[name] = weight
    return parsed


def given(accepts: str) -> Kind:
    """Return the kind of a value that is checked where it is used."""
    return Kind("", lambda value: value, accepts)


@dataclass(frozen=True)
class TrainOptions(Options):
    """The text that an encoder is trained on, and how.

    Attributes:
        recipe: a TOML file, the recipe.json of a model, or the name of a built-in recipe.
        pairs: files named after their languages (pairs.en-fr.tsv), or two files each, ("pairs.en", "pairs.fr"), in
            place of the recipe's.
        settings: keys of the recipe, such as ``{"train.epochs": 3}``.
    """

    recipe: Annotated[Any, given("str | os.PathLike[str] | None")] = None
    pairs: Annotated[Any, given("str | os.PathLike[str] | Sequence[Pairs]")] = ()
    start: Annotated[
        str | os.PathLike[str] | None,
        Opt(
            "--from",
            "Start from a built-in encoder or one made by 'bitextmine train'.",
            metavar="NAME|FOLDER",
        ),
    ] = None
    settings: Annotated[Any, given("Mapping[str, Any] | None")] = None
    data: Data = None


@dataclass(frozen=True)
class RecipeKeys(Options):
    """Keys of the recipe that are options of their own; None leaves a key to the recipe."""

    vocabulary: Annotated[
        int | None, Opt("--vocabulary", "Subword pieces.", ge=8, le=1_000_000, default="32000")
    ] = None
    dim: Annotated[int | None, Opt("--dim", "Dimensions per vector.", ge=1, default="256")] = None
    layers: Annotated[int | None, Opt("--layers", "Transformer layers.", ge=0, default="0")] = None
    epochs: Annotated[float | None, Opt("--epochs", "Passes over the data.", gt=0, default="5")] = None
    batch: Annotated[int | None, Opt("--batch", "Pairs per step.", ge=2, default="4096")] = None
    seed: Annotated[int | None, Opt("--seed", "Random seed.", ge=0, le=2**32 - 1, default="1")] = None

    def settings(self) -> dict[str, Any]:
        """Return the keys that are given, with their values."""
        keys = {
            "vocabulary.size": self.vocabulary,
            "model.dim": self.dim,
            "model.layers": self.layers,
            "train.epochs": self.epochs,
            "train.batch": self.batch,
            "train.seed": self.seed,
        }
        return {key: value for key, value in keys.items() if value is not None}


@dataclass(frozen=True)
class Fitting(Options):
    """The data and settings of a fit of the scorer."""

    corpora: Annotated[
        Any,
        Kind("NAME=X,NAME", weights, "Mapping[str, float]"),
        Opt(
            "--corpora",
            "Corpora to use, by the start of their names, with weights (default 1).",
            default="all",
        ),
    ] = field(default_factory=dict)
    held_out: Annotated[int, Opt("--held-out", "Skip corpora with fewer held-out pairs.", ge=1)] = 500
    draws: Annotated[int, Opt("--draws", "Mining tasks per corpus.", ge=1)] = 5
