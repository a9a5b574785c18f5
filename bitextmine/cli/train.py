"""bitextmine train"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Number, Setting


@click.command(
    cls=Command,
    name="train",
    example="bitextmine train --pairs pairs.en-fr.tsv --out model",
    remote=("pairs",),
    resume="the same command again goes on from the last checkpoint",
)
@click.argument("recipe", metavar="[RECIPE]", required=False)
@click.option(
    "--pairs",
    multiple=True,
    metavar="NAME.en-fr.tsv",
    help="Sentence pairs (tab-separated; the name tells the languages), in place of the recipe's; may be repeated.",
)
@click.option(
    "--from",
    "start",
    metavar="NAME|FOLDER",
    help="Train on from an encoder of 'bitextmine train', or one in the package.",
)
@click.option("--out", metavar="FOLDER", help="The model folder to make.  [required]")
@click.option(
    "--print-recipe",
    is_flag=False,
    flag_value="template",
    metavar="[RECIPE]",
    help="Print a recipe of every key with its meaning and default, or the one named, and stop.",
)
@click.option(
    "--data", metavar="FOLDER", help="Where the corpora lie.  [default: as the recipe says, or here]"
)
@click.option(
    "--vocabulary",
    "vocabulary__size",
    type=click.IntRange(8, 1_000_000),
    metavar="N",
    help="Subword pieces.  [default: 32000]",
)
@click.option(
    "--dim", "model__dim", type=click.IntRange(min=1), metavar="N", help="Numbers per vector.  [default: 256]"
)
@click.option(
    "--layers",
    "model__layers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Transformer layers.  [default: 0]",
)
@click.option(
    "--epochs",
    "train__epochs",
    type=Number(min=0, min_open=True),
    metavar="X",
    help="Passes over the data.  [default: 5]",
)
@click.option(
    "--batch",
    "train__batch",
    type=click.IntRange(min=2),
    metavar="N",
    help="Pairs per step.  [default: 4096]",
)
@click.option(
    "--seed", "train__seed", type=options.SEED, metavar="N", help="Of everything random.  [default: 1]"
)
@click.option(
    "--set",
    "settings",
    type=Setting(),
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of a recipe, such as train.temperature=0.05; may be repeated.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Write over what --out holds: a finished model, a checkpoint of another recipe, files of other programs.",
)
@options.max_line
@options.device
@click.pass_context
def train(
    ctx: click.Context,
    /,
    recipe: str | None,
    pairs: tuple[str, ...],
    start: str | None,
    out: str | None,
    print_recipe: str | None,
    data: str | None,
    settings: tuple[tuple[str, Any], ...],
    device: str,
    force: bool,
    **flags: Any,
) -> None:
    """Train an encoder on sentence pairs.

    What to train on and how stands in a recipe: a TOML file, or the name of one in the package (such as cpu-quick,
    europe5 or paper-bilingual); options win over it. Writes a model folder for --model: config.json, model.safetensors,
    tokenizer.model, with a model card, the recipe, the log and a plot of it. An interrupted run is taken up at its last
    checkpoint. With several GPUs: torchrun --nproc-per-node N -m bitextmine train ...

    \b
    bitextmine train cpu-quick --pairs pairs.en-fr.tsv --out model
    bitextmine train --print-recipe > recipe.toml
    bitextmine train recipe.toml --out smaller --dim 128 --set train.temperature=0.1
    bitextmine train --from europe5 --pairs mine.en-fr.tsv --epochs 3 --out better
    """
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
        plan = load_recipe(recipe, overrides, pairs=pairs, folder=folder)
    else:
        plan = recipe_from_pairs(pairs, overrides, folder=folder)
    if plan.model.start_from and not plan.vocabulary.grow:
        for key in overrides:
            if key.startswith("vocabulary."):
                asked = "--vocabulary" if key == "vocabulary.size" else f"--set {key}"
                raise click.UsageError(
                    f"{asked}: the encoder of --from keeps its vocabulary; --set vocabulary.grow=N adds pieces to it"
                )

    from bitextmine.training import trainer  # only now: a bad recipe need not wait for torch

    try:
        trainer.train(plan, Path(out), device=device, force=force)
    except KeyboardInterrupt:
        if not (Path(out) / "work" / "checkpoint.pt").exists():
            assert isinstance(ctx.command, Command)
            ctx.command.resume = "no checkpoint was due yet: the same command again trains from the start"
        raise
