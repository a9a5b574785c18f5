"""bitextmine encoder: reduce, fit-scorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Group
from bitextmine.cli.types import weights

if TYPE_CHECKING:
    from bitextmine.run import Run

overwrite_out = options.flag("--force", "Overwrite --out.")


@click.group(
    name="encoder",
    cls=Group,
    example="bitextmine encoder reduce default corpus.en corpus.fr --dim 256 --out smaller",
)
def encoder() -> None:
    """Make a trained encoder smaller, or fit its scorer."""


@encoder.command(
    name="reduce",
    example=(
        "bitextmine encoder reduce europe5 corpus.en corpus.fr --dim 256 --storage int4 --out smaller",
        "bitextmine encoder reduce europe5 corpus.en corpus.fr --dim 240 --order-columns 48 --out smaller",
    ),
)
@click.argument("model", metavar="MODEL")
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True)
@options.count("--lines", "Sentences to read from each text.", default=100_000)
@options.count("--dim", "Dimensions per vector, including length and order columns.", default=256)
@options.number(
    "--length-share",
    "Share of the squared length that encodes the sentence length.  [default: unchanged]",
    **options.SHARE | {"min_open": False},
)
@options.count("--order-columns", "How many of --dim encode subword order.  [default: unchanged]", least=0)
@options.number("--order-weight", "Weight of the order columns.  [default: unchanged, or 0.5]", min=0)
@options.text(
    "--storage",
    None,
    "Number format of the subword vectors.",
    shown="int8",
    type=click.Choice(["int8", "int4", "float32"]),
)
@options.new_model
@overwrite_out
@options.with_run(options.errors)
def reduce(model: str, texts: tuple[str, ...], out: str, run: Run, force: bool, **reduction: Any) -> None:
    """Reduce the dimensions of an encoder without training it again.

    Projects the subword vectors on the principal components of the sentence vectors of the given text, which keeps as
    much of their cosines as a projection can. For encoders without layers.
    """
    from bitextmine.training.reducing import Reduction, reduce_encoder

    kept = reduce_encoder(model, texts, out, Reduction(**reduction), run, force=force)
    click.echo(f"keeps {kept:.4f} of the squared length")


@encoder.command(
    name="fit-scorer",
    example=(
        "bitextmine encoder fit-scorer trained",
        "bitextmine encoder fit-scorer trained --recipe europe5 --data FOLDER",
    ),
)
@click.argument("trained", metavar="TRAINED")
@options.text("--recipe", "RECIPE", "Recipe that TRAINED was trained with.  [default: TRAINED/recipe.json]")
@options.data
@options.text("--cache", "FOLDER", "Tokenised corpora.  [default: TRAINED/work/cache]")
@options.text("--model", "MODEL", "Encoder to mine with, a name or a folder.  [default: TRAINED]")
@options.text(
    "--corpora",
    "NAME=X,NAME",
    "Corpora to use, by the start of their names, with weights (default 1).",
    shown="europarl=4,laws,tatoeba=0.5",
    type=weights,
)
@options.count("--held-out", "Fewest held-out pairs a corpus must have.", default=500)
@options.count("--draws", "Mining tasks per corpus.", default=5)
@options.text(
    "--distractors",
    "N",
    "Untranslated sentences on each side of a task; repeat it for the next tasks.",
    shown=(40_000, 5_000, 15_000, 1_000, 200),
    type=click.IntRange(min=0),
    multiple=True,
)
@options.count("--hidden", "Units of the hidden layer.", default=32)
@options.count("--steps", "Training steps.", default=600)
@options.number("--decay", "Weight decay.", min=0, default=0.1)
@options.seed("Random seed of the distractors.")
@options.text(
    "--out",
    "FILE",
    "Output file.  [default: scorer.safetensors in the encoder's folder, where 'mine' looks for it]",
)
@overwrite_out
@options.max_line
def fit_scorer_command(
    trained: str,
    recipe: str | None,
    data: str | None,
    cache: str | None,
    model: str | None,
    out: str | None,
    force: bool,
    **fitting: Any,
) -> None:
    """Fit the scorer that turns margins into log odds in 'mine'.

    TRAINED is the output of 'bitextmine train', with its work folder. Hides the held-out pairs of each corpus among
    untranslated sentences, mines them, and labels the mined pairs by the held-out ones. Prints for each task the best
    F1 by margin, the best F1 by a scorer fitted to the other kinds of text (a kind is the corpus name up to the first
    dot; a single kind is halved), and the expected calibration error of that scorer.
    """
    from pathlib import Path

    from bitextmine.training.fit_scorer import Fitting, Trained, fit_scorer
    from bitextmine.training.recipe import load_recipe

    plan = load_recipe(recipe or Path(trained) / "recipe.json", folder=None if data is None else Path(data))
    found = fit_scorer(Trained(trained, plan, model, cache), out, Fitting(**fitting), force=force)
    click.echo(
        "| corpus | candidates | right | F1 by margin | F1 by a scorer fitted to the others | "
        "share right: estimated | in truth | calibration error |\n|---|---|---|---|---|---|---|---|"
    )
    for task in found.tasks:
        click.echo(
            f"| {task.corpus} | {task.candidates:,} | {task.right:,} of {task.gold:,} | {task.f1_by_margin:.2f} | "
            f"{task.f1_by_scorer:.2f} | {100 * task.share:.2f}% | {100 * task.right / task.candidates:.2f}% | "
            f"{task.calibration_error:.4f} |"
        )
    click.echo(f"\n{found.path}: scorer {found.scorer.hash}")
