"""The kinds of index that have a name; `bitextmine --help` reads them, so nothing heavy is imported here. What each
stands for is in `faiss_index.factory_string`.
"""

from __future__ import annotations

__all__ = ["KINDS"]

KINDS = ("auto", "flat", "ivf", "pq", "hnsw")
