"""Names of the kinds of index (`faiss_index.factory_string`); loads nothing heavy, for `bitextmine --help`."""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = ("auto", "flat", "ivf", "pq", "hnsw")
