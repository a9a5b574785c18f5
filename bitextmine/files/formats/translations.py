"""The languages of a file whose rows hold texts by language: which of them are source and target.

Languages are compared as in RFC 4647: en-US, en-GB and EN are variants of en, and one side of a pair together.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.columns import Columns, by_language, is_position
from bitextmine.languages.codes import language, language_family, matches

_OPTIONS = (("src", "--scol"), ("tgt", "--tcol"))


@dataclass(frozen=True)
class Translations:
    """The languages, source and target first unless `unknown` gives the reason why these are not known."""

    langs: tuple[str, ...] = ()
    unknown: str = ""

    def texts(self, translation: Any) -> list[Any]:
        """Return the text in each language, None for no text; a list for texts in several variants."""
        if not isinstance(translation, dict):
            return [None] * len(self.langs)
        texts = list(map(translation.get, self.langs))
        if None in texts:
            texts = [_text(translation, lang) for lang in self.langs]
        return texts


def _text(translation: Mapping[str, Any], lang: str) -> Any:
    if (text := translation.get(lang)) is not None:
        return text
    texts = [text for tag, text in translation.items() if text is not None and matches(tag, lang)]
    return texts if len(texts) > 1 else texts[0] if texts else None


def find_translations(
    rows: Sequence[Mapping[str, Any]], declared: Sequence[str], columns: Columns, name: str, whole: bool
) -> tuple[Translations, Columns]:
    """Return the languages of a file, and the options for its columns that are left.

    Args:
        rows: the texts by language of the first rows.
        declared: the languages that the file declares, source and target, or the source alone, which comes first.
        columns: the user's choice of columns; a language that he names may come later than in the first rows.
        name: of the file, in errors.
        whole: there are no other rows.

    Raises:
        BitextmineError: a language that the file does not have, or one that is source and target.
    """
    tags = list(
        dict.fromkeys([*(declared if len(declared) == 2 else ()), *(tag for row in rows for tag in row)])
    )
    langs = list(_joined(tags, rows))
    if declared:
        langs.sort(key=lambda lang: not (matches(lang, declared[0]) or matches(declared[0], lang)))
    later = (
        []
        if whole
        else [s for s in columns.langs if s and language(s) and not any(matches(t, s) for t in tags)]
    )
    columns = by_language(columns, [*langs, *later], name)
    chosen = [
        None if value is None or (value == role and value not in tags and len(langs) == 2)
        else _chosen(value, option, langs, tags, name, whole)
        for role, option, value in ((role, option, getattr(columns, role)) for role, option in _OPTIONS)
    ]  # fmt: skip
    columns = dataclasses.replace(columns, src=None, tgt=None)
    rest = [lang for lang in langs if not any(c and (matches(lang, c) or matches(c, lang)) for c in chosen)]
    if None in chosen and len(rest) != chosen.count(None):
        unknown = (
            f"{name}: a pair is in two languages, and the translations are in {', '.join(langs)[:200] or 'none'}; "
            "say which two with --scol and --tcol"
        )
        return Translations(tuple(langs), unknown), columns
    sides = [lang if lang is not None else rest.pop(0) for lang in chosen]
    if sides[0] == sides[1]:
        raise BitextmineError(f"{name}: source and target are both '{sides[0]}'; give two languages")
    return Translations((*sides, *rest)), columns


def _joined(tags: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the languages, each once: variants are one language unless a row tells them apart."""
    families: dict[str, dict[str, str]] = {}
    for tag in tags:
        families.setdefault(language_family(tag), {}).setdefault(tag.lower(), tag)
    for family, spelled in families.items():
        variants = list(spelled.values())
        if len(variants) == 1 or any(sum(tag.lower() in spelled for tag in row) > 1 for row in rows):
            yield from variants
        else:
            yield family


def _chosen(
    value: str, option: str, langs: Sequence[str], tags: Sequence[str], name: str, whole: bool
) -> str:
    """Return the language that an option names, or its position; without that region or script, the one without."""
    if value in langs or value in tags:
        return value
    if is_position(value) and 0 < int(value[:9]) <= len(langs):
        return langs[int(value) - 1]
    wider = value.replace("_", "-")
    while wider:
        if matching := [
            tag for tag in tags if (matches(tag, value) if wider == value else tag.lower() == wider.lower())
        ]:
            return value if wider == value else matching[0]
        wider = wider.rpartition("-")[0]
    if not whole and language(value):
        return value
    raise BitextmineError(f"{name}: {option} {value}: the translations are in {', '.join(langs)[:200]}")
