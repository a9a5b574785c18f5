"""bitextmine: sentence pairs out of two piles of text.

`split`, `mine`, `align`, `score`, `filter`, `report`, `train`, `adapt`, `export`, `load_encoder`, `knn`,
`evaluate_retrieval` and `evaluate_sts` do what the commands do; help() of each tells how. They take the objects that
the commands make of their options (`MiningOptions`, `TrainOptions`, ..., `Run`), or the fields of these as keywords.
None of them is imported, nor NumPy or torch, before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.version import __version__

if TYPE_CHECKING:
    from bitextmine.adaptation.adapt import adapt
    from bitextmine.adaptation.options import AdaptOptions
    from bitextmine.alignment.align import align
    from bitextmine.alignment.options import AlignOptions
    from bitextmine.documents.kinds import SplitOptions
    from bitextmine.documents.split import Sentence, split
    from bitextmine.encoder import Encoder, load_encoder
    from bitextmine.evaluation.ranking import RetrievalReport
    from bitextmine.evaluation.retrieval import evaluate_retrieval
    from bitextmine.evaluation.sts import StsReport, evaluate_sts
    from bitextmine.exporting.export import export_encoder as export
    from bitextmine.mining.bitext import Bitext
    from bitextmine.mining.mine import mine
    from bitextmine.mining.options import MiningOptions, WorkOptions
    from bitextmine.reporting import write_report as report
    from bitextmine.run import Run
    from bitextmine.scoring.api import FilteredPairs, filter, score
    from bitextmine.scoring.options import FilterOptions, ScoreOptions
    from bitextmine.search.knn import knn
    from bitextmine.search.neighbours import Neighbours
    from bitextmine.training.api import train
    from bitextmine.training.options import TrainOptions

__all__ = [
    "AdaptOptions",
    "AlignOptions",
    "Bitext",
    "BitextmineError",
    "Encoder",
    "FilterOptions",
    "FilteredPairs",
    "MiningOptions",
    "Neighbours",
    "RetrievalReport",
    "Run",
    "ScoreOptions",
    "Sentence",
    "SplitOptions",
    "StsReport",
    "TrainOptions",
    "UsageError",
    "WorkOptions",
    "__version__",
    "adapt",
    "align",
    "evaluate_retrieval",
    "evaluate_sts",
    "export",
    "filter",
    "knn",
    "load_encoder",
    "mine",
    "report",
    "score",
    "split",
    "train",
]

# Where each name is looked up when it is first used; after a colon, its name there.
_LAZY = {
    "AdaptOptions": "bitextmine.adaptation.options",
    "AlignOptions": "bitextmine.alignment.options",
    "FilterOptions": "bitextmine.scoring.options",
    "MiningOptions": "bitextmine.mining.options",
    "Run": "bitextmine.run",
    "ScoreOptions": "bitextmine.scoring.options",
    "SplitOptions": "bitextmine.documents.kinds",
    "TrainOptions": "bitextmine.training.options",
    "WorkOptions": "bitextmine.mining.options",
    "adapt": "bitextmine.adaptation.adapt",
    "align": "bitextmine.alignment.align",
    "mine": "bitextmine.mining.mine",
    "Bitext": "bitextmine.mining.bitext",
    "Encoder": "bitextmine.encoder",
    "Neighbours": "bitextmine.search.neighbours",
    "RetrievalReport": "bitextmine.evaluation.ranking",
    "StsReport": "bitextmine.evaluation.sts",
    "evaluate_retrieval": "bitextmine.evaluation.retrieval",
    "evaluate_sts": "bitextmine.evaluation.sts",
    "knn": "bitextmine.search.knn",
    "load_encoder": "bitextmine.encoder",
    "FilteredPairs": "bitextmine.scoring.api",
    "export": "bitextmine.exporting.export:export_encoder",
    "filter": "bitextmine.scoring.api",
    "report": "bitextmine.reporting:write_report",
    "score": "bitextmine.scoring.api",
    "train": "bitextmine.training.api",
    "Sentence": "bitextmine.documents.split",
    "split": "bitextmine.documents.split",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'bitextmine' has no attribute {name!r}")
    module, _, there = _LAZY[name].partition(":")
    found = getattr(importlib.import_module(module), there or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
