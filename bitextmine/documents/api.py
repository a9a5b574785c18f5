"""`split` in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from bitextmine.arguments import a_path, one_of
from bitextmine.documents.options import Kind, SplitOptions
from bitextmine.documents.run import Sentence, split_all
from bitextmine.run import Run


def split(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    lang: str | None = None,
    *,
    by_language: bool = False,
    kind: str | None = None,
    text_field: str = "text",
    join: str = "sentence",
    normalize: bool = True,
    run: Run | None = None,
) -> Iterator[Sentence]:
    """Yield the sentences of documents, with their origin; does what `bitextmine split` does.

    Args:
        inputs: files or folders: plain text, HTML, WARC, JSON Lines, Parquet, also compressed.
        lang: their language (default: as the names tell, like book.en.txt). With `by_language`, the one to keep.
        by_language: identify the language of each document.
        kind: ``text``, ``html``, ``warc``, ``jsonl`` or ``parquet`` (default: by suffix, then by content).
        text_field: the field of JSON Lines or column of Parquet that holds the text.
        join: what to yield, each ``sentence`` or each ``paragraph``.
        normalize: remove markup, mojibake, control and zero-width characters and runs of spaces, and apply NFC.
        run: treatment of invalid UTF-8, and progress.

    Raises:
        UsageError: an argument has a wrong value.
        BitextmineError: while iterating: an input cannot be read; the language of a document is unknown.
    """
    one_of("join", join, ("sentence", "paragraph"))
    if kind is not None:
        one_of("kind", kind, tuple(Kind))
    if isinstance(inputs, (str, os.PathLike)) or not isinstance(inputs, Iterable):
        inputs = [inputs]
    several = [a_path("inputs", given) for given in inputs]
    langs = () if lang is None else (lang,)
    options = SplitOptions(langs, by_language, Kind(kind) if kind else None, text_field, join, normalize)
    return split_all(several, options, run or Run())
