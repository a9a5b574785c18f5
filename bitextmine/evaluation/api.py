"""`bitextmine.evaluate_retrieval`: P@1, as the command ``evaluate retrieval`` measures it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bitextmine.evaluation import retrieval
from bitextmine.evaluation.bench import RankingOptions
from bitextmine.evaluation.precision import RetrievalReport

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["evaluate_retrieval"]


def evaluate_retrieval(
    queries: Mapping[str, Sequence[str]] | str | os.PathLike[str],
    distractors: Mapping[str, Iterable[str]] | str | os.PathLike[str] | None = None,
    *,
    pairs: str = "all",
    pivot: str | None = "en",
    model: str | os.PathLike[str] | Encoder = "default",
    k: int = 4,
    csls: int = 10,
    candidates: int = 10,
    rescore: bool = False,
    device: str = "auto",
    memory: int | str | None = None,
) -> RetrievalReport:
    """P@1, how often the best sentence of a pool is the translation: by cosine, ratio margin and CSLS, with 95%
    intervals, as the command ``evaluate retrieval`` does.

    queries: for each language a list of sentences, row i of each a translation of row i of the others; or the TSV file
    of these, with a header of languages. distractors: for each language further sentences for its pool, which translate
    none of the queries; or a folder of ``distractors.LANG.txt`` files. pairs: directions, as "en-fr,fr-en"; "all": to
    and from `pivot` (the first language for "en" where there is no English). k, csls: neighbours of the ratio margin
    and of CSLS. candidates: nearest by cosine that these choose among. rescore: measure the scorer of `mine` as well.
    model: an encoder of `load_encoder`, or what that takes.

    The report has results (src, tgt, measure, p_at_1, low, high, correct, queries, pool; shares from 0 to 1),
    ``to_frame()``, ``to_dict()``, ``to_table()``, signature and notes. Nothing is left on disk.

    memory: bytes that each search may take, or text such as "2G" (default: half of what is free).

    Raises BitextmineError for lists of different lengths, an empty sentence, one that is no text, and a direction that
    is not there; UsageError, one of them, for an argument of the wrong type.

    >>> queries = {"en": ["Good morning.", "I do not eat meat."], "fr": ["Bonjour.", "Je ne mange pas de viande."]}
    >>> report = evaluate_retrieval(queries, {"fr": ["Le train pour Paris part à midi."]}, pairs="en-fr")
    >>> report.to_frame()[["measure", "p_at_1", "queries", "pool"]].to_dict("list")
    {'measure': ['cosine', 'ratio-4', 'csls-10'], 'p_at_1': [1.0, 1.0, 1.0], 'queries': [2, 2, 2], 'pool': [3, 3, 3]}
    """
    ranking = RankingOptions(k, csls, candidates, rescore)
    return retrieval.evaluate_retrieval(
        queries, distractors, ranking, pairs=pairs, pivot=pivot, model=model, device=device, memory=memory
    )
