"""The piles of text that an encoder is adapted to: pairs of corpora."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.files.storage import same_place
from bitextmine.mining.gold import Gold, check_line_numbers, read_gold
from bitextmine.mining.texts import Named, Pair, find_pairs


@dataclass(frozen=True)
class Piles:
    """Two corpora in two languages, between which there may be translations."""

    src: Corpus
    tgt: Corpus

    @property
    def langs(self) -> tuple[str, str]:
        """The two languages."""
        return self.src.lang, self.tgt.lang

    def __str__(self) -> str:
        return f"{self.src.name} x {self.tgt.name}"


def find_piles(
    corpora: Sequence[str | os.PathLike[str]],
    src: Named,
    tgt: Named,
    directory: str | os.PathLike[str] = ".",
    names: Sequence[str] = (),
    errors: str = "strict",
) -> list[Piles]:
    """Return each source with each target in another language (`find_pairs`), for each name.

    Raises:
        UsageError: the arguments contradict each other, or name one language only.
        BitextmineError: no corpus fits, or more than one.
    """
    wanted: Sequence[str | None] = names or [None]
    found = [pair for name in wanted for pair in find_pairs(corpora, src, tgt, directory, name, errors)]
    return piles_of([pair for pair in found if pair[0].lang != pair[1].lang])


def piles_of(pairs: Sequence[Pair]) -> list[Piles]:
    """Return the distinct pairs of corpora; UsageError for none, for one language, and for a corpus with itself."""
    piles = []
    for src, tgt in pairs:
        assert src.path is not None
        assert tgt.path is not None
        if same_place(src.path) == same_place(tgt.path):
            raise UsageError(f"{src.path}: is both the source and the target corpus; adapting needs two")
        if src.lang == tgt.lang:
            raise UsageError(
                f"{src.path} and {tgt.path} are both in '{src.lang}'; adapting needs two languages"
            )
        if (one := Piles(src, tgt)) not in piles:
            piles.append(one)
    if not piles:
        raise UsageError("both corpora are in the same language; adapting needs two")
    for one in piles:
        for text in (one.src, one.tgt):
            if text.path is not None and not text.path.is_file():
                raise BitextmineError(f"{text.path}: no such file")
    return piles


def read_golds(
    gold: Sequence[str | os.PathLike[str]], piles: Sequence[Piles], errors: str = "strict"
) -> list[Gold]:
    """Read a file of known pairs for each of the piles, in order, if any are given; UsageError for another number."""
    if gold and len(gold) != len(piles):
        raise UsageError(
            f"--gold is given {len(gold)} times for {len(piles)} pairs of corpora ({'; '.join(map(str, piles))}): give "
            "one for each, in this order"
        )
    return [read_gold(path, errors) for path in gold]


def check_gold(gold: Gold, piles: Piles) -> None:
    """Raise BitextmineError for line numbers beyond the piles."""
    for known, text in ((gold.src, piles.src), (gold.tgt, piles.tgt)):
        check_line_numbers("--gold", known, text.name, len(text))
