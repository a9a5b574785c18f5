"""Read recipes: TOML files, packaged recipes by name, a model's recipe.json, or only names of corpora.

Recipes that continue from an encoder are completed with the keys that the encoder decides.
"""

import dataclasses
import os
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from bitextmine.encoder import folder as encoders
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.encoder.weights import storage_of
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.json_toml import read_json, read_toml
from bitextmine.files.source import Location, TwoFiles
from bitextmine.languages.codes import is_short_code
from bitextmine.shipped import SHIPPED, shipped_folder
from bitextmine.training.recipe.check import check_recipe, check_values, recipe_of, tables
from bitextmine.training.recipe.keys import SECTIONS, SHAPE, PairCorpus, Recipe

# Defaults for training on: a third of the learning rates from random weights, so that the first steps do not undo
# what the encoder knows.
RATES: dict[str, Any] = {"learning_rate": 1e-4, "embedding_learning_rate": 2e-3, "warmup": 0.1}
PACKAGED = Path(str(resources.files("bitextmine.training"))) / "recipes"


def recipe_path(recipe: str | Path) -> Path:
    """Return the file of a recipe given by name or by path; BitextmineError if it is neither.

    A packaged name wins over a file of that name (./cpu-quick is a path), so that names mean the same in every folder.
    """
    names = sorted(path.stem for path in PACKAGED.glob("*.toml"))
    if str(recipe) in names:
        return PACKAGED / f"{recipe}.toml"
    if not Path(recipe).exists():
        raise BitextmineError(
            f"{recipe}: no such file, and not one of the built-in recipes ({', '.join(names)})"
        )
    return Path(recipe)


def recipe_text(name: str | Path = "template") -> str:
    """Return the text of a packaged recipe or of a file; "template" is the recipe of all keys and their meaning."""
    path = Path(__file__).with_name("template.toml") if name == "template" else recipe_path(name)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise BitextmineError(f"{path}: cannot read: {e}") from None


def load_recipe(
    recipe: str | Path | None,
    overrides: Mapping[str, Any] | None = None,
    *,
    pairs: Sequence[str | TwoFiles] = (),
    folder: Path | None = None,
) -> Recipe:
    """Load a recipe; BitextmineError names the file, or the key that is wrong.

    Args:
        recipe: a packaged name, a TOML file or a model's recipe.json; None for a recipe of defaults.
        overrides: values that win over the recipe's: ``{"train.batch": 512}``.
        pairs: files named after their languages (NAME.en-fr.tsv[.gz|.xz|.zst]), or two files each, in place of the
            recipe's corpora and the teacher's.
        folder: where relative paths start, instead of the recipe's folder; those of packaged recipes, a model's recipe
            and ``pairs`` start at the current one.
    """
    overrides, corpora, content, base = overrides or {}, _corpora(pairs), {}, Path()
    path = None if recipe is None else recipe_path(recipe)
    if path is not None:
        content = _read(path)
        base = Path() if pairs or path.parent == PACKAGED or path.suffix == ".json" else path.parent
    if pairs and isinstance(content.get("teacher"), dict):
        content["teacher"].pop("corpora", None)
    try:
        loaded = _recipe(content, overrides)
        corpora = corpora or tuple(map(_with_langs, loaded.data.corpora))
        data = dataclasses.replace(loaded.data, corpora=corpora)
        loaded = dataclasses.replace(loaded, data=data, base=base if folder is None else folder)
        given = {f"{section}.{name}" for section in SECTIONS for name in content.get(section, {})}
        given |= {*overrides}
        return check_recipe(with_start(loaded, given))
    except BitextmineError as e:
        if path is None or isinstance(e, UsageError):
            raise
        raise BitextmineError(f"{path}: {e}") from None


def _read(path: Path) -> dict[str, Any]:
    if path.suffix != ".json":
        return read_toml(path)
    content = read_json(path)
    if not isinstance(content.get("train"), dict):
        raise BitextmineError(f"{path}: not the recipe of a model; name its recipe.json, or a TOML file")
    for _, table, keys in tables(content):
        for name in set(table).difference(keys):  # of an earlier version
            del table[name]
    return content


def _recipe(content: Mapping[str, Any], overrides: Mapping[str, Any]) -> Recipe:
    merged = {key: dict(value) if isinstance(value, Mapping) else value for key, value in content.items()}
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        if section in SECTIONS and not name:
            raise UsageError(
                f"--set {key}={value}: {section!r} is a table of keys: name a key, as train.batch=..."
            )
        try:
            check_values(recipe_of({section: {name: value}}))
        except BitextmineError as e:
            raise UsageError(f"--set {key}={value}: {e}") from None
        keys = merged.setdefault(section, {})
        if isinstance(keys, dict):
            keys[name] = value
    return recipe_of(merged)


def join_sides(pairs: Sequence[str], second: Sequence[str]) -> tuple[list[str | TwoFiles], tuple[str, ...]]:
    """Join the files of ``--pairs a.en a.fr``, where a.fr is an argument; return corpora and other arguments."""
    rest = list(second)
    corpora: list[str | TwoFiles] = []
    for name in pairs:
        sides = (TwoFiles.join(name, other) for other in rest)
        both = next((side for side in sides if side.langs() and _stem(side.names[1]) == _stem(name)), None)
        if both is not None:
            rest.remove(both.names[1])
        corpora.append(both or name)
    return corpora, tuple(rest)


def _stem(name: str) -> str:
    return str(Location(name).stem.with_suffix(""))


def _corpora(pairs: Sequence[str | TwoFiles]) -> tuple[PairCorpus, ...]:
    return tuple(
        PairCorpus(name.langs() or ("", ""), src=name.names[0], tgt=name.names[1])
        if isinstance(name, TwoFiles)
        else PairCorpus(langs_of(name), name)
        for name in pairs
    )


def resolve_corpora(recipe: Recipe) -> Recipe:
    """Return the recipe with each pattern as the files that match it, and with the languages that file names tell.

    A file belongs to the first entry that matches it. Of a pattern's files those of other languages than
    data.languages are left out. Raises BitextmineError if none is left, or a file is missing: before hours of work on
    the others.
    """
    known, corpora = set(recipe.data.languages), dict[str, PairCorpus]()
    for corpus in recipe.data.corpora:
        names = [corpus.pairs]
        if corpus.is_pattern:
            folder = recipe.path(".")
            names = sorted(path.relative_to(folder).as_posix() for path in folder.glob(corpus.pairs))
            names = [name for name in names if not known or known.issuperset(langs_of(name))]
            if not names:
                raise BitextmineError(
                    f"recipe: data.corpora: {corpus.pairs!r}: no such file in {folder}; --data FOLDER names another"
                )
        for name in names:
            corpora.setdefault(name or corpus.name, _with_langs(dataclasses.replace(corpus, pairs=name)))
    data = dataclasses.replace(recipe.data, corpora=tuple(corpora.values()))
    files = [file for corpus in data.corpora for file in map(recipe.corpus, corpus.files)]
    if missing := [file for file in files if not file.path.exists()]:
        more = f"; {len(missing)} of {len(files)} are missing" if len(missing) > 1 else ""
        raise BitextmineError(
            f"{missing[0]}: no such file{more}; the recipe's corpora are looked for in {recipe.path('.')}: --data "
            "FOLDER names another folder, train --pairs FILE other corpora"
        )
    return check_recipe(dataclasses.replace(recipe, data=data))


def _with_langs(corpus: PairCorpus) -> PairCorpus:
    """Return a corpus with the languages that its file's name tells, if it has none."""
    if any(corpus.langs) or corpus.is_pattern or not corpus.pairs:
        return corpus
    return dataclasses.replace(corpus, langs=langs_of(corpus.pairs))


def langs_of(name: str) -> tuple[str, str]:
    """Return the languages in NAME.en-fr.tsv or NAME.en-pt-BR.tsv.

    A language follows each hyphen, unless a capital does (pt-BR); in capitals throughout (EN-FR) there are no regions.
    """
    for part in reversed(Path(name).name.split(".")):
        langs = part.split("-") if part.isupper() else re.split(r"-(?=[a-z])", part)
        codes = [lang.lower() for lang in langs] if part.isupper() else langs
        if len(langs) == 2 and all(map(is_short_code, codes)):
            return langs[0], langs[1]
    raise BitextmineError(
        f"{name}: its name does not tell its two languages; call it NAME.en-fr.tsv, give two files NAME.en NAME.fr, "
        "or write a recipe with langs"
    )


# --- the encoder that a training continues from ----------------------------------------------------------------


def start_name(name: str | os.PathLike[str]) -> str:
    """Return model.start_from for an encoder named on the command line: a packaged name, or an absolute folder."""
    text = os.fspath(name)
    return text if text in encoders.PACKAGED else str(Path(text).absolute())


def start_encoder(recipe: Recipe) -> tuple[Path, EncoderConfig]:
    """Return folder and configuration of model.start_from; BitextmineError if it cannot be trained on."""
    name = recipe.model.start_from
    folder = shipped_folder(name) if name in encoders.PACKAGED else recipe.path(name)
    config, key = folder / encoders.CONFIG, "model.start_from (--from)"
    if not folder.is_dir():
        names = ", ".join(SHIPPED)
        problem = "not a folder" if folder.exists() else "no such model folder"
        raise BitextmineError(f"{key}: {folder}: {problem}, and not one of the built-in encoders ({names})")
    if (kind := foreign_kind(folder)) or not config.is_file():
        problem = f"an encoder of another kind ({kind})" if kind else "no model folder"
        raise BitextmineError(
            f"{key}: {folder}: {problem}; only encoders of 'bitextmine train' can be trained on"
        )
    return folder, EncoderConfig.from_json(read_json(config), str(config))


def with_start(recipe: Recipe, given: Collection[str]) -> Recipe:
    """Return the recipe with the shape and storage of the encoder it starts from, if any, and RATES as defaults.

    given: the keys that were set, as "model.dim"; BitextmineError if one disagrees, or the encoder cannot be trained
    on.
    """
    if not recipe.model.start_from:
        return recipe
    folder, config = start_encoder(recipe)
    kept: dict[str, Any] = {name: getattr(config, name) for name in SHAPE}
    for name, there in kept.items():
        asked = getattr(recipe.model, name)
        if asked != there and f"model.{name}" in given:
            raise BitextmineError(
                f"recipe: model.{name} is {asked}, but that of {recipe.model.start_from} is {there}: leave it out "
                "(--from with --pairs alone, without a recipe, takes the encoder's shape)"
            )
    if "model.storage" not in given:
        kept["storage"] = storage_of(folder / encoders.WEIGHTS)
    rates = {name: value for name, value in RATES.items() if f"train.{name}" not in given}
    model, training = dataclasses.replace(recipe.model, **kept), dataclasses.replace(recipe.train, **rates)
    return dataclasses.replace(recipe, model=model, train=training)
