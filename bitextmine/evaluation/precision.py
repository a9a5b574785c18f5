"""P@1 as a report: a share with its interval per direction and measure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, counted, tab_separated
from bitextmine.evaluation.intervals import wilson
from bitextmine.evaluation.ranking import Ranked

if TYPE_CHECKING:
    import pandas

__all__ = ["RetrievalReport", "RetrievalResult", "results_of"]


@dataclass(frozen=True)
class RetrievalResult:
    """P@1 of one direction by one measure: shares from 0 to 1, with Wilson's 95% interval."""

    src: str
    tgt: str
    measure: str
    p_at_1: float
    low: float
    high: float
    correct: int
    queries: int
    pool: int


@dataclass(frozen=True)
class RetrievalReport:
    """What `evaluate_retrieval` found."""

    results: tuple[RetrievalResult, ...]
    signature: str
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<RetrievalReport: {counted(len(self.results), 'result')}, {self.signature}>"

    def to_table(self, tabs: bool = False) -> str:
        """The numbers in percent. Aligned: a row per direction, a column per measure. With `tabs`: a row per
        number, all of it, without the remarks."""
        if tabs:
            return tab_separated(
                ["direction", "measure", "P@1", "low", "high", "correct", "queries", "pool"],
                [
                    [
                        f"{r.src}-{r.tgt}",
                        r.measure,
                        *(f"{100 * x:.2f}" for x in (r.p_at_1, r.low, r.high)),
                        *(str(x) for x in (r.correct, r.queries, r.pool)),
                    ]
                    for r in self.results
                ],
            )
        measures = list(dict.fromkeys(r.measure for r in self.results))
        rows: dict[tuple[str, str], list[str]] = {}
        for r in self.results:
            cells = rows.setdefault((r.src, r.tgt), [f"{r.src}-{r.tgt}", f"{r.queries:,}", f"{r.pool:,}"])
            cells.append(f"{100 * r.p_at_1:.2f} [{100 * r.low:.2f}, {100 * r.high:.2f}]")
        table = aligned(["P@1", "queries", "pool", *measures], list(rows.values()))
        return "\n".join([table, *self.notes, self.signature])

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {"kind": "retrieval evaluation", **asdict(self)}

    def to_frame(self) -> pandas.DataFrame:
        """A row per direction and measure, with the fields of `RetrievalResult` as columns, for notebooks; shares
        from 0 to 1."""
        import pandas

        return pandas.DataFrame([asdict(r) for r in self.results])


def results_of(
    src: str, tgt: str, ranked: Ranked, gold: NDArray[np.int64], pool: int, k: int, csls: int
) -> list[RetrievalResult]:
    """P@1 by each measure of a ranking. gold (q,): the right row of the pool for each query; pool: how many rows it
    has; k, csls: neighbours that the measures looked at, for their names."""
    rows = []
    for measure, found in (
        ("cosine", ranked.cosine),
        (f"ratio-{k}", ranked.ratio),
        (f"csls-{csls}", ranked.csls),
        (f"rescored-{k}", ranked.rescored),
    ):
        if found is None:
            continue
        correct = int((found == gold).sum())
        low, high = wilson(correct, len(gold))
        rows.append(
            RetrievalResult(src, tgt, measure, correct / len(gold), low, high, correct, len(gold), pool)
        )
    return rows
