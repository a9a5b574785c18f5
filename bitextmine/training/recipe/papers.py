"""The keys of the two papers' recipes: rules of their objectives and stages, and the shape of an assistant."""

from collections.abc import Collection, Iterator

from bitextmine.errors import BitextmineError
from bitextmine.training.recipe.keys import Recipe, Training
from bitextmine.training.recipe.shape import shaped, start_encoder


def objective_rules(recipe: Recipe) -> Iterator[str]:
    """Yield what is wrong with the papers' objectives."""
    if "mlm" in recipe.train.objective and not recipe.model.layers:
        yield (
            "train.objective: 'mlm' needs model.layers of at least 1: without layers no state knows its neighbours"
        )


def stage_rules(recipe: Recipe) -> Iterator[str]:
    """Yield what is wrong with the keys of [distil]."""
    plan, m = recipe.distil, recipe.model
    if not plan.epochs:
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
    if recipe.teacher.epochs:
        yield f"teacher.epochs: found {recipe.teacher.epochs:g} with [distil], which has its own schedule; leave it out"
    if m.start_from:
        yield f"model.start_from: found {m.start_from!r} with [distil]; name the assistant as distil.assistant"
    if recipe.train.objective != Training().objective:
        yield (
            "train.objective: found with [distil], whose stages have objectives of their own; leave it out "
            "(distil.contrast chooses that of stage 4)"
        )


def with_assistant(recipe: Recipe, given: Collection[str]) -> Recipe:
    """Return the recipe with the shape of its distil.assistant, except for the keys that make a student small."""
    name = recipe.distil.assistant
    if not name:
        return recipe
    folder, config = start_encoder(recipe, name, "recipe: distil.assistant")
    if config.bottleneck or config.recurrent:
        raise BitextmineError(
            f"recipe: distil.assistant: {folder}: found bottleneck {config.bottleneck} and recurrent "
            f"{config.recurrent}; an assistant needs layers that are all different, and no bottleneck"
        )
    return shaped(recipe, config, f"distil.assistant {name}", given, but=("bottleneck", "recurrent"))
