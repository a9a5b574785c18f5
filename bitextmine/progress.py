"""The progress bar: on stderr, and only when a person is watching."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["progress"]


def progress(total: int | None, desc: str, unit: str = "lines", disable: bool | None = None) -> Any:
    """A tqdm bar with rate and time left; call ``.update(n)`` on it and ``.close()``, or use ``with``.

    ``disable=None`` shows it only when stderr is a terminal, so that pipelines and logs stay clean.
    """
    from tqdm import tqdm

    if sys.stderr is None:
        disable = True
    return tqdm(
        total=total,
        desc=desc,
        unit=f" {unit}",
        disable=disable,
        file=sys.stderr,
        dynamic_ncols=True,
        mininterval=0.3,
        smoothing=0.1,
    )
