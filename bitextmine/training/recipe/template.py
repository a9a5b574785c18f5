"""Recipes as TOML text: the commented template of all keys, and a recipe's own settings."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.training.recipe.keys import SECTIONS, Corpus, Recipe
from bitextmine.training.recipe.limits import limits_in_words
from bitextmine.training.recipe.load import recipe_path

__all__ = ["recipe_settings", "recipe_template", "recipe_text"]

WIDTH = 108

HEAD = """\
# A recipe for `bitextmine train`: every key, what it means, and its default. A key that is left out has its default;
# options of the command win over the recipe.
#
#     bitextmine train recipe.toml --out model
"""

CORPUS = """\
# One such table for each corpus: a TSV file, or two files of equal length; .gz, .bz2, .xz and .zst are read, too.
#
# [[data.corpora]]
# langs = ["en", "fr"]  # of the first and the second column
# pairs = "pairs.en-fr.tsv"
"""


def recipe_text(name: str = "template") -> str:
    """The recipe of that name in the package (or that file's), as it is; "template" is the template of all keys.

    Raises BitextmineError for what is neither.
    """
    if name == "template":
        return recipe_template()
    path = recipe_path(name)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise BitextmineError(f"{path}: cannot be read: {e}") from None


def recipe_template() -> str:
    """Every key with its meaning, its limits and its default, as TOML that reads as a recipe of defaults."""
    parts = [HEAD]
    for section in SECTIONS:
        lines = [f"[{section}]"]
        for field in dataclasses.fields(getattr(Recipe(), section)):
            if (section, field.name) == ("data", "corpora"):
                continue
            lines += ["", *_comment(field), _setting(field)]
        parts.append("\n".join(lines) + "\n")
        if section == "data":
            others = [f for f in dataclasses.fields(Corpus) if f.name not in ("langs", "pairs")]
            parts.append(CORPUS + "".join(f"# {_setting(f)}  {' '.join(_comment(f))}\n" for f in others))
    return "\n".join(parts)


def recipe_settings(recipe: Recipe) -> str:
    """What in a recipe is not at its default, as TOML that reads as that recipe (but for the folder of the data)."""
    parts = []
    for section in SECTIONS:
        values = getattr(recipe, section)
        lines = [
            line
            for line in _changed(values)
            if section != "data" or not line.startswith(("corpora =", "folder =", "cache ="))
        ]
        if lines:
            parts.append("\n".join([f"[{section}]", *lines]))
    parts += ["\n".join(["[[data.corpora]]", *_changed(corpus)]) for corpus in recipe.data.corpora]
    return "\n\n".join(parts) + "\n"


def _changed(part: Any) -> Iterator[str]:
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        made = field.default_factory
        if value != (made() if made is not dataclasses.MISSING else field.default):
            yield f"{field.name} = {_toml(value)}"


def _setting(field: dataclasses.Field) -> str:
    """A key at its default."""
    made = field.default_factory
    return f"{field.name} = {_toml(made() if made is not dataclasses.MISSING else field.default)}"


def _comment(field: dataclasses.Field) -> list[str]:
    limits = limits_in_words(field.metadata["limits"])
    text = field.metadata["doc"] + (f" ({limits})" if limits else "")
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH)]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for pairs of surrogates: characters above U+FFFF stand as they are.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
