"""The clocks of two subtitle files: the line from the times of one to those of the other.

Files for copies of one film begin with an offset, and run apart where one was made for 25 frames a second and the other
for 23.976. Links that the vectors find show the line, though some of them are wrong: of the lines through one or two
links the one that most links lie on is taken (Fischler and Bolles 1981, "Random sample consensus"), with links evenly
spaced in the place of random ones. Where advertisements stand in one copy the offset changes: before and behind the
links on that line, other lines of its slope are looked for.
"""

from __future__ import annotations

from itertools import pairwise
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
# The share of the links that must lie on the line, and their number; so many in a row, half of them on it, will do.
_SHARE, _FEWEST, _MANY = 1 / 3, 3, 20
_FEWEST_AFTER_CHANGE = 8
# Added to both ends of a sentence's time, in seconds: that of a short one hardly overlaps otherwise.
_SLACK = 0.5


class Clock(NamedTuple):
    """The time in the target of each time in the source: slope * time + offset, in seconds.

    Attributes:
        slope: of all lines.
        offsets: of each line, (lines,).
        changes: the times in the source from which on the next line holds, (lines - 1,).
    """

    slope: float
    offsets: Times
    changes: Times

    def of(self, times: Times) -> Times:
        """Return the times in the target, both of a sentence by the line of its beginning: (n,) or (n, 2)."""
        line = np.searchsorted(self.changes, times if times.ndim == 1 else times[:, :1], side="right")
        return self.slope * times + self.offsets[line]


def fit_clock(src: Times, tgt: Times) -> Clock | None:
    """Return the lines from the times (links,) of links in the source to theirs in the target.

    None if fewer than three links, or less than a third of them, lie on one.
    """
    if len(src) < _FEWEST:
        return None
    slope, offset = _line(src, tgt)
    first, last, count = _stretch(np.abs(slope * src + offset - tgt) <= _CLOSE)
    if count < max(_FEWEST, _SHARE * len(src)) and (count < _MANY or 2 * count < last - first):
        return None
    x, y = src[first:last], tgt[first:last]
    for _ in range(2):
        close = np.abs(slope * x + offset - y) <= _CLOSE
        if np.ptp(x[close]) >= _APART:
            slope, offset = map(float, np.polyfit(x[close], y[close], 1))
        else:
            offset = float(np.median(y[close] - slope * x[close]))
    offsets = tgt - slope * src
    lines = [*_other_lines(offsets, 0, first), (first, last, offset), *_other_lines(offsets, last, len(src))]
    changes = [(src[before[1] - 1] + src[after[0]]) / 2 for before, after in pairwise(lines)]
    return Clock(slope, np.array([line[2] for line in lines]), np.array(changes))


def _line(src: Times, tgt: Times) -> tuple[float, float]:
    """Return slope and offset of the line, through one or two links, that most links lie on."""
    tried = np.unique(np.linspace(0, len(src) - 1, min(len(src), _TRIED)).astype(np.int64))
    x, y = src[tried], tgt[tried]
    slopes = np.array([1.0, *_RATES, *(1 / rate for rate in _RATES)])
    first, second = np.triu_indices(len(tried), 1)
    apart = np.abs(x[second] - x[first]) >= _APART
    first, second = first[apart], second[apart]
    through = (y[second] - y[first]) / (x[second] - x[first])
    likely = (through > _SLOPES[0]) & (through < _SLOPES[1])
    # The slopes of known rates first: of lines with as many links the first is taken.
    slope = np.concatenate([np.repeat(slopes, len(tried)), through[likely]])
    offset = np.concatenate([np.tile(y, len(slopes)), y[first][likely]])
    offset -= slope * np.concatenate([np.tile(x, len(slopes)), x[first][likely]])
    counts = [
        np.count_nonzero(np.abs(a * src + b - tgt) <= _CLOSE) for a, b in zip(slope, offset, strict=True)
    ]
    best = int(np.argmax(counts))
    return float(slope[best]), float(offset[best])


def _stretch(close: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Return the first and the end of the links with the most close ones above the share, and the number of these."""
    sums = np.append(0, np.cumsum(close - _SHARE))
    last = int(np.argmax(sums - np.minimum.accumulate(sums)))
    first = int(np.argmin(sums[: last + 1]))
    return first, last, int(np.count_nonzero(close[first:last]))


def _other_lines(offsets: Times, first: int, last: int) -> list[tuple[int, int, float]]:
    """Return the first link, the end and the offset of each line through some of the links `first` .. `last`."""
    if last - first < _FEWEST_AFTER_CHANGE:
        return []
    sorted_offsets = np.sort(offsets[first:last])
    ends = np.searchsorted(sorted_offsets, sorted_offsets + 2 * _CLOSE, side="right")
    most = int(np.argmax(ends - np.arange(len(sorted_offsets))))
    offset = float(np.median(sorted_offsets[most : ends[most]]))
    begin, end, count = _stretch(np.abs(offsets[first:last] - offset) <= _CLOSE)
    if count < _FEWEST_AFTER_CHANGE or 2 * count < end - begin:
        return []
    begin, end = first + begin, first + end
    return [*_other_lines(offsets, first, begin), (begin, end, offset), *_other_lines(offsets, end, last)]


def spans(times: Times, sizes: int) -> list[tuple[Times, Times]]:
    """Return the times (n - size + 1,) of the beginnings and of the ends of windows, for each size from 1 on.

    times: (n, 2), of the sentences.
    """
    begin, end = times[:, 0] - _SLACK, times[:, 1] + _SLACK
    windows = [(begin, end)]
    for size in range(2, min(sizes, len(times)) + 1):
        windows.append((begin[: len(begin) - size + 1], np.maximum(windows[-1][1][:-1], end[size - 1 :])))
    return windows


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
