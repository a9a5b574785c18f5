"""The options of an index and the names of its kinds; loads nothing heavy, for `bitextmine --help`."""

from dataclasses import dataclass

KINDS = ("auto", "flat", "ivf", "pq", "hnsw")


@dataclass(frozen=True)
class IndexOptions:
    """How an index is built, and how its recall is measured.

    Attributes:
        kind: one of KINDS or a FAISS factory string (see `factory_string`).
        recall_sample: rows to measure recall on.
        recall_target: recall@1 to reach.
        k: neighbours that the recall counts.
        seed: for training rows and samples.
        force: build again, and write over files of other programs.
        shard_rows: rows per shard (None: as many as fit).
    """

    kind: str = "auto"
    recall_sample: int = 1000
    recall_target: float = 0.99
    k: int = 4
    seed: int = 1
    force: bool = False
    shard_rows: int | None = None
