"""Gives an encoder that is trained a form for similarity, with what a teacher makes of the corpora of a recipe."""

from __future__ import annotations

import os
from pathlib import Path

from bitextmine.encoder.folder import PACKAGED, TOKENIZER, WEIGHTS, read_folder, resolve
from bitextmine.encoder.foreign import read_foreign
from bitextmine.encoder.forms import SIMILARITY, write_similarity
from bitextmine.encoder.hub import is_hub_name
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import piece_vectors, read_weights
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.streams import check_writable
from bitextmine.training.cache import open_caches
from bitextmine.training.pairs import find_corpora
from bitextmine.training.recipe import Recipe
from bitextmine.training.similarity import SimilarityFit, fit_form
from bitextmine.training.teacher.lessons import open_lessons
from bitextmine.training.teacher.source import open_teacher

__all__ = ["fit_similarity"]


def fit_similarity(
    model: str | os.PathLike[str],
    recipe: Recipe,
    *,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    force: bool = False,
    show_progress: bool | None = None,
) -> tuple[SimilarityFit, Path]:
    """Gives ``model``, the folder of an encoder without layers, a form for similarity, by the teacher, the corpora and
    the [similarity] of a recipe. Writes similarity.safetensors into the folder; returns how it went, and that path.

    cache: the folder of the tokenised corpora and of the teacher's vectors (default: work/cache in the model's folder).
    device: the teacher's. force: the model may have such a form, which is written over.

    Raises UsageError for an encoder of the package or the hub, for one with layers or that others made, and for a
    recipe without a teacher or with similarity.steps 0; BitextmineError as `open_lessons` and `fit_form` do, for a form
    that is there, and for files that cannot be read or written.
    """
    if os.fspath(model) in PACKAGED or is_hub_name(model):
        raise UsageError(
            f"{os.fspath(model)}: name a model folder of your own, into which a file can be written"
        )
    folder = resolve(model)
    if read_foreign(folder) is not None:
        raise UsageError(
            f"{os.fspath(model)}: was not made by bitextmine; only its sums of pieces have such a form"
        )
    place = folder / SIMILARITY
    config, own = read_folder(folder)
    if config.layers:
        raise UsageError(f"{os.fspath(model)}: it has layers; only sums of pieces have a form for similarity")
    if not recipe.teacher.model:
        raise UsageError("recipe: teacher.model: similarity is learned of a teacher; name an encoder")
    if not recipe.similarity.steps:
        raise UsageError("recipe: similarity.steps: found 0; give --set similarity.steps=240, say")
    if place.exists() and not force:
        raise BitextmineError(f"{place}: it is there already; pass --force to write over it")
    check_writable(place)
    find_corpora(recipe)
    teacher = open_teacher(recipe, device)
    assert teacher is not None
    tokenizer = Tokenizer(folder / TOKENIZER)
    where = folder / "work" / "cache" if cache is None else Path(cache)
    caches = open_caches(where, recipe, tokenizer, show_progress=show_progress)
    lessons = open_lessons(where, recipe, caches, tokenizer, teacher, show_progress=show_progress)
    vectors = piece_vectors(read_weights(config, folder / WEIGHTS))
    found = fit_form(
        vectors,
        lessons,
        own.ngrams,
        config.max_pieces,
        recipe.similarity,
        seed=recipe.train.seed,
        show_progress=show_progress,
    )
    try:
        write_similarity(folder, found.arrays)
    except OSError as e:
        raise BitextmineError(f"{place}: cannot be written: {e.strerror or e}") from e
    return found, place
