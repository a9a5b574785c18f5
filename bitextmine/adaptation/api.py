"""The function `bitextmine.adapt`, which does the work of the command ``adapt``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bitextmine.adaptation.options import AdaptOptions
from bitextmine.adaptation.piles import piles_of, read_golds
from bitextmine.adaptation.run import Adapted, adapt_piles
from bitextmine.errors import UsageError
from bitextmine.mining.texts import text_of
from bitextmine.run import Run

__all__ = ["Adapted", "adapt"]

Corpora = tuple[str | os.PathLike[str], str | os.PathLike[str]]


def adapt(
    corpora: Sequence[Corpora],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "default",
    error_rate: float = 0.05,
    rounds: int = 4,
    gold: Sequence[str | os.PathLike[str]] = (),
    k: int = 4,
    seed: int = 1,
    device: str = "auto",
    memory: int | str | None = None,
    batch_tokens: int | None = None,
    errors: str = "strict",
) -> Adapted:
    """Adapt an encoder to text, without known pairs.

    Calling this again with the same arguments resumes an interrupted run.

    Args:
        corpora: pairs of paths, (source, target), whose names tell their languages (news.en, news.de.gz).
        out: the model folder to make.
        model: the encoder to start from, made by `bitextmine train` or packaged.
        error_rate: estimated share of wrong pairs among those trained on.
        rounds: maximum number of rounds.
        gold: a file of known pairs for each pair of corpora, for the log alone.
        k: neighbours per line for the margin.
        seed: random seed.
        device: see `Run`.
        memory: see `Run`.
        batch_tokens: see `Run`.
        errors: see `Run`.

    Returns:
        The folder, the round that the encoder comes from, and a dict per round.

    Raises:
        BitextmineError: a corpus or encoder cannot be used, or no round is better: no model is written then.
        UsageError: a value has the wrong type or is out of range.
    """
    options = AdaptOptions(error_rate=error_rate, rounds=rounds, k=k, seed=seed)
    run = Run(device=device, memory=memory, batch_tokens=batch_tokens, errors=errors)  # type: ignore[arg-type]
    pairs = []
    for number, pair in enumerate(corpora, 1):
        if isinstance(pair, (str, os.PathLike)) or len(pair) != 2:
            raise UsageError(f"corpora: pair {number}: expected two paths, found {pair!r}")
        texts = [text_of(path, name, None, errors) for path, name in zip(pair, ("src", "tgt"), strict=True)]
        for text in texts:
            if text.path is None:
                raise UsageError(f"corpora: pair {number}: expected the paths of two corpora, found lines")
        pairs.append((texts[0], texts[1]))
    piles = piles_of(pairs)
    return adapt_piles(piles, out, options, run, model=model, gold=read_golds(gold, piles, errors))
