"""The keys of the two papers' recipes: rules of their objectives and stages."""

from collections.abc import Iterator

from bitextmine.training.recipe.keys import Recipe, Training


def stage_rules(recipe: Recipe) -> Iterator[str]:
    """Yield what is wrong with the keys of [distil]."""
    plan, m = recipe.distil, recipe.model
    if not plan.epochs:
        return
    if len(plan.epochs) != 4 or not plan.epochs[0]:
        yield f"distil.epochs: found {list(plan.epochs)}; it must be four numbers of at least 0, the first above 0"
    if not m.layers:
        yield "distil.epochs: found with model.layers 0; only models with layers have stages"
    if plan.layers > m.layers:
        yield f"distil.layers: found {plan.layers}, but the assistant has model.layers {m.layers}"
    if m.recurrent and (plan.layers or m.layers) % m.recurrent:
        yield f"model.recurrent: {m.recurrent} does not divide distil.layers {plan.layers}"
    if not recipe.teacher.model:
        yield "teacher.model: found none, but it teaches stages 1 and 4 of [distil]; name an encoder"
    if recipe.teacher.epochs:
        yield f"teacher.epochs: found {recipe.teacher.epochs:g} with [distil], which has its own schedule; leave it out"
    if m.start_from:
        yield f"model.start_from: found {m.start_from!r} with [distil], whose stage 1 starts from nothing; leave it out"
    if recipe.train.objective != Training().objective:
        yield (
            "train.objective: found with [distil], whose stages have objectives of their own; leave it out "
            "(distil.contrast chooses that of stage 4)"
        )
