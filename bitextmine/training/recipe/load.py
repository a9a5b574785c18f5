"""Load recipes: TOML files, packaged recipes by name, a model's recipe.json, or nothing but names of corpora."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.names import TwoFiles
from bitextmine.files.jsonfile import read_json, read_toml
from bitextmine.files.streams import strip_compression
from bitextmine.languages.codes import is_short_code
from bitextmine.training.recipe.check import OutOfRangeError, check_recipe, recipe_of
from bitextmine.training.recipe.keys import SECTIONS, Corpus, Recipe
from bitextmine.training.recipe.start import with_assistant, with_start

PACKAGED = Path(str(resources.files("bitextmine.training"))) / "recipes"
# Keys of earlier versions, which the recipe.json of an older model still has.
REMOVED = ("hard_negatives", "hard_pool", "hard_limit")


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    return sorted(path.stem for path in PACKAGED.glob("*.toml"))


def recipe_path(recipe: str | Path) -> Path:
    """Return the file of a recipe given by name or by path.

    A packaged name wins over a file of the same name (./cpu-quick or cpu-quick.toml is a path), so that names mean the
    same in every folder.

    Raises:
        BitextmineError: it is neither.
    """
    names = recipe_names()
    if str(recipe) in names:
        return PACKAGED / f"{recipe}.toml"
    if not Path(recipe).exists():
        raise BitextmineError(
            f"{recipe}: no such file, and not one of the packaged recipes ({', '.join(names)})"
        )
    return Path(recipe)


def load_recipe(
    recipe: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    pairs: Sequence[str | TwoFiles] = (),
    folder: Path | None = None,
) -> Recipe:
    """Load a recipe from a TOML file, from a model's recipe.json, or by its name in the package.

    Args:
        recipe: name or path.
        overrides: values that win over the recipe's: ``{"train.batch": 512}``.
        pairs: files named after their languages, or two files each, in place of the recipe's corpora and the teacher's.
        folder: wins over data.folder. Relative paths start at the recipe's folder; those of packaged recipes, a
            model's recipe and ``pairs`` at the current one.

    Raises:
        BitextmineError: names the file, or the key that is unknown, of the wrong type or out of range.
    """
    path = recipe_path(recipe)
    content = _read(path)
    if pairs:
        for section, name in (("data", "folder"), ("teacher", "corpora")):
            if isinstance(content.get(section), dict):
                content[section].pop(name, None)
    base = Path() if pairs or path.parent == PACKAGED or path.suffix == ".json" else path.parent
    try:
        return _completed(content, overrides or {}, pairs, base, folder)
    except UsageError:
        raise
    except BitextmineError as e:
        raise BitextmineError(f"{path}: {e}") from None


def recipe_from_pairs(
    pairs: Sequence[str | TwoFiles], overrides: Mapping[str, Any] | None = None, *, folder: Path | None = None
) -> Recipe:
    """Return a recipe of defaults for TSV files named after their languages: NAME.en-fr.tsv[.gz|.xz|.zst]."""
    return _completed({}, overrides or {}, pairs, Path(), folder)


def _completed(
    content: Mapping[str, Any],
    overrides: Mapping[str, Any],
    pairs: Sequence[str | TwoFiles],
    base: Path,
    folder: Path | None,
) -> Recipe:
    found = dataclasses.replace(_recipe(content, overrides), base=base if folder is None else folder)
    data = found.data
    if pairs:
        data = dataclasses.replace(data, corpora=_corpora(pairs))
    if folder is not None:
        data = dataclasses.replace(data, folder=".")
    given = {f"{section}.{name}" for section in SECTIONS for name in content.get(section, {})} | set(
        overrides
    )
    return check_recipe(with_assistant(with_start(dataclasses.replace(found, data=data), given), given))


def _read(path: Path) -> dict[str, Any]:
    if path.suffix != ".json":
        return read_toml(path)
    content = read_json(path)
    train = content.get("train")
    if not isinstance(train, dict):
        raise BitextmineError(f"{path}: not the recipe of a model; name its recipe.json, or a TOML file")
    content.pop("similarity", None)
    return {**content, "train": {name: value for name, value in train.items() if name not in REMOVED}}


def _recipe(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> Recipe:
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in content.items()}
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        if section in SECTIONS and not name:
            raise UsageError(
                f"--set {key}={value}: {section!r} is a table of keys: name a key, as train.batch=..."
            )
        try:
            with contextlib.suppress(OutOfRangeError):  # raised below, about the whole recipe
                recipe_of({section: {name: value}})
        except BitextmineError as e:
            raise UsageError(f"--set {key}={value}: {e}") from None
        table = merged.setdefault(section, {})
        if isinstance(table, dict):
            table[name] = value
    return recipe_of(merged)


def join_sides(pairs: Sequence[str], others: Sequence[str]) -> tuple[list[str | TwoFiles], tuple[str, ...]]:
    """Join the files of ``--pairs a.en a.fr``, where the second name is an argument of its own.

    Returns:
        The corpora, and the other names that belong to none: `a.fr` does to `a.en`.
    """
    rest = list(others)
    found: list[str | TwoFiles] = []
    for name in pairs:
        sides = (TwoFiles((name, other)) for other in rest)
        both = next((side for side in sides if side.langs() and _stem(side.files[1]) == _stem(name)), None)
        if both is not None:
            rest.remove(both.files[1])
        found.append(both or name)
    return found, tuple(rest)


def _stem(name: str) -> str:
    return str(strip_compression(name).with_suffix(""))


def _corpora(pairs: Sequence[str | TwoFiles]) -> tuple[Corpus, ...]:
    return tuple(
        Corpus(langs=name.langs() or ("", ""), src=name.files[0], tgt=name.files[1])
        if isinstance(name, TwoFiles)
        else Corpus(pairs=name, langs=_langs_of(name))
        for name in pairs
    )


def _langs_of(name: str) -> tuple[str, str]:
    """Return the languages in NAME.en-fr.tsv or NAME.en-pt-BR.tsv.

    A language follows each hyphen, unless a capital does (pt-BR); in capitals throughout (EN-FR) there are no regions.
    """
    for part in reversed(Path(name).name.split(".")):
        langs = part.split("-") if part.isupper() else re.split(r"-(?=[a-z])", part)
        codes = [lang.lower() for lang in langs] if part.isupper() else langs
        if len(langs) == 2 and all(map(is_short_code, codes)):
            return langs[0], langs[1]
    raise BitextmineError(
        f"{name}: its name does not tell its two languages; call it NAME.en-fr.tsv, or write a recipe with langs"
    )
