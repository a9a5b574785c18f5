"""The piles of text that an encoder is adapted to: pairs of corpora."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.files.storage import same_place
from bitextmine.mining.gold import Gold, check_line_numbers, read_gold
from bitextmine.mining.texts import find_text


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
    src: Sequence[str],
    tgt: Sequence[str],
    directory: str | os.PathLike[str] = ".",
    names: Sequence[str] = (),
    src_files: Sequence[str | os.PathLike[str]] = (),
    tgt_files: Sequence[str | os.PathLike[str]] = (),
    errors: str = "strict",
) -> list[Piles]:
    """Return the piles that a command line names.

    Each source language with each target language, for each name; or files, the first with the first and so on.

    Raises:
        UsageError: a language has no partner, or files do not go together.
        BitextmineError: no corpus fits, or more than one.
    """
    if len(src_files) != len(tgt_files):
        raise UsageError(
            f"--src-file is given {len(src_files)} times, --tgt-file {len(tgt_files)} times: give them in pairs"
        )
    if src_files:
        if names or len(src) > 1 or len(tgt) > 1:
            raise UsageError("--src-file and --tgt-file go with one --src, one --tgt and no --name at most")
        lang_src, lang_tgt = (langs[0] if langs else None for langs in (src, tgt))
        pairs = [
            (find_text("source", lang_src, a, errors=errors), find_text("target", lang_tgt, b, errors=errors))
            for a, b in zip(src_files, tgt_files, strict=True)
        ]
        return piles_of(pairs)
    if not src or not tgt:
        raise UsageError("give --src and --tgt, or --src-file and --tgt-file")
    wanted: Sequence[str | None] = names or [None]
    return piles_of(
        [
            (
                find_text("source", one, None, directory, name, errors),
                find_text("target", other, None, directory, name, errors),
            )
            for name, one, other in itertools.product(wanted, dict.fromkeys(src), dict.fromkeys(tgt))
            if one != other
        ]
    )


def piles_of(pairs: Sequence[tuple[Corpus, Corpus]]) -> list[Piles]:
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
        raise UsageError("--src and --tgt name the same language; adapting needs two")
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
