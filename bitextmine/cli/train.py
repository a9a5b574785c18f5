"""bitextmine train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import setting

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="train",
    example=(
        "bitextmine train --pairs pairs.en-fr.tsv --out model",
        "bitextmine train cpu-quick --pairs pairs.en-fr.tsv --out model",
        "bitextmine train cpu-quick --pairs pairs.en pairs.fr --out model",
        "bitextmine train --print-recipe > recipe.toml",
        "bitextmine train recipe.toml --out smaller --dim 128 --set train.temperature=0.1",
        "bitextmine train --from europe5 --pairs mine.en-fr.tsv --epochs 3 --out better",
    ),
    remote=("pairs",),
    resume="run the same command again to resume from the last checkpoint",
)
@click.argument("names", metavar="[RECIPE]", nargs=-1)
@options.text(
    "--pairs",
    "NAME.en-fr.tsv | NAME.en NAME.fr",
    "Sentence pairs, instead of the recipe's, in one file or in two; the names give the languages. Repeatable.",
    multiple=True,
)
@options.text(
    "--from", "NAME|FOLDER", "Start from a built-in encoder or one made by 'bitextmine train'.", dest="start"
)
@options.text("--out", "FOLDER", "Model folder to create.  [required]")
@click.option(
    "--print-recipe",
    is_flag=False,
    flag_value="template",
    metavar="[RECIPE]",
    help="Print a recipe with every key, its meaning and default, or the named recipe, and exit.",
)
@options.data
@options.count(
    "--vocabulary", "Subword pieces.  [default: 32000]", dest="vocabulary__size", least=8, most=1_000_000
)
@options.count("--dim", "Dimensions per vector.  [default: 256]", dest="model__dim")
@options.count("--layers", "Transformer layers.  [default: 0]", dest="model__layers", least=0)
@options.number("--epochs", "Passes over the data.  [default: 5]", dest="train__epochs", min=0, min_open=True)
@options.count("--batch", "Pairs per step.  [default: 4096]", dest="train__batch", least=2)
@options.seed("Random seed.  [default: 1]", dest="train__seed", default=None)
@options.text(
    "--set",
    "KEY=VALUE",
    "Any key of a recipe, such as train.temperature=0.05. Repeatable.",
    dest="settings",
    type=setting,
    multiple=True,
)
@options.flag(
    "--force", "Overwrite --out: a finished model, a checkpoint of another recipe, files of other programs."
)
@options.with_run(options.device)
@click.pass_context
def train(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    pairs: tuple[str, ...],
    start: str | None,
    out: str | None,
    print_recipe: str | None,
    data: str | None,
    settings: tuple[tuple[str, Any], ...],
    force: bool,
    run: Run,
    **flags: Any,
) -> None:
    """Train an encoder on sentence pairs.

    A recipe says what to train on and how: a TOML file, or the name of a built-in recipe (cpu-quick, europe5,
    paper-bilingual). Options override it. Writes a model folder for --model: config.json, model.safetensors,
    tokenizer.model, a model card, the recipe, and a log with a plot. With several GPUs: torchrun --nproc-per-node N -m
    bitextmine train ...
    """
    from bitextmine.training.recipe.load import join_sides

    sources, names = join_sides(pairs, names)
    if len(names) > 1:
        raise click.UsageError(f"expected one recipe, found {', '.join(names)}")
    recipe = names[0] if names else None
    if print_recipe is not None:
        from bitextmine.training.recipe import recipe_text

        click.echo(recipe_text(recipe if recipe and print_recipe == "template" else print_recipe), nl=False)
        return
    if out is None:
        raise click.MissingParameter(param_type="option", param_hint="'--out'")
    if recipe is None and not pairs:
        raise click.UsageError("give a recipe, --pairs, or both")
    from pathlib import Path

    from bitextmine.training.recipe import load_recipe, recipe_from_pairs, start_name

    overrides = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
    overrides.update(settings)
    if start is not None:
        overrides["model.start_from"] = start_name(start)
    folder = None if data is None else Path(data)
    if recipe is not None:
        plan = load_recipe(recipe, overrides, pairs=sources, folder=folder)
    else:
        plan = recipe_from_pairs(sources, overrides, folder=folder)
    if plan.model.start_from and not plan.vocabulary.grow:
        for key in overrides:
            if key.startswith("vocabulary."):
                asked = "--vocabulary" if key == "vocabulary.size" else f"--set {key}"
                raise click.UsageError(
                    f"{asked}: --from keeps the vocabulary of its encoder; --set vocabulary.grow=N adds pieces to it"
                )

    from bitextmine.training import trainer  # only now: a bad recipe is reported without loading torch

    try:
        trainer.train(plan, Path(out), run, force=force)
    except KeyboardInterrupt:
        if not (Path(out) / "work" / "checkpoint.pt").exists():
            assert isinstance(ctx.command, Command)
            ctx.command.resume = "no checkpoint yet: the same command trains from the start"
        raise
