"""Check recipes: types, ranges and unknown keys by msgspec, then the keys that must agree with each other."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from bitextmine.encoder.columns import COLUMNS
from bitextmine.encoder.encoder import PRECOMPUTED
from bitextmine.errors import BitextmineError
from bitextmine.training.objectives.catalogue import OBJECTIVES
from bitextmine.training.recipe.keys import Recipe, Training

_LIMITS = {"ge": "at least {:,}", "le": "at most {:,}", "gt": "above {:,}", "lt": "below {:,}"}
_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class OutOfRangeError(BitextmineError):
    """A value of the right type that a key does not allow."""


# --- types and ranges ----------------------------------------------------------------------------------------


def recipe_of(content: Mapping[str, Any]) -> Recipe:
    """Return the recipe in a nested dictionary, with defaults for missing keys.

    Raises:
        BitextmineError: a key is unknown, missing or of the wrong type.
        OutOfRangeError: a value is out of range.
    """
    _check_keys(content, Recipe, "")
    try:
        return msgspec.convert(content, Recipe)
    except msgspec.ValidationError as e:
        kind = BitextmineError if ", got " in str(e) else OutOfRangeError
        raise kind(f"recipe: {_explained(str(e), content)}") from None


def key_types(cls: type) -> dict[str, Any]:
    """Return the annotated type of each key of a table."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: kind for name, kind in hints.items() if name != "base"}


def type_in_words(kind: Any) -> str:
    """Describe a key's type and range: a whole number, at least 8, at most 1,000,000; "unigram" or "bpe"."""
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(json.dumps(choice) for choice in typing.get_args(kind))
    words = []
    if typing.get_origin(kind) is typing.Annotated:
        kind, meta = typing.get_args(kind)
        limits = ((said, getattr(meta, name)) for name, said in _LIMITS.items())
        words = [said.format(limit) for said, limit in limits if limit is not None]
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is dict:
        return f"a table of names, each with {type_in_words(arguments[1])}"
    if arguments:
        return "a list" if arguments[-1] is Ellipsis else f"a list of {len(arguments)}"
    return ", ".join([_TYPES.get(kind, "a table"), *words])


def _check_keys(content: Any, kind: Any, where: str) -> None:
    """Refuse unknown keys, and infinite numbers, which msgspec lets pass where there is no upper limit."""
    if isinstance(content, Mapping):
        known = (
            key_types(typing.cast(type, kind)) if dataclasses.is_dataclass(kind) else dict.fromkeys(content)
        )
        for key, value in content.items():
            if key not in known:
                table = where.rstrip(".: ") or "the recipe"
                raise BitextmineError(
                    f"recipe: unknown key {where + key!r}; {table} takes {', '.join(known)}"
                )
            _check_keys(value, known[key], f"{where}{key}.")
    elif isinstance(content, (list, tuple)):
        for number, item in enumerate(content, 1):
            _check_keys(item, next(iter(typing.get_args(kind)), None), f"{where.rstrip('.')} {number}: ")
    elif isinstance(content, float) and not math.isfinite(content):
        raise BitextmineError(f"recipe: {where.rstrip('.: ')}: found {content}; it must be a finite number")


def _explained(error: str, content: Any) -> str:
    """Turn msgspec's message into one that names the key, the value found and the range."""
    said, _, path = error.partition(" - at `$")
    kind, where = Recipe, ""
    for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        if number:
            kind, content = typing.get_args(kind)[0], content[int(number)]
            where = f"{where.rstrip('.')} {int(number) + 1}: "
        else:
            kind, content, where = key_types(kind)[name], content[name], f"{where}{name}."
    where = where.rstrip(".: ") or "it"
    if isinstance(content, Mapping) and dataclasses.is_dataclass(kind):  # a key is missing
        return f"{where}: {said[0].lower()}{said[1:]}"
    return f"{where}: found {content!r}; it must be {type_in_words(kind)}"


# --- keys that must agree ------------------------------------------------------------------------------------


def check_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe if its values are possible and agree with each other.

    Raises:
        BitextmineError: names the first key that is wrong, the value found, and the remedy.
    """
    content = dataclasses.asdict(recipe)
    del content["base"]
    recipe_of(content)
    _raise_first(_corpus_rules, _model_rules, _column_rules, _teacher_rules, _stage_rules, recipe=recipe)
    return recipe


def check_objectives(recipe: Recipe) -> None:
    """Check that the objectives exist, and agree with the model and the teacher.

    Raises:
        BitextmineError: names the first key that is wrong.
    """
    _raise_first(_objective_rules, recipe=recipe)


def _raise_first(*rules: Callable[[Recipe], Iterator[str]], recipe: Recipe) -> None:
    for wrong in itertools.chain.from_iterable(rule(recipe) for rule in rules):
        raise BitextmineError(f"recipe: {wrong}")


def _corpus_rules(recipe: Recipe) -> Iterator[str]:
    if not recipe.data.corpora:
        yield "data.corpora: names no corpus; add a [[data.corpora]] table, or pass --pairs"
    for i, corpus in enumerate(recipe.data.corpora, 1):
        if bool(corpus.pairs) == bool(corpus.src and corpus.tgt):
            yield f"data.corpora {i}: needs either pairs, or src and tgt"
        if corpus.langs[0] == corpus.langs[1]:
            yield f"data.corpora {i}: langs: found {list(corpus.langs)}; name two languages"
        if (corpus.src_vectors or corpus.tgt_vectors) and recipe.teacher.model != PRECOMPUTED:
            yield (
                f"data.corpora {i}: found src_vectors or tgt_vectors with teacher.model {recipe.teacher.model!r}; "
                f'set that to "{PRECOMPUTED}"'
            )


def _model_rules(recipe: Recipe) -> Iterator[str]:
    m, v = recipe.model, recipe.vocabulary
    if m.layers and m.dim % m.heads:
        yield f"model.heads: {m.heads} does not divide model.dim {m.dim}"
    if m.bottleneck and (not m.layers or m.bottleneck >= m.dim):
        yield (
            f"model.bottleneck: found {m.bottleneck} with model.dim {m.dim} and model.layers {m.layers}; it must be "
            "below dim, and needs layers"
        )
    if m.recurrent and (m.recurrent > m.layers or m.layers % m.recurrent):
        yield f"model.recurrent: {m.recurrent} does not divide model.layers {m.layers}"
    if m.start_from and v.tokenizer:
        yield "vocabulary.tokenizer: found with model.start_from, whose vocabulary is kept; leave it out"
    if v.grow and not m.start_from:
        yield f"vocabulary.grow: found {v.grow} without model.start_from; set vocabulary.size"
    if m.ngrams and not (m.spelling or m.start_from):
        yield f"model.ngrams: found {m.ngrams} without model.spelling; set that to true"
    for name in ("spelling", "length_share", "order_columns"):
        if getattr(m, name) and m.layers:
            yield f"model.{name}: found with model.layers {m.layers}; only models without layers support it"
    if (share := recipe.train.length_share_in_training) and not m.length_share:
        yield f"train.length_share_in_training: found {share} without model.length_share; set that, too"
    if m.length_share and m.dim <= COLUMNS:
        yield f"model.length_share: its {COLUMNS} columns leave none of model.dim {m.dim}"
    if not recipe.train.objective:
        yield "train.objective: names no objective"


def _column_rules(recipe: Recipe) -> Iterator[str]:
    m, reduce = recipe.model, recipe.reduce
    lengths = COLUMNS if m.length_share else 0
    for section, dim, order in (
        ("model", m.dim, m.order_columns),
        ("reduce", reduce.dim or m.dim, reduce.order_columns),
    ):
        if order > (left := max(0, dim - order - lengths)):
            yield (
                f"{section}.order_columns: {order} need as many columns of the pieces, of which {section}.dim {dim} "
                f"leaves {left}; take at most {max(0, dim - lengths) // 2}"
            )
    if reduce.norm_power != 1 and m.layers:
        yield (
            f"reduce.norm_power: found {reduce.norm_power:g} with model.layers {m.layers}; only models without layers "
            "support it"
        )
    if reduce.order_columns and not reduce.dim:
        yield f"reduce.order_columns: found {reduce.order_columns} without reduce.dim; set that, too"
    kept = trained = m.dim - m.order_columns - lengths
    if reduce.dim:
        if m.layers:
            yield f"reduce.dim: found with model.layers {m.layers}; only models without layers can be reduced"
        kept = reduce.dim - reduce.order_columns - lengths
        if not 0 < kept <= trained:
            yield (
                f"reduce.dim: {reduce.dim} leaves {kept} columns to the pieces, which are trained with {trained}; take "
                f"{lengths + reduce.order_columns + 1} to {trained + lengths + reduce.order_columns}"
            )
    kept = m.bottleneck or kept
    if m.storage == "int4" and kept % 4:
        yield (
            f"model.storage: int4 needs a multiple of 4 columns for the pieces, found {kept} (dim less the columns for "
            "order and length)"
        )


def _teacher_rules(recipe: Recipe) -> Iterator[str]:
    corpora, teacher = recipe.data.corpora, recipe.teacher
    names = [corpus.files[0] for corpus in corpora]
    for name in teacher.corpora:
        if name not in names:
            yield f"teacher.corpora: {name!r} is not among data.corpora ({', '.join(names)})"
    if teacher.epochs and recipe.distil.epochs:
        yield f"teacher.epochs: found {teacher.epochs:g} with [distil], which has its own schedule; leave it out"
    if not teacher.model:
        return
    taught = [c for c in corpora if not teacher.corpora or c.files[0] in teacher.corpora]
    without = [c.name for c in taught if not (c.src_vectors or c.tgt_vectors)]
    if teacher.model == PRECOMPUTED and without and (teacher.corpora or len(without) == len(taught)):
        yield (
            f"teacher.model: {PRECOMPUTED}, but {', '.join(without[:3])} has neither src_vectors nor tgt_vectors; name "
            "a .npy there"
        )
    if teacher.languages and not any(set(teacher.languages) & set(c.langs) for c in taught):
        yield (
            f"teacher.languages: found {', '.join(map(repr, teacher.languages))}, which no corpus that it teaches on "
            f"has; they have {', '.join(sorted({lang for c in taught for lang in c.langs}))}"
        )


def _stage_rules(recipe: Recipe) -> Iterator[str]:
    plan, m = recipe.distil, recipe.model
    if not plan.epochs:
        for name in ("assistant", "layers"):
            if getattr(plan, name):
                yield f"distil.{name}: found without distil.epochs; set these, too"
        return
    if len(plan.epochs) != 4 or not any(plan.epochs):
        yield f"distil.epochs: found {list(plan.epochs)}; it must be four numbers of at least 0, not all of them 0"
    if not m.layers:
        yield "distil.epochs: found with model.layers 0; only models with layers have stages"
    if plan.layers > m.layers:
        yield f"distil.layers: found {plan.layers}, but the assistant has model.layers {m.layers}"
    if m.recurrent and (plan.layers or m.layers) % m.recurrent:
        yield f"model.recurrent: {m.recurrent} does not divide distil.layers {plan.layers}"
    if not (plan.assistant or plan.epochs[0]):
        yield "distil.epochs: found no stage 1 and no distil.assistant; set one of them"
    if (plan.epochs[0] or plan.epochs[3]) and not recipe.teacher.model:
        yield "teacher.model: found none, but it teaches stages 1 and 4 of [distil]; name an encoder"
    if m.start_from:
        yield f"model.start_from: found {m.start_from!r} with [distil]; name the assistant as distil.assistant"
    if recipe.train.objective != Training().objective:
        yield (
            "train.objective: found with [distil], whose stages have objectives of their own; leave it out "
            "(distil.contrast chooses that of stage 4)"
        )


def _objective_rules(recipe: Recipe) -> Iterator[str]:
    m, teacher = recipe.model, recipe.teacher
    for name in recipe.train.objective:
        if name not in OBJECTIVES:
            yield f"train.objective: {name!r} is not one of {', '.join(OBJECTIVES)}"
    chosen = {name: OBJECTIVES[name] for name in sorted(recipe.train.objective)}
    for name, declared in chosen.items():
        if declared.needs_layers and not m.layers:
            yield f"train.objective: {name!r} needs model.layers of at least 1: {declared.needs_layers}"
    teaching = [name for name, declared in OBJECTIVES.items() if declared.taught or declared.pieces]
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
    others = [name for name, declared in chosen.items() if not declared.cosines]
    able = " or ".join(repr(name) for name, declared in OBJECTIVES.items() if declared.cosines)
    for key in ("spelling", "order_columns", "length_share"):
        if getattr(m, key) and others:
            yield f"model.{key}: not with {others[0]!r}: only {able} support it"
