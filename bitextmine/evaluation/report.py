"""The base of all evaluation reports: tables, JSON values, frames."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned
from bitextmine.display import Shown

if TYPE_CHECKING:
    import pandas

FileName = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Report(Shown):
    """A result with a signature, which identifies the measurement, and notes for the reader."""

    kind: ClassVar[str]
    signature: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.signature}>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        content = asdict(self)
        last = {name: content.pop(name) for name in ("signature", "notes")}
        return {"kind": self.kind, **content, **last}

    def to_frame(self) -> pandas.DataFrame:
        """Return a row per result, its fields as columns."""
        import pandas

        return pandas.DataFrame([asdict(result) for result in cast(Any, self).results])

    def _table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *remarks: str) -> str:
        return "\n".join([aligned(header, rows), *remarks, *self.notes, self.signature])


def percent(*shares: float) -> list[str]:
    """Return shares from 0 to 1 as percentages with two decimals."""
    return [f"{100 * share:.2f}" for share in shares]


def cut_note(cut: int, noun: str, most: int) -> tuple[str, ...]:
    """Return a note on texts that are longer than an encoder reads, if there are any."""
    if not cut:
        return ()
    subject = f"{cut:,} {noun} is" if cut == 1 else f"{cut:,} {noun}s are"
    return (f"{subject} longer than {most} pieces: of these only the beginning counts",)


RESAMPLES = 2000  # of the bootstrap
SEED = 1  # of all that is drawn
Z95 = 1.959963984540054  # the 97.5% point of the normal distribution


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's score interval (1927) of a share: (low, high) from 0 to 1; (0, 1) without a trial."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials")
    if trials == 0:
        return 0.0, 1.0
    p, z = successes / trials, Z95
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == trials else (middle + half) / scale
    return low, high


def bootstrap(
    groups: list[NDArray[np.int64]], statistic: Callable[[list[NDArray[np.int64]]], NDArray[np.float64]]
) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of a statistic of sums of counts.

    `groups` are integer matrices (items, c), the items of each resampled with replacement; `statistic` maps one matrix
    of sums (RESAMPLES, c) per group to values (RESAMPLES,). Items with equal counts are interchangeable, so the draw is
    one multinomial over the distinct ones: exact, and fast for any number.
    """
    rng = np.random.default_rng(SEED)
    sums = []
    for items in groups:
        if not len(items):
            sums.append(np.zeros((RESAMPLES, items.shape[1]), dtype=np.int64))
            continue
        distinct, count = np.unique(items, axis=0, return_counts=True)
        drawn = rng.multinomial(len(items), count / len(items), size=RESAMPLES)
        sums.append(drawn @ distinct)
    low, high = np.quantile(statistic(sums), [0.025, 0.975])
    return float(low), float(high)
