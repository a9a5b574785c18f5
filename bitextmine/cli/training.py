"""bitextmine train, adapt, encoder, export."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click

from bitextmine.adaptation.options import AdaptOptions
from bitextmine.arguments import key_value
from bitextmine.cli.declared import Only, command
from bitextmine.cli.shell import program
from bitextmine.declarations import Kind, Opt
from bitextmine.run import Run
from bitextmine.search.options import SEARCH_MEMORY
from bitextmine.shipped import Model
from bitextmine.training.options import OUT, Data, Fitting, RecipeKeys, TrainOptions

Force = Annotated[bool, Opt("--force", "Overwrite --out.")]


@command(
    program,
    "train",
    example=(
        "bitextmine train --pairs pairs.en-fr.tsv --out model",
        "bitextmine train cpu-quick --pairs pairs.en-fr.tsv --out model",
        "bitextmine train cpu-quick --pairs pairs.en pairs.fr --out model",
        "bitextmine train --print-recipe > recipe.toml",
        "bitextmine train recipe.toml --out smaller --dim 128 --set train.temperature=0.1",
        "bitextmine train --from europe5 --pairs mine.en-fr.tsv --epochs 3 --out better",
    ),
    resume="run the same command again to resume from the last checkpoint",
)
def train(
    *,
    names: Annotated[tuple[str, ...], Opt("[RECIPE]")] = (),
    pairs: Annotated[
        tuple[str, ...],
        Opt(
            "--pairs",
            "Sentence pairs instead of the recipe's, in one file or two; the names state the languages.",
            metavar="NAME.en-fr.tsv | NAME.en NAME.fr",
            remote=True,
        ),
    ] = (),
    out: Annotated[str | None, Opt("--out", "Model folder to create.  [required]", metavar="FOLDER")] = None,
    print_recipe: Annotated[
        str | None,
        Opt(
            "--print-recipe",
            "Print a recipe with all keys, meanings and defaults, or the built-in RECIPE, and exit.",
            metavar="[RECIPE]",
            alone="template",
        ),
    ] = None,
    options: TrainOptions,
    keys: RecipeKeys,
    settings: Annotated[
        tuple[Annotated[Any, Kind("KEY=VALUE", key_value)], ...],
        Opt("--set", "Set any key of the recipe, such as train.temperature=0.05."),
    ] = (),
    force: Annotated[
        bool,
        Opt(
            "--force",
            "Overwrite --out: a finished model, a checkpoint of another recipe, or files of other programs.",
        ),
    ] = False,
    run: Annotated[Run, Only("device", "errors", "max_line")],
) -> None:
    """Train an encoder on sentence pairs.

    RECIPE is a TOML file with the training text and settings, or the name of a built-in recipe (cpu-quick, europe5,
    world56, paper-bilingual). Options override it. Writes a model folder for --model: config.json, model.safetensors,
    tokenizer.model, a model card, the recipe and a log.
    """
    from bitextmine.training.api import train as train_encoder
    from bitextmine.training.recipe.load import join_sides, recipe_text

    sources, names = join_sides(pairs, names)
    if len(names) > 1:
        raise click.UsageError(f"expected one recipe, found {', '.join(names)}")
    recipe = names[0] if names else None
    if print_recipe is not None:
        click.echo(recipe_text(recipe if recipe and print_recipe == "template" else print_recipe), nl=False)
        return
    if out is None:
        raise click.MissingParameter(param_type="option", param_hint="'--out'")
    options = replace(options, recipe=recipe, pairs=sources, settings=keys.settings() | dict(settings))
    train_encoder(out, options=options, run=run, force=force)


@command(
    program,
    "adapt",
    example=(
        "bitextmine adapt news.en news.de --out model",
        "bitextmine mine news.en news.de --model model -o pairs.tsv.gz",
    ),
    resume="run the same command again to resume",
)
def adapt(
    *,
    src: Annotated[str, Opt("SRC", remote=True)],
    tgt: Annotated[str, Opt("TGT", remote=True)],
    model: Model = "auto",
    out: Annotated[str, OUT],
    options: AdaptOptions,
    run: Annotated[Run, Only("device", "batch_tokens", "errors", "max_line", memory=SEARCH_MEMORY)],
) -> None:
    """Adapt an encoder to your own text, without known pairs.

    The file names give the two languages. Mines the corpora with the encoder, continues its training on the pairs that
    --error-rate allows, and repeats until retrieval of held-out pairs no longer improves. Writes a model folder for
    --model; adapt.jsonl in it logs each round. If no round helps, or there are too few pairs, writes no model and
    exits with code 1.
    """
    from bitextmine.adaptation.adapt import adapt as adapt_encoder

    adapt_encoder(src, tgt, out, model=model, options=options, run=run)


@program.group("encoder", example="bitextmine encoder fit-scorer trained")
def encoder() -> None:
    """Fit the scorer of a trained encoder."""


@command(
    encoder,
    "fit-scorer",
    example=(
        "bitextmine encoder fit-scorer trained",
        "bitextmine encoder fit-scorer trained --recipe europe5 --data FOLDER",
    ),
)
def fit_scorer(
    *,
    trained: Annotated[str, Opt("TRAINED")],
    recipe: Annotated[
        str | None,
        Opt(
            "--recipe",
            "Recipe that TRAINED was trained with.",
            metavar="RECIPE",
            default="TRAINED/recipe.json",
        ),
    ] = None,
    data: Data = None,
    model: Annotated[
        str | None,
        Opt(
            "--model",
            "Encoder to fit the scorer for, a name or a folder.",
            metavar="MODEL",
            default="TRAINED",
        ),
    ] = None,
    fitting: Fitting,
    out: Annotated[
        str | None,
        Opt(
            "--out",
            "Output file.",
            metavar="FILE",
            default="scorer.safetensors in the encoder's folder, where 'mine' looks for it",
        ),
    ] = None,
    force: Force = False,
    run: Annotated[Run, Only("errors", "max_line")],
) -> None:
    """Fit the scorer that turns margins into log odds in 'mine'.

    TRAINED is the output of 'bitextmine train', with its work folder. Each task hides the held-out pairs of a corpus
    among untranslated sentences and mines them; the scorer learns to tell right from wrong pairs. Prints for each task
    the best F1 by margin and by the scorer, which was fitted to the same pairs.
    """
    from bitextmine.console import markdown
    from bitextmine.encoder.folder import PACKAGED
    from bitextmine.training.fit_scorer import fit_scorer
    from bitextmine.training.recipe import load_recipe

    if recipe is None and trained in PACKAGED:
        raise click.UsageError(
            f"--recipe is needed for a built-in encoder such as {trained}; TRAINED is then the folder of that training"
        )
    plan = load_recipe(recipe or Path(trained) / "recipe.json", folder=None if data is None else Path(data))
    path, scorer, tasks = fit_scorer(trained, plan, model, out, fitting, run=run, force=force)
    rows = [
        [
            task.corpus,
            f"{task.candidates:,}",
            f"{task.right:,} of {task.gold:,}",
            f"{task.f1_by_margin:.2f}",
            f"{task.f1_by_scorer:.2f}",
        ]
        for task in tasks
    ]
    table = markdown(["corpus", "candidates", "right", "F1 by margin", "F1 by the scorer"], rows)
    click.echo(f"{table}\n\n{path}: scorer {scorer.hash}")


@command(program, "export", example="bitextmine export europe5 exported")
def export(
    *,
    model: Annotated[str, Opt("MODEL")],
    out: Annotated[str, Opt("OUT")],
    force: Annotated[bool, Opt("--force", "Write into OUT even if it is not empty.")] = False,
) -> None:
    """Export an encoder to sentence-transformers, with the same vectors.

    MODEL is made by 'bitextmine train', or a built-in encoder. Loading OUT needs bitextmine and trust_remote_code=True
    (OUT holds no code). OUT/README.md is a model card for the Hugging Face Hub.
    """
    from bitextmine.exporting import export_encoder

    click.echo(str(export_encoder(model, out, force=force)))
