"""What a recipe's values may be: each key within its limits, and keys that fit together."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from bitextmine.encoder.columns.lengths import COLUMNS
from bitextmine.encoder.precomputed import PRECOMPUTED
from bitextmine.errors import BitextmineError
from bitextmine.training.recipe.keys import SECTIONS, Recipe, Training
from bitextmine.training.recipe.limits import limits_in_words, within

__all__ = ["check_recipe"]


def check_recipe(recipe: Recipe) -> Recipe:
    """Raises BitextmineError naming the first key with an impossible value; returns the recipe."""
    d, m, t = recipe.data, recipe.model, recipe.train
    _must(bool(d.corpora), "data.corpora", "names no corpus", "add a [[data.corpora]] table, or pass --pairs")
    for i, c in enumerate(d.corpora, 1):
        where = f"data.corpora {i}"
        _must(bool(c.pairs) != bool(c.src and c.tgt), where, "needs either pairs, or src and tgt")
        _must(
            len(c.langs) == 2 and c.langs[0] != c.langs[1],
            f"{where}: langs",
            f"found {list(c.langs)}",
            "name two languages",
        )
        _check_limits(c, f"{where}: ")
    for section in SECTIONS:
        _check_limits(getattr(recipe, section), f"{section}.")
    _must(
        m.layers == 0 or m.dim % m.heads == 0, "model.heads", f"{m.heads} does not divide model.dim {m.dim}"
    )
    _must(
        not m.bottleneck or (m.layers > 0 and m.bottleneck < m.dim),
        "model.bottleneck",
        f"found {m.bottleneck} with model.dim {m.dim} and model.layers {m.layers}",
        "it must be below dim, and only models with layers have one",
    )
    _must(
        not m.recurrent or (m.recurrent <= m.layers and m.layers % m.recurrent == 0),
        "model.recurrent",
        f"{m.recurrent} does not divide model.layers {m.layers}",
    )
    _must(
        not (m.start_from and recipe.vocabulary.tokenizer),
        "vocabulary.tokenizer",
        "found with model.start_from, whose vocabulary is kept",
        "leave it out",
    )
    _must(
        bool(m.start_from) or not recipe.vocabulary.grow,
        "vocabulary.grow",
        f"found {recipe.vocabulary.grow} without model.start_from",
        "set vocabulary.size",
    )
    _must(
        m.spelling or bool(m.start_from) or not m.ngrams,
        "model.ngrams",
        f"found {m.ngrams} without model.spelling",
        "set that to true",
    )
    _must(
        not (m.spelling and m.layers),
        "model.spelling",
        f"found with model.layers {m.layers}",
        "only models without layers have it",
    )
    _must(
        not (m.length_share and m.layers),
        "model.length_share",
        f"found with model.layers {m.layers}",
        "only models without layers have it",
    )
    _must(
        m.length_share > 0 or not t.length_share_in_training,
        "train.length_share_in_training",
        f"found {t.length_share_in_training} without model.length_share",
        "set that, too",
    )
    _must(
        not m.length_share or m.dim > COLUMNS,
        "model.length_share",
        f"its {COLUMNS} numbers leave none of model.dim {m.dim}",
    )
    _must(bool(t.objective), "train.objective", "names no objective")
    _check_columns(recipe)
    _check_teacher(recipe)
    _check_stages(recipe)
    return recipe


def _check_stages(recipe: Recipe) -> None:
    """What the stages are made of."""
    epochs, m = recipe.distil.epochs, recipe.model
    if not epochs:
        for name in ("assistant", "layers"):
            _must(
                not getattr(recipe.distil, name),
                f"distil.{name}",
                "found without distil.epochs",
                "set these, too",
            )
        return
    _must(
        len(epochs) == 4 and all(0 <= n < math.inf for n in epochs) and any(epochs),
        "distil.epochs",
        f"found {list(epochs)}",
        "it must be four numbers of at least 0, not all of them 0",
    )
    _must(
        m.layers > 0,
        "distil.epochs",
        f"found with model.layers {m.layers}",
        "only models with layers have stages",
    )
    _must(
        recipe.distil.layers <= m.layers,
        "distil.layers",
        f"{recipe.distil.layers} of an assistant of model.layers {m.layers}",
        "a student has no more",
    )
    _must(
        not m.recurrent or (recipe.distil.layers or m.layers) % m.recurrent == 0,
        "model.recurrent",
        f"{m.recurrent} does not divide distil.layers {recipe.distil.layers}",
    )
    _must(
        bool(recipe.distil.assistant) or epochs[0] > 0,
        "distil.epochs",
        "found no stage 1 and no distil.assistant",
        "name one, or have it taught",
    )
    _must(
        bool(recipe.teacher.model) or not (epochs[0] or epochs[3]),
        "teacher.model",
        "found none, but stages 1 and 4 of [distil] are taught by it",
        "name an encoder",
    )
    _must(
        not m.start_from,
        "model.start_from",
        f"found {m.start_from!r} with [distil], whose student is made of the assistant",
        "name it as distil.assistant",
    )
    _must(
        recipe.train.objective == Training().objective,
        "train.objective",
        "found with [distil], whose stages have objectives of their own",
        "leave it out; distil.contrast chooses that of stage 4",
    )


def _check_teacher(recipe: Recipe) -> None:
    """Who teaches, and on which corpora."""
    corpora, teacher = recipe.data.corpora, recipe.teacher
    names = [c.files[0] for c in corpora]
    for name in teacher.corpora:
        _must(
            name in names,
            "teacher.corpora",
            f"{name!r} is none of data.corpora",
            f"it has {', '.join(names)}",
        )
    ready = teacher.model == PRECOMPUTED
    for i, c in enumerate(corpora, 1):
        _must(
            ready or not (c.src_vectors or c.tgt_vectors),
            f"data.corpora {i}",
            f"found src_vectors or tgt_vectors with teacher.model {teacher.model!r}",
            f'set that to "{PRECOMPUTED}"',
        )
    _must(
        not (teacher.epochs and recipe.distil.epochs),
        "teacher.epochs",
        f"found {teacher.epochs:g} with [distil], whose stages say when it teaches",
        "leave it out",
    )
    _must(
        not (teacher.epochs and recipe.train.patience),
        "teacher.epochs",
        f"found {teacher.epochs:g} with train.patience, which may end the training before it teaches",
        "leave one of them out",
    )
    if not teacher.model:
        return
    taught = [c for c in corpora if not teacher.corpora or c.files[0] in teacher.corpora]
    if ready:
        without = [c.name for c in taught if not (c.src_vectors or c.tgt_vectors)]
        _must(
            len(without) < len(taught) and not (teacher.corpora and without),
            "teacher.model",
            f"{PRECOMPUTED}, but {', '.join(without[:3])} has neither src_vectors nor tgt_vectors",
            "name a .npy there",
        )
    read = set(teacher.languages)
    _must(
        not read or any(read & set(c.langs) for c in taught),
        "teacher.languages",
        f"found {', '.join(map(repr, teacher.languages))}, which no corpus that it teaches on has",
        f"they have {', '.join(sorted({lang for c in taught for lang in c.langs}))}",
    )


def _check_columns(recipe: Recipe) -> None:
    """What the vectors' columns are for, while they are trained and when they are cut."""
    m, reduce = recipe.model, recipe.reduce
    lengths = COLUMNS if m.length_share else 0
    trained = _pieces_columns("model", m.dim, m.order_columns, lengths, m.layers)
    _must(
        reduce.norm_power == 1 or not m.layers,
        "reduce.norm_power",
        f"found {reduce.norm_power:g} with model.layers {m.layers}",
        "only models without layers can have it",
    )
    if not reduce.dim:
        _must(
            not reduce.order_columns,
            "reduce.order_columns",
            f"found {reduce.order_columns} without reduce.dim",
            "set that, too",
        )
        kept = trained
    else:
        _must(
            not m.layers,
            "reduce.dim",
            f"found with model.layers {m.layers}",
            "only models without layers can be cut",
        )
        kept = _pieces_columns("reduce", reduce.dim, reduce.order_columns, lengths, 0)
        _must(
            0 < kept <= trained,
            "reduce.dim",
            f"{reduce.dim} leaves {kept} numbers to the pieces, which are trained with {trained}",
            f"take {lengths + reduce.order_columns + 1} to {trained + lengths + reduce.order_columns}",
        )
    kept = m.bottleneck or kept
    _must(
        m.storage != "int4" or kept % 4 == 0,
        "model.storage",
        f"int4 needs a number of pieces' columns that 4 divides, found {kept} (the dim less the columns for order and "
        "length)",
    )


def _pieces_columns(section: str, dim: int, order: int, lengths: int, layers: int) -> int:
    """How many of dim numbers are the pieces' own."""
    left = dim - order - lengths
    _must(
        not (order and layers),
        f"{section}.order_columns",
        f"found with model.layers {layers}",
        "only models without layers have them",
    )
    _must(
        order <= max(0, left),
        f"{section}.order_columns",
        f"{order} are made of as many numbers of the pieces' vectors, of which {section}.dim {dim} leaves "
        f"{max(0, left)}",
        f"take at most {max(0, dim - lengths) // 2}",
    )
    return left


def _check_limits(part: Any, where: str) -> None:
    """Raises BitextmineError for the first number of a section that is not finite or outside its limits."""
    for field in dataclasses.fields(part):
        value, limits = getattr(part, field.name), field.metadata.get("limits", {})
        fits = not isinstance(value, float) or math.isfinite(value)
        fits = fits and within(value, limits)
        rule = limits_in_words(limits) or "a finite number"
        _must(fits, f"{where}{field.name}", f"found {value!r}", f"it must be {rule}")


def _must(holds: bool, key: str, found: str, hint: str = "") -> None:
    if not holds:
        raise BitextmineError(f"recipe: {key}: {found}" + (f"; {hint}" if hint else ""))
