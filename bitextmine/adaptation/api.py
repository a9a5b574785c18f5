"""`bitextmine.adapt` as a function: what the command ``adapt`` does."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bitextmine.adaptation.options import AdaptOptions
from bitextmine.adaptation.piles import piles_of, read_golds
from bitextmine.adaptation.run import Adapted, adapt_piles
from bitextmine.errors import UsageError
from bitextmine.mining.options import WorkOptions
from bitextmine.mining.texts import FileText, text_of

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
    """Make an encoder that knows a text better, out of that text alone, as the command ``adapt`` does.

    corpora: pairs of paths, (source, target), whose names tell their languages (news.en, news.de.gz); each pair is
    mined. out: the model folder to make. model: the encoder to begin with, one of `bitextmine train` or in the package.
    error_rate: the share of wrong pairs, as estimated, among those that are trained on. rounds: at most so many. gold:
    a file of known pairs for each pair of corpora, for the log alone. k, seed: see `AdaptOptions`; device, memory,
    batch_tokens, errors: see `mine.options.WorkOptions`.

    The result has ``folder``, ``best`` (the round that the encoder is from) and ``rounds``, a dict for each. A killed
    run goes on when it is called again.

    Raises BitextmineError for what the command refuses, among it corpora that the encoder learns nothing from: no model
    is written then. UsageError, one of them, for a value of the wrong type or out of range.
    """
    options = AdaptOptions(error_rate=error_rate, rounds=rounds, k=k, seed=seed)
    work = WorkOptions(device=device, memory=memory, batch_tokens=batch_tokens, errors=errors)  # type: ignore[arg-type]
    pairs = []
    for number, pair in enumerate(corpora, 1):
        if isinstance(pair, (str, os.PathLike)) or len(pair) != 2:
            raise UsageError(f"corpora: pair {number}: expected two paths, found {pair!r}")
        texts = [text_of(path, name, None, errors) for path, name in zip(pair, ("src", "tgt"), strict=True)]
        for text in texts:
            if not isinstance(text, FileText):
                raise UsageError(f"corpora: pair {number}: expected the paths of two corpora, found lines")
        pairs.append((texts[0], texts[1]))
    piles = piles_of(pairs)  # type: ignore[arg-type]
    return adapt_piles(piles, out, options, work, model=model, gold=read_golds(gold, piles, errors))
