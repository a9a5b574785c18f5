"""What mining will take, before it is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from bitextmine.distributed.planned import plan_mining, rates_of
from bitextmine.encoder import load_encoder
from bitextmine.mining.neighbours import exact_up_to
from bitextmine.mining.options import MiningOptions, SearchWay, WorkOptions
from bitextmine.mining.run import check_two
from bitextmine.mining.texts import FileText

__all__ = ["mining_plans"]


def mining_plans(
    pairs: Sequence[tuple[FileText, FileText]],
    mining: MiningOptions,
    work: WorkOptions,
    model: str | os.PathLike[str] = "default",
    assumed: Iterable[tuple[str, float]] = (),
) -> list[str]:
    """A plan for each two corpora, as tables. Reads the corpora, to count their lines, and writes nothing.

    Raises BitextmineError for a corpus that cannot be read or is empty, UsageError for a rate that is none.
    """
    encoder = load_encoder(model, work.device_here)
    rates = rates_of(encoder, assumed, work.cluster)
    exact = {SearchWay.EXACT: None, SearchWay.INDEX: 0}.get(work.search, exact_up_to(work.device_here))
    k = mining.k + (1 if mining.estimates_noise else 0)
    plans = []
    for src, tgt in pairs:
        check_two(src, tgt)
        plan = plan_mining(
            src.path, tgt.path, encoder, rates, k, exact=exact, cache=work.cache, cluster=work.cluster
        )
        plans.append(plan)
    return plans
