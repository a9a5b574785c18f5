"""The model card: what a trained encoder is, what it was trained on and how to make it again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from bitextmine.signature import signature
from bitextmine.training.cache import DROPPED, PairCache
from bitextmine.training.recipe import Recipe, recipe_settings
from bitextmine.training.start import Start
from bitextmine.training.teacher.lessons import Lessons
from bitextmine.version import __version__

__all__ = ["model_card", "training_signature"]


def training_signature(recipe: Recipe, steps: int) -> str:
    """The signature of a run of so many steps: the recipe's digest, and in words what tells most about it."""
    t, m = recipe.train, recipe.model
    return signature(
        recipe=recipe.digest(),
        layers=m.layers,
        dim=m.dim,
        objective="+".join(sorted(t.objective)),
        batch=t.batch,
        steps=steps,
        temperature=t.temperature,
        seed=t.seed,
        version=__version__,
    )


def model_card(
    recipe: Recipe,
    caches: Sequence[PairCache],
    steps: int,
    pairs: int,
    scores: Mapping[str, float],
    start: Start | None = None,
    lessons: Lessons | None = None,
) -> str:
    """Markdown: kind and size, the data with the held-out P@1, the recipe (what is not at its default), the
    signature. steps, pairs: what the weights have seen; start: what they were before; lessons: of a teacher."""
    before = start.config.languages if start else ()
    languages = sorted({*before, *(lang for cache in caches for lang in cache.corpus.langs)})
    dropped = [why for why in DROPPED if any(cache.counts[why] for cache in caches)]
    m = recipe.model
    named = dataclasses.replace(  # wherever they lie
        recipe,
        model=dataclasses.replace(m, start_from=Path(m.start_from).name),
        teacher=dataclasses.replace(recipe.teacher, model=Path(recipe.teacher.model).name),
        distil=dataclasses.replace(recipe.distil, assistant=Path(recipe.distil.assistant).name),
    )
    kind = f"{m.layers} transformer layer{'s' * (m.layers > 1)}" if m.layers else "mean of subword vectors"
    lines = [
        f"# A bitextmine encoder for {', '.join(languages)}",
        "",
        f"{kind}, {recipe.reduce.dim or m.dim} dimensions, trained on {pairs:,} pairs in {steps:,} steps"
        " (a pair counts each time it is seen)"
        + (f", going on from the encoder {start.folder.name} (hash {start.hash})" if start else "")
        + (
            f", taught by {lessons.teacher.name} (hash {lessons.teacher.hash}) on {len(lessons):,} pairs"
            if lessons
            else ""
        )
        + ".",
        "",
        "## Data",
        "",
        f"| training text | languages | pairs read | kept | {''.join(f'{why} | ' for why in dropped)}P@1 on held-out "
        "pairs |",
        "|---|---|---|---|---|" + "---|" * len(dropped),
    ]
    for cache in caches:
        score = scores.get(cache.corpus.name)
        shown = f"{score:.1f} of {len(cache.valid):,}" if score is not None else "-"
        langs = "-".join(cache.corpus.langs)
        counts = [f"{cache.counts[key]:,}" for key in ("read", "kept", *dropped)]
        lines.append(f"| {cache.corpus.name} | {langs} | {' | '.join(counts)} | {shown} |")
    lines += [
        "",
        "## Recipe",
        "",
        "What is not at its default; `recipe.json` has every key.",
        "",
        "```toml",
        recipe_settings(named).rstrip("\n"),
        "```",
        "",
        f"Signature: `{training_signature(recipe, steps)}`",
        "",
    ]
    return "\n".join(lines)
