"""`bitextmine.mine` as a function: what the command ``mine`` does."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from bitextmine.distributed.options import ExecutorKeywords
from bitextmine.mining.bitext import Bitext
from bitextmine.mining.options import split_options
from bitextmine.mining.run import mine_texts
from bitextmine.mining.texts import text_of

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["MiningKeywords", "mine"]


class MiningKeywords(ExecutorKeywords, total=False):
    """The keywords of `mine`: the fields of `MiningOptions` and of `WorkOptions`, where each is told about."""

    k: int
    margin: str
    retrieval: str
    threshold: float | str | None
    fpr: float
    gold: str | os.PathLike[str] | None
    rescore: bool | None
    clean: bool
    dedup: str
    duplicates: str
    search: str
    device: str
    memory: int | str | None
    batch_tokens: int | None
    force: bool
    cache: str | os.PathLike[str] | None
    wait: bool
    errors: str


def mine(
    src: Iterable[str] | str | os.PathLike[str],
    tgt: Iterable[str] | str | os.PathLike[str],
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "default",
    **options: Unpack[MiningKeywords],
) -> Bitext:
    """Find the sentence pairs in two texts, as the command ``mine`` does.

    src, tgt: each the path of a corpus (one sentence per line, plain or .gz, .bz2, .xz, .zst), or the lines themselves.
    Lines are embedded in memory and leave no file behind. Embeddings of corpora lie beside them, as the command puts
    them, and are taken up again; a long search leaves a checkpoint there, which the result's ``discard_checkpoint()``
    removes.

    src_lang, tgt_lang: codes of the languages, for the signature; of a corpus the suffix of its name tells. model: an
    encoder of `load_encoder`, or what that takes.

    Options (`mine.options.MiningOptions`, `WorkOptions`), with their defaults: k=4 neighbours per line;
    margin="ratio", "distance" or "absolute"; retrieval="max", "matching", "intersect", "union", "forward" or
    "backward"; threshold="auto", "none", "precision=0.95" or a number; fpr=0.01, the false-positive rate that "auto"
    aims at; gold=None, a file of known pairs for "auto"; rescore=None, whether the score is the log odds that the
    pair is a translation (None: where the encoder has a scorer, k is 2 or more and the margin the ratio), or else the
    margin; dedup="exact", "near" or "none"; duplicates="first" or "all"; search="auto", "exact" or "index";
    device="auto"; memory=None, for the search: bytes, or "2G"; batch_tokens=None, subword pieces encoded together;
    force=False, whether to embed again what is up to date; cache=None, a folder for embeddings, instead of beside the
    corpora; wait=True, whether to wait for an embedding that another process is writing; errors="strict" or
    "replace", for invalid UTF-8 in a corpus or in gold. A cluster that embeds and
    searches is named by the keywords of `bitextmine.distributed.options.ExecutorKeywords`.

    The result has a length, iterates over pairs (score, src_line, tgt_line, src, tgt; line numbers from 1; best first),
    gives the best with ``[0]``, and has ``to_frame()``, ``write(path)``, ``threshold``, ``signature`` and ``notes``.

    Raises BitextmineError for what the command refuses, UsageError, one of them, for a value of the wrong type or out
    of range, TypeError for an unknown option.

    >>> en = ["Good morning.", "The train to Paris leaves at noon.", "I do not eat meat."]
    >>> fr = ["Je ne mange pas de viande.", "Bonjour.", "Le train pour Paris part à midi."]
    >>> found = mine(en, fr, src_lang="en", tgt_lang="fr", threshold="none")
    >>> for pair in sorted(found, key=lambda pair: pair.src_line):
    ...     print(pair.src_line, pair.tgt_line, pair.src, pair.tgt, sep=" | ")
    1 | 2 | Good morning. | Bonjour.
    2 | 3 | The train to Paris leaves at noon. | Le train pour Paris part à midi.
    3 | 1 | I do not eat meat. | Je ne mange pas de viande.
    >>> found.to_frame().columns.tolist()
    ['score', 'src_line', 'tgt_line', 'src', 'tgt']
    """
    mining, work = split_options(options)
    source, target = text_of(src, "src", src_lang, work.errors), text_of(tgt, "tgt", tgt_lang, work.errors)
    return mine_texts(source, target, mining, work, model=model)
