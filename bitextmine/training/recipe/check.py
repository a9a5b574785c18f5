"""Check recipes: types and ranges by msgspec, then the keys that must agree with each other."""

import dataclasses
import fnmatch
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from bitextmine.errors import BitextmineError
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.recipe.keys import SECTIONS, UNKEYED, PairCorpus, Recipe


def tables(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Yield the tables of a nested dictionary: the start of its keys in messages, itself, and the keys it may have."""
    data = content.get("data")
    corpora = data.get("corpora") if isinstance(data, Mapping) else None
    parts: list[tuple[str, Any, type]] = [("", content, Recipe)]
    parts += [(f"{name}.", content.get(name), type(getattr(Recipe(), name))) for name in SECTIONS]
    parts += [
        ("data.corpora: ", table, PairCorpus) for table in (corpora if isinstance(corpora, list) else [])
    ]
    for where, table, kind in parts:
        if isinstance(table, dict):
            keys = [field.name for field in dataclasses.fields(kind) if field.name not in UNKEYED]
            yield where, table, keys


def recipe_of(content: Mapping[str, Any]) -> Recipe:
    """Return the recipe in a nested dictionary; BitextmineError for an unknown, missing or wrong key."""
    for where, table, keys in tables(content):
        for key in table:
            if key not in keys:
                owner = where.rstrip(".: ") or "the recipe"
                raise BitextmineError(f"recipe: unknown key '{where}{key}'; {owner} takes {', '.join(keys)}")
    try:
        return msgspec.convert(content, Recipe)
    except msgspec.ValidationError as e:
        problem, _, path = str(e).rstrip("`").partition(" - at `$.")
        value: Any = content
        for name, number in re.findall(r"(\w+)|\[(\d+)\]", path):
            value = value[int(number)] if number else value[name]
        path = re.sub(r"\[(\d+)\]", lambda at: f" {int(at[1]) + 1}", path)
        value_found = "" if isinstance(value, Mapping) else f"found {value!r}: "
        raise BitextmineError(
            f"recipe: {path}: {value_found}{problem[0].lower()}{problem[1:]} (train --print-recipe explains the keys)"
        ) from None


def check_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe; BitextmineError names the first key that is wrong or disagrees with another."""
    content = dataclasses.asdict(recipe)
    recipe_of({name: content[name] for name in SECTIONS})
    _raise_first(recipe, _corpus_rules, _model_rules, _teacher_rules)
    return recipe


def check_objectives(recipe: Recipe) -> None:
    """Raise BitextmineError for objectives that do not exist, or disagree with the model or the teacher."""
    _raise_first(recipe, _value_rules, _objective_rules)


def check_values(recipe: Recipe) -> None:
    """Raise BitextmineError for a value that is wrong in any recipe, though it has the right type.

    Recipes of older models may hold such values; they are read, but not trained by.
    """
    _raise_first(recipe, _value_rules)


def _raise_first(recipe: Recipe, *rules: Callable[[Recipe], Iterator[str]]) -> None:
    for wrong in itertools.chain.from_iterable(rule(recipe) for rule in rules):
        raise BitextmineError(f"recipe: {wrong}")


def _corpus_rules(recipe: Recipe) -> Iterator[str]:
    if not recipe.data.corpora:
        yield "data.corpora: names no corpus; add a [[data.corpora]] table, or pass --pairs"
    for i, corpus in enumerate(recipe.data.corpora, 1):
        if bool(corpus.pairs) == bool(corpus.src and corpus.tgt):
            yield f"data.corpora {i}: needs either pairs, or src and tgt"
        if corpus.langs[0] == corpus.langs[1] and (any(corpus.langs) or not corpus.pairs):
            yield f"data.corpora {i}: langs: found {list(corpus.langs)}; name two languages"


def _model_rules(recipe: Recipe) -> Iterator[str]:
    m, reduce = recipe.model, recipe.reduce
    if m.start_from and m.spelling:
        yield "model.spelling: found with model.start_from, whose pieces have vectors of their own; leave it out"
    if m.ngrams and not (m.spelling or m.start_from):
        yield f"model.ngrams: found {m.ngrams} without model.spelling; set that to true"
    if m.skeletons and not m.ngrams:
        yield f"model.skeletons: found {m.skeletons} without model.ngrams; set that, too"
    for key, value in (
        ("model.spelling", m.spelling),
        ("reduce.dim", reduce.dim),
        ("reduce.norm_power", reduce.norm_power != 1),
        ("reduce.repeat_damping", reduce.repeat_damping),
    ):
        if value and m.layers:
            yield f"{key}: found with model.layers {m.layers}; only models without layers support it"
    if (share := recipe.train.length_share_in_training) and not m.length_share:
        yield f"train.length_share_in_training: found {share} without model.length_share; set that, too"
    if reduce.order_columns and not reduce.dim:
        yield f"reduce.order_columns: found {reduce.order_columns} without reduce.dim; set that, too"
    try:
        trained = m.config()
    except BitextmineError as e:
        yield str(e)
        return
    try:
        kept = reduce.applied(trained)
    except BitextmineError as e:
        yield f"reduce: {e}"
        return
    if kept.piece_dim > trained.piece_dim:
        yield (
            f"reduce.dim: {reduce.dim} leaves {kept.piece_dim} columns to the pieces, which are trained with "
            f"{trained.piece_dim}"
        )
    if m.storage == "int4" and kept.stored_dim % 4:
        yield (
            f"model.storage: int4 needs a multiple of 4 columns for the pieces, found {kept.stored_dim} (dim less the "
            "columns for order and length)"
        )


def _teacher_rules(recipe: Recipe) -> Iterator[str]:
    corpora, teacher = recipe.data.corpora, recipe.teacher
    names = [corpus.files[0] for corpus in corpora]
    for name in teacher.corpora:
        if not (fnmatch.filter(names, name) or any(corpus.is_pattern for corpus in corpora)):
            yield f"teacher.corpora: {name!r} is not among data.corpora ({', '.join(names)})"
    if not teacher.model:
        return
    taught = [c for c in corpora if teacher.teaches_on(c)]
    open_ = any(corpus.is_pattern for corpus in corpora)
    if teacher.languages and not open_ and not any(set(teacher.languages) & set(c.langs) for c in taught):
        yield (
            f"teacher.languages: found {', '.join(map(repr, teacher.languages))}, which no corpus that it teaches on "
            f"has; they have {', '.join(sorted({lang for c in taught for lang in c.langs}))}"
        )


def _value_rules(recipe: Recipe) -> Iterator[str]:
    if not recipe.train.objective:
        yield f"train.objective: names no objective; choose from {', '.join(OBJECTIVES)}"
    for name in recipe.train.objective:
        if name not in OBJECTIVES:
            yield f"train.objective: {name!r} is not one of {', '.join(OBJECTIVES)}"
    if recipe.teacher.model == "precomputed":
        yield "teacher.model: 'precomputed' encodes nothing, so it cannot teach; name an encoder"


def _objective_rules(recipe: Recipe) -> Iterator[str]:
    m, teacher = recipe.model, recipe.teacher
    chosen = {name: OBJECTIVES[name] for name in sorted(recipe.train.objective)}
    teaching = [name for name, declared in OBJECTIVES.items() if declared.teacher]
    asked = [name for name in chosen if name in teaching]
    if asked and not teacher.model:
        yield f"train.objective: {asked[0]!r} needs a teacher: set teacher.model, or leave this objective out"
    if teacher.model and not asked:
        yield (
            f"teacher.model: found {teacher.model!r}, but no objective learns from it: add "
            f"{' or '.join(map(repr, teaching))} to train.objective, or leave teacher.model empty"
        )
    at_once = [name for name, declared in chosen.items() if not declared.taught]
    if teacher.model and teacher.epochs and len(at_once) in (0, len(chosen)):
        why = "nothing is learned before it teaches" if not at_once else "no objective learns from it"
        yield f"teacher.epochs: found {teacher.epochs:g}, but {why}: leave it at 0, or name objectives of both kinds"
    unable = [name for name, declared in chosen.items() if not declared.cosines]
    able = " or ".join(repr(name) for name, declared in OBJECTIVES.items() if declared.cosines)
    for key in ("spelling", "length_share"):
        if getattr(m, key) and unable:
            yield f"model.{key}: not with {unable[0]!r}: only {able} support it"
