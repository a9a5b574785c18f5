"""bitextmine encoder: join, reduce, fit-scorer"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Group
from bitextmine.cli.types import Number

out_folder = click.option("--out", required=True, metavar="FOLDER", help="The model folder to make.")
force = click.option("--force", is_flag=True, help="Write over what --out names.")
corpora_folder = click.option(
    "--data", metavar="FOLDER", help="Where its corpora lie.  [default: as the recipe says, or here]"
)
fewest = click.IntRange(min=1)
share = Number(min=0, max=1, max_open=True)


@click.group(
    name="encoder",
    cls=Group,
    example="bitextmine encoder reduce default corpus.en corpus.fr --dim 256 --out smaller",
)
def encoder() -> None:
    """Make an encoder out of others that are trained, without training again."""


@encoder.command(
    name="join",
    example="bitextmine encoder join first second --text corpus.en --length-share 0.12 --out both",
)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--text", required=True, metavar="FILE", help="Text like that to be encoded.")
@click.option(
    "--length-share",
    type=share,
    default=0.0,
    show_default=True,
    metavar="X",
    help="Share of a vector's squared length that tells how long the sentence is, as model.length_share of a recipe.",
)
@out_folder
@force
@options.errors
@options.max_line
def join(models: tuple[str, ...], text: str, out: str, **settings: Any) -> None:
    """One encoder out of several of the same vocabulary: their vectors side by side.

    The mistakes of two trainings are not the same, and the mean of their cosines makes fewer. For encoders without
    layers. The first lines of the text tell how to scale each, so that all weigh the same. "encoder reduce" then
    brings the whole to the size of one.

    \b
    bitextmine encoder join one two three --text corpus.en --out all
    bitextmine encoder reduce all corpus.en corpus.fr --dim 480 --storage int4 --out model
    """
    from bitextmine.training.joining import join_encoders

    for part in join_encoders(models, text, out, **settings):
        click.echo(f"{part.model}: {part.dim} dimensions, {part.shared:,} of the {part.ngrams:,} n-grams")


@encoder.command(
    name="reduce",
    example="bitextmine encoder reduce europe5 corpus.en corpus.fr --dim 256 --storage int4 --out smaller",
)
@click.argument("model", metavar="MODEL")
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True)
@click.option(
    "--lines",
    type=fewest,
    default=100_000,
    show_default=True,
    metavar="N",
    help="Read so many sentences of each text.",
)
@click.option(
    "--dim",
    type=fewest,
    default=256,
    show_default=True,
    metavar="N",
    help="Numbers per vector, all columns counted.",
)
@click.option(
    "--length-share",
    type=share,
    metavar="X",
    help="Share of the squared length that tells how long the sentence is.  [default: as it is]",
)
@click.option(
    "--order-columns",
    type=click.IntRange(min=0),
    metavar="N",
    help="So many of --dim tell where the pieces stand.  [default: as it is]",
)
@click.option(
    "--order-weight",
    type=Number(min=0),
    metavar="X",
    help="What these count.  [default: as it is, or else 0.5]",
)
@click.option(
    "--whiten",
    type=Number(min=0, max=1),
    default=0,
    show_default=True,
    metavar="X",
    help="Divide each axis by the spread of the text's vectors along it, to this power: 0.4 favours what is alike over "
    "what is a translation.",
)
@click.option(
    "--storage",
    type=click.Choice(["int8", "int4", "float32"]),
    default="int8",
    show_default=True,
    help="Of the piece vectors.",
)
@out_folder
@force
@options.errors
@options.max_line
def reduce(model: str, texts: tuple[str, ...], out: str, errors: str, force: bool, **reduction: Any) -> None:
    """A smaller encoder: its piece vectors turned and cut to fewer dimensions.

    For encoders without layers. Of all projections this one keeps most of the cosines of the sentences of the given
    text (a principal component analysis of their vectors).

    \b
    bitextmine encoder reduce all corpus.en.zst corpus.fr.zst --dim 480 --order-columns 96 --order-weight 0.6 \\
        --storage int4 --out model
    bitextmine encoder reduce europe5 corpus.en corpus.fr --dim 376 --length-share 0 --order-columns 0 --whiten 0.4 \\
        --storage int4 --out similar
    """
    from bitextmine.training.reducing import Reduction, reduce_encoder

    kept = reduce_encoder(model, texts, out, Reduction(**reduction), errors=errors, force=force)
    click.echo(f"{kept:.4f} of the squared length is kept")


@encoder.command(
    name="fit-scorer", example="bitextmine encoder fit-scorer trained --recipe europe5 --data FOLDER"
)
@click.argument("trained", metavar="TRAINED")
@click.option("--recipe", required=True, metavar="RECIPE", help="The recipe that TRAINED was made by.")
@corpora_folder
@click.option("--cache", metavar="FOLDER", help="The tokenised corpora.  [default: TRAINED/work/cache]")
@click.option(
    "--model", metavar="MODEL", help="The encoder that mines, a name or a folder.  [default: TRAINED]"
)
@click.option(
    "--corpora",
    default="europarl=4,laws,tatoeba=0.5",
    show_default=True,
    metavar="NAME=X,NAME",
    help="Those whose names begin so, and what they weigh (1).",
)
@click.option(
    "--held-out",
    type=fewest,
    default=500,
    show_default=True,
    metavar="N",
    help="Of these, those with so many held-out pairs.",
)
@click.option("--draws", type=fewest, default=5, show_default=True, metavar="N", help="Tasks of each corpus.")
@click.option(
    "--distractors",
    type=click.IntRange(min=0),
    multiple=True,
    default=(40_000, 5_000, 15_000, 1_000, 200),
    show_default=True,
    metavar="N",
    help="Sentences without a translation on either side of a task; given again, for the next task.",
)
@click.option(
    "--hidden", type=fewest, default=32, show_default=True, metavar="N", help="Units of the hidden layer."
)
@click.option("--steps", type=fewest, default=600, show_default=True, metavar="N", help="Steps of the fit.")
@click.option(
    "--decay", type=Number(min=0), default=0.1, show_default=True, metavar="X", help="Weight decay."
)
@click.option(
    "--seed", type=options.SEED, default=1, show_default=True, metavar="N", help="Of the distractors."
)
@click.option(
    "--out",
    metavar="FILE",
    help="The scorer to write.  [default: scorer.safetensors in the encoder's folder, where mine finds it]",
)
@force
@options.max_line
def fit_scorer_command(
    trained: str,
    recipe: str,
    data: str | None,
    cache: str | None,
    model: str | None,
    corpora: str,
    out: str | None,
    force: bool,
    **fitting: Any,
) -> None:
    """Fit the scorer of an encoder, which gives "mine" its log odds.

    TRAINED is what "bitextmine train" made, with its work folder. Of each corpus the held-out pairs are hidden among
    sentences whose translations are not there, and mined: found pairs are right if they are held-out ones. Prints, for
    each task in turn, the best F1 by margin and by a scorer fitted to the other kinds of text (a kind is what a corpus'
    name begins with, up to the first dot), and that scorer's expected calibration error.
    """
    from pathlib import Path

    from bitextmine.training.fit_scorer import Fitting, fit_scorer
    from bitextmine.training.recipe import load_recipe

    plan = load_recipe(recipe, folder=None if data is None else Path(data))
    weights: dict[str, float] = {}
    for part in corpora.split(","):
        name, _, weight = part.partition("=")
        try:
            weights[name] = float(weight or 1)
        except ValueError:
            raise click.UsageError(f"--corpora {part}: expected NAME or NAME=WEIGHT") from None
    wanted = Fitting(corpora=weights, **fitting)
    found = fit_scorer(trained, plan, out, wanted, model=model, cache=cache, force=force)
    click.echo(
        "| corpus | candidates | right | F1 by margin | F1 by a scorer fitted to the others | "
        "share right: estimated | in truth | calibration error |"
    )
    click.echo("|---|---|---|---|---|---|---|---|")
    for task in found.tasks:
        click.echo(
            f"| {task.corpus} | {task.candidates:,} | {task.right:,} of {task.gold:,} | {task.f1_by_margin:.2f} | "
            f"{task.f1_by_scorer:.2f} | {100 * task.share:.2f}% | {100 * task.right / task.candidates:.2f}% | "
            f"{task.calibration_error:.4f} |"
        )
    click.echo(f"\n{found.path}: scorer {found.scorer.hash}")
