"""bitextmine: sentence pairs out of two piles of text.

`load_encoder`, `mine`, `adapt`, `score`, `knn`, `evaluate_retrieval` and `evaluate_sts` do what the commands do; help()
of each tells how. None of them is imported, nor NumPy or torch, before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.version import __version__

if TYPE_CHECKING:
    from bitextmine.adapt.api import adapt
    from bitextmine.clean.api import score
    from bitextmine.encoder import Encoder, load_encoder
    from bitextmine.evaluate.api import evaluate_retrieval
    from bitextmine.evaluate.precision import RetrievalReport
    from bitextmine.evaluate.sts import StsReport, evaluate_sts
    from bitextmine.mine.api import mine
    from bitextmine.mine.bitext import Bitext
    from bitextmine.search.knn import knn
    from bitextmine.search.neighbours import Neighbours

__all__ = [
    "Bitext",
    "BitextmineError",
    "Encoder",
    "Neighbours",
    "RetrievalReport",
    "StsReport",
    "UsageError",
    "__version__",
    "adapt",
    "evaluate_retrieval",
    "evaluate_sts",
    "knn",
    "load_encoder",
    "mine",
    "score",
]

# Where each name is looked up when it is first used.
_LAZY = {
    "Bitext": "bitextmine.mine.bitext",
    "Encoder": "bitextmine.encoder",
    "Neighbours": "bitextmine.search.neighbours",
    "RetrievalReport": "bitextmine.evaluate.precision",
    "StsReport": "bitextmine.evaluate.sts",
    "evaluate_retrieval": "bitextmine.evaluate.api",
    "evaluate_sts": "bitextmine.evaluate.sts",
    "knn": "bitextmine.search.knn",
    "load_encoder": "bitextmine.encoder",
    "score": "bitextmine.clean.api",
}


def __getattr__(name: str) -> Any:
    if name in ("adapt", "mine"):  # the package of that name, which does it when it is called
        return importlib.import_module(f"bitextmine.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'bitextmine' has no attribute {name!r}")
    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
