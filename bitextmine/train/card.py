"""The model card: what a trained encoder is, what it was trained on and how to make it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bitextmine import __version__
from bitextmine.signature import signature
from bitextmine.train.cache import PairCache
from bitextmine.train.recipe import Recipe

__all__ = ["model_card", "training_signature"]


def training_signature(recipe: Recipe, steps: int) -> str:
    t, m = recipe.train, recipe.model
    return signature(
        recipe=recipe.digest(), layers=m.layers, dim=m.dim, objective="+".join(sorted(t.objective)), batch=t.batch,
        steps=steps, temperature=t.temperature, seed=t.seed, version=__version__,
    )  # fmt: skip


def model_card(
    recipe: Recipe, caches: Sequence[PairCache], steps: int, pairs: int, scores: Mapping[str, float]
) -> str:
    """Markdown."""
    languages = sorted({lang for cache in caches for lang in cache.corpus.langs})
    kind = f"{recipe.model.layers} transformer layers" if recipe.model.layers else "mean of subword vectors"
    lines = [
        f"# A bitextmine encoder for {', '.join(languages)}",
        "",
        f"{kind}, {recipe.model.dim} dimensions, trained on {pairs:,} pairs in {steps:,} steps"
        " (a pair counts each time it is seen).",
        "",
        "| training text | languages | pairs read | kept | P@1 on held-out pairs |",
        "|---|---|---|---|---|",
    ]
    for cache in caches:
        score = scores.get(cache.corpus.name)
        shown = (
            f"{score:.1f} of {min(len(cache.valid), recipe.data.valid_pairs)}" if score is not None else "-"
        )
        langs = "-".join(cache.corpus.langs)
        read, kept = cache.counts["read"], cache.counts["kept"]
        lines.append(f"| {cache.corpus.name} | {langs} | {read:,} | {kept:,} | {shown} |")
    lines += ["", f"Signature: `{training_signature(recipe, steps)}`", ""]
    return "\n".join(lines)
