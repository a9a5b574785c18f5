"""Write recipes as TOML: the commented template of all keys, and the settings of one recipe."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from typing import Any

from bitextmine.errors import BitextmineError
from bitextmine.training.recipe.check import key_types, type_in_words
from bitextmine.training.recipe.keys import SECTIONS, Corpus, Recipe, changed, default
from bitextmine.training.recipe.load import recipe_path

WIDTH = 108

HEAD = """\
# A recipe for `bitextmine train`: every key, its meaning and its default. Keys left out have their defaults; options
# of the command override the recipe.
#
#     bitextmine train recipe.toml --out model
"""

CORPUS = """\
# One such table per corpus: a TSV file, or two files of equal length; .gz, .bz2, .xz and .zst are read, too.
#
# [[data.corpora]]
# langs = ["en", "fr"]  # of the first and the second column
# pairs = "pairs.en-fr.tsv"
"""


def recipe_text(name: str = "template") -> str:
    """Return the text of a packaged recipe or of a file; "template" is the template of all keys.

    Raises:
        BitextmineError: there is no such recipe or file.
    """
    if name == "template":
        return recipe_template()
    path = recipe_path(name)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise BitextmineError(f"{path}: cannot read: {e}") from None


def recipe_template() -> str:
    """Return every key with its meaning, range and default, as TOML that reads as a recipe of defaults."""
    parts = [HEAD]
    for section in SECTIONS:
        cls = type(getattr(Recipe(), section))
        lines = [f"[{section}]"]
        for field in dataclasses.fields(cls):
            if (section, field.name) != ("data", "corpora"):
                lines += [
                    "",
                    *textwrap.wrap(_comment(cls, field), WIDTH, initial_indent="# ", subsequent_indent="# "),
                ]
                lines.append(_setting(field))
        parts.append("\n".join(lines) + "\n")
        if section == "data":
            others = [f for f in dataclasses.fields(Corpus) if f.name not in ("langs", "pairs")]
            parts.append(CORPUS + "".join(f"# {_setting(f)}  # {_comment(Corpus, f)}\n" for f in others))
    return "\n".join(parts)


def recipe_settings(recipe: Recipe) -> str:
    """Return the settings not at their defaults, as TOML that reads as this recipe (except the data folder)."""
    parts = []
    for section in SECTIONS:
        values = changed(getattr(recipe, section))
        if section == "data":
            values = {
                name: value for name, value in values.items() if name not in ("corpora", "folder", "cache")
            }
        if values:
            parts.append("\n".join([f"[{section}]", *_lines(values)]))
    parts += ["\n".join(["[[data.corpora]]", *_lines(changed(corpus))]) for corpus in recipe.data.corpora]
    return "\n\n".join(parts) + "\n"


def _lines(values: dict[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in values.items()]


def _setting(field: dataclasses.Field) -> str:
    return f"{field.name} = {_toml(default(field))}"


def _comment(cls: type, field: dataclasses.Field) -> str:
    limits = type_in_words(key_types(cls)[field.name], limits_only=True)
    return str(field.metadata["doc"]) + (f" ({limits})" if limits else "")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, except surrogate pairs: characters above U+FFFF are written as they are.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
