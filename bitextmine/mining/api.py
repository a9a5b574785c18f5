"""`bitextmine.mine` as a function: what the command ``mine`` does."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from bitextmine.distributed.ray import ExecutorKeywords
from bitextmine.mining.bitext import Bitext
from bitextmine.mining.options import split_options
from bitextmine.mining.run import mine_texts
from bitextmine.mining.texts import text_of

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder


class MiningKeywords(ExecutorKeywords, total=False):
    """The keywords of `mine`: the fields of `MiningOptions`, `Run` and `WorkOptions`, which explain them."""

    k: int
    margin: str
    retrieval: str
    threshold: float | str | None
    gold: str | os.PathLike[str] | None
    rescore: bool | None
    clean: bool
    dedup: str
    duplicates: str
    search: str
    device: str
    memory: int | str | None
    threads: int | None
    show_progress: bool | None
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

    Lines in memory are embedded there and leave no file behind. Embeddings of corpora in files lie beside them, as the
    command puts them, and are used again. A long search leaves a checkpoint there, which the result's
    ``discard_checkpoint()`` removes.

    Args:
        src: the path of a corpus (one sentence per line, plain or .gz, .bz2, .xz, .zst), or the lines themselves.
        tgt: the same in the other language.
        src_lang: the language, for the signature and for cleaning; the suffix of a corpus tells it.
        tgt_lang: the same for the target.
        model: an encoder, or the name of one for `load_encoder`.
        options: the fields of `MiningOptions` (with defaults k=4, margin="ratio", retrieval="max", threshold="auto",
            gold=None, rescore=None, clean=True, dedup="exact", duplicates="first"), of `Run` (device="auto",
            memory=None, threads=None, batch_tokens=None, errors="strict", show_progress=None) and of `WorkOptions`
            (search="auto", force=False, cache=None, wait=True); a cluster is
            named by the keywords of `bitextmine.distributed.ray.ExecutorKeywords`.

    Returns:
        The pairs, best first: a `Bitext`, which has a length, iterates over (score, src_line, tgt_line, src, tgt) with
        line numbers from 1, and has ``to_frame()``, ``write(path)``, ``threshold``, ``signature`` and ``notes``.

    Raises:
        BitextmineError: for whatever the command refuses.
        UsageError: a value has the wrong type or is out of range.
        TypeError: an option is unknown.

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
    errors = work.run.errors
    source, target = text_of(src, "src", src_lang, errors), text_of(tgt, "tgt", tgt_lang, errors)
    return mine_texts(source, target, mining, work, model=model)
