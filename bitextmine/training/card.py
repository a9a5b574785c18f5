"""The model card of a trained encoder: its kind, its data, and its recipe."""

from __future__ import annotations

from bitextmine.signature import signature
from bitextmine.training.cache import DROPPED
from bitextmine.training.recipe import recipe_settings
from bitextmine.training.run import TrainingRun
from bitextmine.version import __version__


def model_card(training: TrainingRun) -> str:
    """Return the card as Markdown: kind and size, data with the held-out P@1, recipe, signature."""
    recipe, m, t = training.recipe, training.recipe.model, training.recipe.train
    caches, start, lessons = training.caches, training.inputs.start, training.inputs.lessons
    before = start.config.languages if start else ()
    languages = sorted({*before, *(lang for cache in caches for lang in cache.corpus.langs)})
    kind = f"{m.layers} transformer layer{'s' * (m.layers > 1)}" if m.layers else "mean of subword vectors"
    made = (
        f"{kind}, {recipe.reduce.dim or m.dim} dimensions, trained on {training.pairs:,} pairs in "
        f"{training.step:,} steps (a pair counts each time it is seen)"
    )
    if start:
        made += f", continuing from the encoder {start.folder.name} (hash {start.hash})"
    if lessons:
        made += f", taught by {lessons.teacher.name} (hash {lessons.teacher.hash}) on {len(lessons):,} pairs"
    dropped = [why for why in DROPPED if any(cache.counts[why] for cache in caches)]
    columns = ["training text", "languages", "pairs read", "kept", *dropped, "P@1 on held-out pairs"]
    rows = []
    for cache in caches:
        score = training.scores.get(cache.corpus.name)
        shown = f"{score:.1f} of {len(cache.valid):,}" if score is not None else "-"
        counts = [f"{cache.counts[key]:,}" for key in ("read", "kept", *dropped)]
        rows.append([cache.corpus.name, "-".join(cache.corpus.langs), *counts, shown])
    run = signature(
        recipe=recipe.digest(),
        layers=m.layers,
        dim=m.dim,
        objective="+".join(sorted(t.objective)),
        batch=t.batch,
        steps=training.step,
        temperature=t.temperature,
        seed=t.seed,
        version=__version__,
    )
    lines = [
        f"# A bitextmine encoder for {', '.join(languages)}",
        "",
        f"{made}.",
        "",
        "## Data",
        "",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "## Recipe",
        "",
        "Settings that are not at their defaults; `recipe.json` has every key.",
        "",
        "```toml",
        recipe_settings(recipe.named()).rstrip("\n"),
        "```",
        "",
        f"Signature: `{run}`",
        "",
    ]
    return "\n".join(lines)
