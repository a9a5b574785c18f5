"""Results in notebooks: a table for a frame, and figures that need no pyplot."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from bitextmine.errors import BitextmineError

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

_ROWS = 10


class Shown:
    """A result with a frame, which a notebook shows below its description."""

    if TYPE_CHECKING:

        def to_frame(self) -> pandas.DataFrame:
            """Return the rows."""

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        more = f"<p>{len(frame) - _ROWS:,} more rows: to_frame()</p>" if len(frame) > _ROWS else ""
        return f"<p>{escape(repr(self))}</p>{frame.head(_ROWS).to_html(index=False)}{more}"


def new_figure(width: float = 6.0, height: float = 3.5) -> tuple[Figure, Any]:
    """Return a figure, which a notebook shows and `savefig` writes, and its axes.

    Raises:
        BitextmineError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BitextmineError("plot() needs matplotlib: pip install 'bitextmine[plots]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()
