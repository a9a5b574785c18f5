"""`bitextmine.align` as a function: what the command ``align`` does, for two documents."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from bitextmine.alignment.aligner import Aligner
from bitextmine.alignment.batches import align_tasks
from bitextmine.alignment.formats import AlignedDocument
from bitextmine.alignment.inputs import Part, Reader, Task
from bitextmine.alignment.run import AlignOptions
from bitextmine.documents.sources import language_of
from bitextmine.encoder import as_encoder
from bitextmine.errors import UsageError
from bitextmine.run import Run

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

Text = Iterable[str] | str | os.PathLike[str]


def align(
    src: Text,
    tgt: Text,
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "default",
    max_size: int = 6,
    presplit: bool = False,
    run: Run | None = None,
) -> AlignedDocument:
    """Align the sentences of a document with those of its translation, as the command ``align`` does.

    Args:
        src: the path of a document, or its sentences. A file that does not have one sentence per line is cut into
            sentences.
        tgt: the same in the other language.
        src_lang: the language (default: as the name tells).
        tgt_lang: the same for the target.
        model: an encoder, or the name of one for `load_encoder`.
        max_size: the most sentences in a link, of both sides together.
        presplit: take each line of a file as a sentence.
        run: device, threads, treatment of invalid UTF-8.

    Returns:
        the links in order: an `AlignedDocument`, which has a length, iterates over (score, src_lines, tgt_lines,
        src_texts, tgt_texts) with ``src`` and ``tgt``, the joined texts, and has ``to_frame()``, ``write(path)``,
        ``mean_score``, ``doubtful`` and ``signature``.

    Raises:
        UsageError: an argument has the wrong type or is out of range.
        BitextmineError: a file cannot be read.

    >>> en = ["Good morning.", "The train to Paris leaves at noon. It is late.", "I do not eat meat."]
    >>> fr = ["Bonjour.", "Le train pour Paris part à midi.", "Il est en retard.", "Je ne mange pas de viande."]
    >>> for link in align(en, fr):
    ...     print(link.src_lines, link.tgt_lines)
    [1] [1]
    [2] [2, 3]
    [3] [4]
    """
    run = run or Run()
    if type(max_size) is not int or max_size < 2:
        raise UsageError(f"max_size: expected a whole number from 2 on, found {max_size!r}")
    options = AlignOptions(max_size=max_size, presplit=presplit, src_lang=src_lang, tgt_lang=tgt_lang)
    parts = [_part(name, text) for name, text in (("src", src), ("tgt", tgt))]
    options.check(parts[0].path, parts[1].path)
    aligner = Aligner(as_encoder(model, run.device), options.settings, run.batch_tokens)
    reader = Reader((src_lang, tgt_lang), presplit, run)
    (found,) = align_tasks([Task(parts[0].name, *parts)], reader, aligner, run)
    langs = [
        given or language_of(part.path) or "" for given, part in zip((src_lang, tgt_lang), parts, strict=True)
    ]
    return replace(found, langs=(langs[0], langs[1]), signature=options.signature(aligner))


def _part(name: str, text: Text) -> Part:
    if isinstance(text, (str, os.PathLike)):
        return Part(os.fspath(text))
    lines = tuple(text)
    wrong = next((line for line in lines if not isinstance(line, str)), None)
    if wrong is not None:
        raise UsageError(
            f"{name}: expected the path of a document or its sentences, found {wrong!r} among them"
        )
    return Part(name, lines=lines)
