"""The clocks of two subtitle files: the line from the times of one to those of the other.

Files for copies of one film begin with an offset, and run apart where one was made for 25 frames a second and the other
for 23.976. Links that the vectors find show the line, though some of them are wrong: of the lines through one or two
links the one that most links lie on is taken (Fischler and Bolles 1981, "Random sample consensus"), with links evenly
spaced in the place of random ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]

_CLOSE = 0.7  # seconds off the line at most
_TRIED = 64  # links that lines are drawn through
_RATES = 25 / (24 / 1.001), 24 / (24 / 1.001), 25 / 24
_SLOPES = 0.9, 1.1
# A line through two links that are closer than this, in seconds, says little about the slope.
_APART = 120.0
# The share of the links that must lie on the line, and their number.
_SHARE, _FEWEST = 1 / 3, 3
# Added to both ends of a sentence's time, in seconds: that of a short one hardly overlaps otherwise.
_SLACK = 0.5


class Clock(NamedTuple):
    """The time in the target of each time in the source: slope * time + offset, in seconds."""

    slope: float
    offset: float

    def of(self, times: Times) -> Times:
        """Return the times in the target."""
        return self.slope * times + self.offset


def fit_clock(src: Times, tgt: Times) -> Clock | None:
    """Return the line from the times (links,) of links in the source to theirs in the target.

    None if fewer than three links, or less than a third of them, lie on one.
    """
    if len(src) < _FEWEST:
        return None
    some = np.unique(np.linspace(0, len(src) - 1, min(len(src), _TRIED)).astype(np.int64))
    x, y = src[some], tgt[some]
    slopes = np.array([1.0, *_RATES, *(1 / rate for rate in _RATES)])
    one, other = np.triu_indices(len(some), 1)
    apart = np.abs(x[other] - x[one]) >= _APART
    one, other = one[apart], other[apart]
    through = (y[other] - y[one]) / (x[other] - x[one])
    likely = (through > _SLOPES[0]) & (through < _SLOPES[1])
    # The slopes of known rates first: of lines with as many links the first is taken.
    slope = np.concatenate([np.repeat(slopes, len(some)), through[likely]])
    offset = np.concatenate([np.tile(y, len(slopes)), y[one][likely]])
    offset -= slope * np.concatenate([np.tile(x, len(slopes)), x[one][likely]])
    counts = np.array(
        [np.count_nonzero(np.abs(a * src + b - tgt) <= _CLOSE) for a, b in zip(slope, offset, strict=True)]
    )
    best = int(counts.argmax())
    if counts[best] < max(_FEWEST, _SHARE * len(src)):
        return None
    clock = Clock(float(slope[best]), float(offset[best]))
    for _ in range(2):
        close = np.abs(clock.of(src) - tgt) <= _CLOSE
        x, y = src[close], tgt[close]
        if np.ptp(x) >= _APART:
            a, b = np.polyfit(x, y, 1)
            clock = Clock(float(a), float(b))
        else:
            clock = Clock(clock.slope, float(np.median(y - clock.slope * x)))
    return clock


def spans(times: Times, sizes: int) -> list[tuple[Times, Times]]:
    """Return the times (n - size + 1,) of the beginnings and of the ends of windows, for each size from 1 on.

    times: (n, 2), of the sentences.
    """
    begin, end = times[:, 0] - _SLACK, times[:, 1] + _SLACK
    found = [(begin, end)]
    for size in range(2, min(sizes, len(times)) + 1):
        found.append((begin[: len(begin) - size + 1], np.maximum(found[-1][1][:-1], end[size - 1 :])))
    return found


def apart(src: tuple[Times, Times], tgt: tuple[Times, Times]) -> NDArray[np.float32]:
    """Return the share of the time of two runs of sentences that they do not have in common, from 0 to 1."""
    shared = np.minimum(src[1], tgt[1]) - np.maximum(src[0], tgt[0])
    whole = np.maximum(src[1], tgt[1]) - np.minimum(src[0], tgt[0])
    return (1 - np.maximum(shared, 0) / whole).astype(np.float32)


def by_time(src: Times, tgt: Times) -> NDArray[np.int64]:
    """Return, (n + m + 1,), the target sentences among the first 0, 1, ... n + m sentences of both by their middles."""
    middles = [np.maximum.accumulate(side.mean(axis=1)) for side in (src, tgt)]
    order = np.argsort(np.concatenate(middles), kind="stable")
    return np.append(0, np.cumsum(order >= len(src)))
