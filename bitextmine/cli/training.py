"""bitextmine train, adapt, encoder, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command, program
from bitextmine.exporting import FORMATS

if TYPE_CHECKING:
    from bitextmine.run import Run


@program.command(
    "train",
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
    "Sentence pairs instead of the recipe's, in one file or two; the names state the languages. Repeatable.",
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
    help="Print a recipe with all keys, meanings and defaults, or the built-in RECIPE, and exit.",
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
    "Set any key of the recipe, such as train.temperature=0.05. Repeatable.",
    dest="settings",
    type=options.setting,
    multiple=True,
)
@options.flag(
    "--force", "Overwrite --out: a finished model, a checkpoint of another recipe, or foreign files."
)
@options.with_run(options.device)
@click.pass_context
def train(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    pairs: tuple[str, ...],
    out: str | None,
    print_recipe: str | None,
    run: Run,
    **given: Any,
) -> None:
    """Train an encoder on sentence pairs.

    RECIPE is a TOML file with the training text and settings, or the name of a built-in recipe (cpu-quick, europe5,
    europe20, paper-bilingual). Options override it. Writes a model folder for --model: config.json, model.safetensors,
    tokenizer.model, a model card, the recipe, and a log with a plot. With several GPUs: torchrun --nproc-per-node N -m
    bitextmine train ...
    """
    from bitextmine.training.api import TrainOptions
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
    more = dict(given.pop("settings"))
    keys = {name: given.pop(name) for name in list(given) if "__" in name}
    settings = {name.replace("__", "."): value for name, value in keys.items() if value is not None} | more
    start, data, force = given["start"], given["data"], given["force"]
    try:
        train_encoder(out, options=TrainOptions(recipe, sources, start, settings, data), run=run, force=force)
    except KeyboardInterrupt:
        if not (Path(out) / "work" / "checkpoint.pt").exists():
            assert isinstance(ctx.command, Command)
            ctx.command.resume = "no checkpoint yet: the same command trains from the start"
        raise


@program.command(
    "adapt",
    example=(
        "bitextmine adapt news.en news.de --out model",
        "bitextmine adapt --src en --tgt de --out model",
        "bitextmine adapt --src en --tgt de --tgt es --dir crawl --out model",
        "bitextmine mine --src en --tgt de --dir crawl --model model -o pairs.tsv.gz",
    ),
    resume="run the same command again to resume",
    remote=("corpora", "directory", "src_file", "tgt_file", "gold"),
)
@options.with_corpora(several_names=True)
@options.model
@options.new_model
@options.number(
    "--error-rate",
    "Estimated share of wrong pairs to accept in the training data.",
    **options.SHARE,
    default=0.05,
)
@options.count("--rounds", "Maximum rounds of mining and training.", default=4)
@options.neighbours("Neighbours for the margin.", least=2)
@options.text(
    "--gold",
    "FILE",
    "Known pairs, only to log true accuracy: source line, tab, target line, counted from 1; one file for each pair "
    "of corpora.",
    multiple=True,
)
@options.seed()
@options.with_run(options.search_memory, options.device, options.batch_tokens, options.errors)
def adapt(corpora: Any, model: str, out: str, gold: tuple[str, ...], run: Run, **options: Any) -> None:
    """Adapt an encoder to your own text, without known pairs.

    Mines the corpora with the encoder, continues its training on the pairs that --error-rate allows, and repeats until
    retrieval of held-out pairs no longer improves. Writes a model folder for --model; adapt.jsonl in it logs each
    round. If no round helps, or there are too few pairs, writes no model and exits with code 1.
    """
    from bitextmine.adaptation.piles import AdaptOptions, find_piles, read_golds
    from bitextmine.adaptation.run import Adaptation

    plan = AdaptOptions(**options)
    piles = find_piles(corpora, run)
    Adaptation(piles, Path(out), plan, run, model, read_golds(gold, piles, run)).adapt()


overwrite_out = options.flag("--force", "Overwrite --out.")


@program.group(
    "encoder", example="bitextmine encoder reduce default corpus.en corpus.fr --dim 256 --out smaller"
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
    "Share of the vector's squared norm that encodes the sentence length.  [default: unchanged]",
    **options.SHARE | {"min_open": False},
)
@options.count("--order-columns", "How many of --dim encode subword order.  [default: unchanged]", least=0)
@options.number("--order-weight", "Weight of the order columns.  [default: unchanged, or 0.5]", min=0)
@options.pick("--storage", ("int8", "int4", "float32"), "Number format of the subword vectors.", shown="int8")
@options.new_model
@overwrite_out
@options.with_run(options.errors)
def reduce(model: str, texts: tuple[str, ...], out: str, run: Run, force: bool, **reduction: Any) -> None:
    """Reduce the dimensions of an encoder without training it again.

    Projects the subword vectors on the principal components of the sentence vectors of TEXT, corpora in the languages
    of the encoder. For encoders without layers.
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
@options.text("--model", "MODEL", "Encoder to fit the scorer for, a name or a folder.  [default: TRAINED]")
@options.text(
    "--corpora",
    "NAME=X,NAME",
    "Corpora to use, by the start of their names, with weights (default 1).",
    shown="europarl=4,laws,tatoeba=0.5",
    type=options.weights,
)
@options.count("--held-out", "Skip corpora with fewer held-out pairs.", default=500)
@options.count("--draws", "Mining tasks per corpus.", default=5)
@options.text(
    "--distractors",
    "N",
    "Untranslated sentences on each side of a task. Repeat it for further tasks.",
    shown=(40_000, 5_000, 15_000, 1_000, 200),
    type=click.IntRange(min=0),
    multiple=True,
)
@options.seed("Random seed of the distractors.")
@options.text(
    "--out",
    "FILE",
    "Output file.  [default: scorer.safetensors in the encoder's folder, where 'mine' looks for it]",
)
@overwrite_out
@options.with_run()
def fit_scorer_command(
    trained: str, recipe: str | None, out: str | None, force: bool, run: Run, **fitting: Any
) -> None:
    """Fit the scorer that turns margins into log odds in 'mine'.

    TRAINED is the output of 'bitextmine train', with its work folder. Each task hides the held-out pairs of a corpus
    among untranslated sentences and mines them; the scorer learns to tell right from wrong pairs. Prints for each task
    the best F1 by margin, and the best F1 and calibration error of a scorer fitted to the other kinds of text (a kind
    is the corpus name up to the first dot; a single kind is halved).
    """
    from bitextmine.encoder.folder import PACKAGED
    from bitextmine.training.fit_scorer import Fitting, Trained, fit_scorer
    from bitextmine.training.recipe import load_recipe

    if recipe is None and trained in PACKAGED:
        raise click.UsageError(
            f"--recipe is needed for a packaged encoder such as {trained}; TRAINED is then the folder of that training"
        )
    data, model = fitting.pop("data"), fitting.pop("model")
    plan = load_recipe(recipe or Path(trained) / "recipe.json", folder=None if data is None else Path(data))
    place, scorer, tasks = fit_scorer(
        Trained(trained, plan, model), out, Fitting(**fitting), run=run, force=force
    )
    click.echo(
        "| corpus | candidates | right | F1 by margin | F1 by a scorer fitted to the others | "
        "share right: estimated | in truth | calibration error |\n|---|---|---|---|---|---|---|---|"
    )
    for task in tasks:
        click.echo(
            f"| {task.corpus} | {task.candidates:,} | {task.right:,} of {task.gold:,} | {task.f1_by_margin:.2f} | "
            f"{task.f1_by_scorer:.2f} | {100 * task.share:.2f}% | {100 * task.right / task.candidates:.2f}% | "
            f"{task.calibration_error:.4f} |"
        )
    click.echo(f"\n{place}: scorer {scorer.hash}")


@program.command(
    "export",
    example=(
        "bitextmine export europe5 --to sentence-transformers exported",
        "bitextmine export model --to onnx exported",
    ),
)
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="OUT")
@options.pick(
    "--to",
    FORMATS,
    "sentence-transformers: a folder for SentenceTransformer(OUT, trust_remote_code=True), with a model card; "
    "onnx: OUT/model.onnx and OUT/tokenizer.json.",
    required=True,
)
@options.flag("--force", "Write into OUT even if it is not empty.")
def export(model: str, out: str, to: str, force: bool) -> None:
    """Export an encoder to another library, with the same vectors.

    sentence-transformers: any encoder made by 'bitextmine train', and the packaged ones. Loading it needs bitextmine
    and trust_remote_code=True (OUT holds no code). OUT/README.md is a model card for the Hugging Face Hub.

    onnx: encoders with a unigram vocabulary and without n-grams (model.ngrams = 0), so not the packaged ones: no
    tokenizer for ONNX Runtime makes n-grams across pieces.
    """
    from bitextmine.exporting.run import export_encoder

    click.echo(str(export_encoder(model, out, to=to, force=force)))
