"""Corpora by name: ``corpus.fr`` and ``corpus.fr.gz`` are in French, and a folder may hold one of each language."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from bitextmine.errors import BitextmineError
from bitextmine.files.storage import Place, place
from bitextmine.files.streams import compression, read_blocks, strip_compression
from bitextmine.languages.codes import is_code, same_code

# Suffixes that fit the shape of a language code and never are one in practice.
_TEXT = {"txt", "text", "tsv", "csv", "json", "jsonl", "xml", "html", "toml", "yaml", "yml", "md", "log"}
NOT_LANGUAGES = _TEXT | {"npy", "npz", "faiss", "model", "part", "tmp", "bak", "lock"}


def corpus_language(path: str | os.PathLike[str], override: str | None = None, option: str = "--lang") -> str:
    """Return the language of a corpus: `override`, else the last suffix before any compression suffix.

    `option` names the option of the override, for the message. Raises BitextmineError when the name tells no
    language.
    """
    if override:
        return override
    if os.fspath(path) == "-":
        raise BitextmineError(f"<stdin>: stdin has no name to take a language from; pass {option}")
    stem = strip_compression(path)
    language = _language_suffix(stem)
    if language is None:
        found = f"'{stem.suffix}' is not a language code" if stem.suffix else "the name has no suffix"
        raise BitextmineError(
            f"{path}: no language: {found}; name it like corpus.fr (or corpus.fr.gz), or pass {option}"
        )
    return language


def _language_suffix(stem: Place) -> str | None:
    suffix = stem.suffix[1:]
    if not is_code(suffix) or suffix.lower() in NOT_LANGUAGES:
        return None
    return suffix


def find_corpus(directory: str | os.PathLike[str], lang: str, name: str | None = None) -> Place:
    """Return the one corpus of a language in a folder, without its subfolders.

    If no file has that code, a file with another code of the same language counts: fr, fra and fr-FR. `name` chooses
    among several. Of ``corpus.fr`` and ``corpus.fr.gz`` with the same text, the plain one is taken.

    Raises:
        BitextmineError: there is none, or more than one.
    """
    directory = place(directory)
    by_language = _corpora(directory)
    # The very code first: a folder may hold pt-BR and pt-PT.
    found = by_language.get(lang, [])
    if not found:
        found = [p for code, some in by_language.items() if same_code(code) == same_code(lang) for p in some]
    if not found:
        seen = ", ".join(sorted(by_language)) or "none"
        raise BitextmineError(
            f"{directory}: no corpus in language '{lang}' (no file NAME.{lang} or NAME.{lang}.gz|bz2|xz|zst); "
            f"languages seen there: {seen}"
        )
    if name is not None:
        named = [p for p in found if name in (strip_compression(p).stem, strip_compression(p).name, p.name)]
        if not named:
            seen = ", ".join(sorted({strip_compression(p).stem for p in found}))
            raise BitextmineError(
                f"{directory}: no corpus '{name}' in language '{lang}'; names seen there: {seen}"
            )
        found = [p for p in named if p.name == name] or named
    names = ", ".join(p.name for p in found)
    if len({strip_compression(p) for p in found}) > 1:
        raise BitextmineError(
            f"{directory}: {len(found)} corpora in language '{lang}': {names}; "
            f"choose one with --name, as in --name {strip_compression(found[0]).stem}"
        )
    if len(found) > 1 and not _same_bytes(found):
        raise BitextmineError(
            f"{directory}: {names} are one corpus by their names, but hold different texts; remove what is old, or "
            "name the file itself, with --src-file or --tgt-file"
        )
    return min(found, key=lambda p: bool(compression(p)))


def _same_bytes(paths: Iterable[Place]) -> bool:
    """Return True if files hold the same text once decompressed; False if one is damaged."""
    digests = set()
    for path in paths:
        digest = hashlib.sha256()
        try:
            for block in read_blocks(path):
                digest.update(block)
        except BitextmineError:
            return False
        digests.add(digest.digest())
    return len(digests) == 1


def _corpora(directory: Place) -> dict[str, list[Place]]:
    """Return the files of a folder whose names tell a language, by language, sorted."""
    by_language: dict[str, list[Place]] = {}
    try:
        found: list[Place] = [*directory.iterdir()]
        for path in sorted(found, key=os.fspath):
            language = _language_suffix(strip_compression(path))
            if language and not path.name.startswith(".") and path.is_file():
                by_language.setdefault(language, []).append(path)
    except OSError as e:
        raise BitextmineError(
            f"{directory}: cannot list the folder: {e.strerror or e}; check --dir"
        ) from None
    return by_language
