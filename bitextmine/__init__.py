"""bitextmine: sentence pairs out of two piles of text.

`split`, `load_encoder`, `mine`, `adapt`, `score`, `knn`, `evaluate_retrieval` and `evaluate_sts` do what the commands
do; help() of each tells how. None of them is imported, nor NumPy or torch, before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.version import __version__

if TYPE_CHECKING:
    from bitextmine.adaptation.run import adapt
    from bitextmine.documents.api import split
    from bitextmine.documents.run import Sentence
    from bitextmine.encoder import Encoder, load_encoder
    from bitextmine.evaluation.ranking import RetrievalReport
    from bitextmine.evaluation.retrieval import evaluate_retrieval
    from bitextmine.evaluation.sts import StsReport, evaluate_sts
    from bitextmine.mining.api import mine
    from bitextmine.mining.bitext import Bitext
    from bitextmine.scoring.api import score
    from bitextmine.search.knn import knn
    from bitextmine.search.neighbours import Neighbours

__all__ = [
    "Bitext",
    "BitextmineError",
    "Encoder",
    "Neighbours",
    "RetrievalReport",
    "Sentence",
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
    "split",
]

# Where each name is looked up when it is first used.
_LAZY = {
    "adapt": "bitextmine.adaptation.run",
    "mine": "bitextmine.mining.api",
    "Bitext": "bitextmine.mining.bitext",
    "Encoder": "bitextmine.encoder",
    "Neighbours": "bitextmine.search.neighbours",
    "RetrievalReport": "bitextmine.evaluation.ranking",
    "StsReport": "bitextmine.evaluation.sts",
    "evaluate_retrieval": "bitextmine.evaluation.retrieval",
    "evaluate_sts": "bitextmine.evaluation.sts",
    "knn": "bitextmine.search.knn",
    "load_encoder": "bitextmine.encoder",
    "score": "bitextmine.scoring.api",
    "Sentence": "bitextmine.documents.run",
    "split": "bitextmine.documents.api",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'bitextmine' has no attribute {name!r}")
    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
