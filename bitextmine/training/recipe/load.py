"""Recipes from TOML files, by path or by name in the package, and from nothing but the names of corpora."""

from __future__ import annotations

import dataclasses
import re
import sys
import typing
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.jsonfile import read_toml
from bitextmine.languages.codes import is_short_code
from bitextmine.training.recipe.check import check_recipe
from bitextmine.training.recipe.keys import SECTIONS, Corpus, Recipe
from bitextmine.training.recipe.start import with_assistant, with_start

__all__ = ["load_recipe", "recipe_from_pairs", "recipe_names", "recipe_path"]

PACKAGED = Path(str(resources.files("bitextmine.training"))) / "recipes"


def recipe_names() -> list[str]:
    """The recipes in the package, which `load_recipe` takes by name."""
    return sorted(path.stem for path in PACKAGED.glob("*.toml"))


def recipe_path(recipe: str | Path) -> Path:
    """The file of a recipe given by name or by path.

    A file wins only when it is written as a path (./cpu-quick, cpu-quick.toml): names must mean the same in every
    folder. Raises BitextmineError for what is neither.
    """
    names = recipe_names()
    if str(recipe) in names:
        return PACKAGED / f"{recipe}.toml"
    if not Path(recipe).exists():
        raise BitextmineError(
            f"{recipe}: no such file, and not one of the recipes in the package ({', '.join(names)})"
        )
    return Path(recipe)


def load_recipe(
    recipe: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    pairs: Sequence[str] = (),
    folder: Path | None = None,
) -> Recipe:
    """Reads a TOML recipe, by its path or by its name in the package.

    ``overrides`` ({"train.batch": 512, ...}) win over it; ``pairs``, TSV files whose names tell their languages, take
    the place of its corpora, and of those that a teacher teaches on; ``folder`` wins over data.folder. Relative paths
    begin at the recipe's folder; those of a recipe of the package, and ``pairs``, at the current one.
    Raises BitextmineError naming the file, or the key that is unknown or of the wrong type.
    """
    path = recipe_path(recipe)
    content = read_toml(path)
    try:
        found = _recipe(content, overrides or {})
        base = Path() if pairs or path.parent == PACKAGED else path.parent
        found = _with_folder(dataclasses.replace(found, base=base), folder)
        if pairs:
            data = dataclasses.replace(found.data, corpora=_corpora(pairs), folder=".")
            chosen = found.teacher.corpora if "teacher.corpora" in (overrides or {}) else ()
            teacher = dataclasses.replace(found.teacher, corpora=chosen)
            found = dataclasses.replace(found, data=data, teacher=teacher)
        given = _given(content, overrides or {})
        return check_recipe(with_assistant(with_start(found, given), given))
    except UsageError:
        raise
    except BitextmineError as e:
        raise BitextmineError(f"{path}: {e}") from None


def recipe_from_pairs(
    pairs: Sequence[str], overrides: Mapping[str, Any] | None = None, *, folder: Path | None = None
) -> Recipe:
    """A recipe of defaults for TSV files whose names tell their languages: NAME.en-fr.tsv[.gz|.xz|.zst]."""
    found = _recipe({}, overrides or {})
    found = dataclasses.replace(found, data=dataclasses.replace(found.data, corpora=_corpora(pairs)))
    given = set(overrides or {})
    return check_recipe(with_assistant(with_start(_with_folder(found, folder), given), given))


def _given(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> set[str]:
    """The keys that somebody set, as "train.batch"."""
    tables = {section: content.get(section, {}) for section in SECTIONS}
    return {f"{section}.{name}" for section, table in tables.items() for name in table} | set(overrides)


def _corpora(pairs: Sequence[str]) -> tuple[Corpus, ...]:
    return tuple(Corpus(pairs=name, langs=_langs_of(name)) for name in pairs)


def _with_folder(recipe: Recipe, folder: Path | None) -> Recipe:
    if folder is None:
        return recipe
    return dataclasses.replace(recipe, base=folder, data=dataclasses.replace(recipe.data, folder="."))


def _langs_of(name: str) -> tuple[str, str]:
    """The languages of NAME.en-fr.tsv and NAME.en-pt-BR.tsv: what follows a hyphen is a language of its own unless it
    begins with a capital. A name all in capitals, EN-FR, is of two codes without parts."""
    for part in reversed(Path(name).name.split(".")):
        langs = part.split("-") if part.isupper() else re.split(r"-(?=[a-z])", part)
        codes = [lang.lower() for lang in langs] if part.isupper() else langs
        if len(langs) == 2 and all(map(is_short_code, codes)):
            return langs[0], langs[1]
    raise BitextmineError(
        f"{name}: its name does not tell its two languages; call it NAME.en-fr.tsv, or write a recipe with langs"
    )


def _recipe(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> Recipe:
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in content.items()}
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        if section in SECTIONS and not name:
            raise UsageError(
                f"--set {key}={value}: {section!r} is a table of keys: name a key, as train.batch=..."
            )
        try:
            _build(Recipe, {section: {name: value}}, "")
        except BitextmineError as e:
            raise UsageError(f"--set {key}={value}: {e}") from None
        table = merged.setdefault(section, {})
        if not isinstance(table, dict):
            raise BitextmineError(f"recipe: {section}: expected a table, found {table!r}")
        table[name] = value
    return typing.cast(Recipe, _build(Recipe, merged, ""))


def _build(cls: type, content: Any, where: str) -> Any:
    if not isinstance(content, Mapping):
        raise BitextmineError(f"recipe: {where.rstrip('.') or 'it'}: expected a table, found {content!r}")
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls) if field.name != "base"]
    values = {}
    for key, value in content.items():
        if key not in known:
            raise BitextmineError(
                f"recipe: unknown key {where + key!r}; {where.rstrip('.') or 'the recipe'} takes {', '.join(known)}"
            )
        values[key] = _value(hints[key], value, where + key)
    for field in dataclasses.fields(cls):
        made = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name not in values and not made:
            raise BitextmineError(f"recipe: {where.rstrip('.')}: it has no {field.name!r}, which it needs")
    return cls(**values)


def _value(kind: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(type, kind), value, f"{where}.")
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise BitextmineError(f"recipe: {where}: expected a list, found {value!r}")
        return tuple(_value(typing.get_args(kind)[0], item, where) for item in value)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise BitextmineError(f"recipe: {where}: expected a table, found {value!r}")
        return {str(key): _value(float, item, f"{where}.{key}") for key, item in value.items()}
    if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BitextmineError(f"recipe: {where}: expected {kind.__name__}, found {value!r}")
    return value
