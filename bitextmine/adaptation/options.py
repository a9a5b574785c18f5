"""The options of adapting."""

from __future__ import annotations

from dataclasses import dataclass

from bitextmine.arguments import real_number, whole_number
from bitextmine.errors import UsageError


@dataclass(frozen=True)
class AdaptOptions:
    """How an encoder learns from the pairs it mines.

    Attributes:
        error_rate: estimated share of wrong pairs among those it trains on.
        rounds: maximum number of rounds of mining and training.
        k: neighbours per line for the margin.
        seed: random seed.

    Raises:
        UsageError: a value has the wrong type or is out of range.
    """

    error_rate: float = 0.05
    rounds: int = 4
    k: int = 4
    seed: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "error_rate", real_number("error_rate", self.error_rate))
        if not 0 < self.error_rate < 1:
            raise UsageError(f"error_rate: expected a rate between 0 and 1, found {self.error_rate:g}")
        object.__setattr__(self, "rounds", whole_number("rounds", self.rounds))
        object.__setattr__(self, "k", whole_number("k", self.k))
        if self.k < 2:
            raise UsageError("k: with one neighbour there is no margin; take a k of 2 or more")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < 2**32:
            raise UsageError(f"seed: expected a whole number from 0 to {2**32 - 1}, found {self.seed!r}")
