"""bitextmine: find translated sentence pairs, clean parallel corpora, train encoders.

`split`, `mine`, `align`, `score`, `filter`, `report`, `train`, `adapt`, `export`, `load_encoder`, `knn`,
`evaluate_retrieval` and `evaluate_sts` do what the commands do; help() of each tells how. They take the objects that
the commands make of their options (`MiningOptions`, `TrainOptions`, ..., `Run`), or the fields of these as keywords.
None of them is imported, nor NumPy or torch, before it is used.
"""

import importlib
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.version import __version__

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
    "knn": "bitextmine.search.exact",
    "load_encoder": "bitextmine.encoder",
    "FilteredPairs": "bitextmine.scoring.api",
    "export": "bitextmine.exporting:export_encoder",
    "filter": "bitextmine.scoring.api",
    "report": "bitextmine.reporting:write_report",
    "score": "bitextmine.scoring.api",
    "train": "bitextmine.training.api",
    "Sentence": "bitextmine.documents.split",
    "split": "bitextmine.documents.split",
}


__all__ = ["BitextmineError", "UsageError", "__version__"]
__all__ += sorted(_LAZY)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'bitextmine' has no attribute {name!r}")
    module, _, there = _LAZY[name].partition(":")
    value = getattr(importlib.import_module(module), there or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
