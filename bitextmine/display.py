"""Results in notebooks: a table for a frame."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

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
