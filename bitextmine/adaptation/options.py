"""The options of adapt; nothing heavy is imported here."""

from dataclasses import dataclass
from typing import Annotated

from bitextmine.declarations import Opt, Options, Seed


@dataclass(frozen=True)
class AdaptOptions(Options):
    """Training settings for mined pairs; UsageError if a value has the wrong type or is out of range."""

    error_rate: Annotated[
        float,
        Opt("--error-rate", "Estimated share of wrong pairs to accept in the training data.", gt=0, lt=1),
    ] = 0.05
    rounds: Annotated[int, Opt("--rounds", "Maximum rounds of mining and training.", ge=1)] = 4
    seed: Seed = 1
