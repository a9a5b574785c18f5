"""The command line. Each command reads its options, calls its stage and prints what that returns.

Stages are imported inside the commands: `bitextmine --help` must not wait for torch.
"""

from __future__ import annotations

from typing import Any

import click

from bitextmine import __version__
from bitextmine.cli.options import (
    Device,
    Directions,
    IndexType,
    Language,
    Limit,
    Memory,
    NpyFile,
    Number,
    Setting,
    Threshold,
)
from bitextmine.cli.shell import Program

_model = click.option(
    "--model",
    default="default",
    envvar="BITEXTMINE_MODEL",
    metavar="NAME|FOLDER",
    help="Encoder: the one in the package, or a folder of 'bitextmine train', sentence-transformers or LASER2.  "
    "[default: default, or $BITEXTMINE_MODEL]",
)
_device = click.option(
    "--device",
    type=Device(),
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N",
    help="Where to compute.",
)
_memory = click.option(
    "--memory",
    type=Memory(),
    metavar="SIZE",
    help="Most that exact search may take, as 500M or 2G; too little is refused.  [default: half of what is free]",
)
_SEED = click.IntRange(0, 2**32 - 1)

_batch_tokens = click.option(
    "--batch-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Subword pieces per batch; less takes less memory.  [default: fits the device]",
)
_errors = click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="Invalid UTF-8: stop and name the line, or read it as U+FFFD.",
)

_format = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "tsv", "json"]),
    default="table",
    show_default=True,
    help="For eyes, for programs, or everything.",
)


@click.group(
    cls=Program,
    example="bitextmine mine --src en --tgt fr",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Completion with the Tab key (bash; zsh_source and fish_source for those shells):
eval "$(_BITEXTMINE_COMPLETE=bash_source bitextmine)\"""",
)
@click.version_option(__version__, prog_name="bitextmine", message="%(prog)s %(version)s")
def program() -> None:
    """Sentence pairs out of two piles of text.

    A corpus is a text file with one sentence per line; its language is its last suffix: corpus.fr,
    corpus.fr.gz, corpus.fr.xz, corpus.fr.zst. "-" is standard input or standard output.
    """


def main() -> None:
    """The entry point of the installed command."""
    program(prog_name="bitextmine")


@program.command(
    "train",
    example="bitextmine train --pairs pairs.en-fr.tsv --out model",
    resume="the same command again goes on from the last checkpoint",
)
@click.argument("recipe", metavar="[RECIPE]", required=False)
@click.option(
    "--pairs",
    multiple=True,
    metavar="NAME.en-fr.tsv",
    help="Sentence pairs (tab-separated; the name tells the languages), in place of the recipe's; may be repeated.",
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
@click.option("--seed", "train__seed", type=_SEED, metavar="N", help="Of everything random.  [default: 1]")
@click.option(
    "--set",
    "settings",
    type=Setting(),
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of a recipe, such as train.temperature=0.05; may be repeated.",
)
@_device
def train(
    recipe: str | None,
    pairs: tuple[str, ...],
    out: str | None,
    print_recipe: str | None,
    data: str | None,
    settings: tuple[tuple[str, Any], ...],
    device: str,
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
    """
    if print_recipe is not None:
        from bitextmine.train.template import recipe_text

        click.echo(recipe_text(print_recipe), nl=False)
        return
    if out is None:
        raise click.MissingParameter(param_type="option", param_hint="'--out'")
    if recipe is None and not pairs:
        raise click.UsageError("give a recipe, --pairs, or both")
    from pathlib import Path

    from bitextmine.train.recipe import load_recipe, recipe_from_pairs

    overrides = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
    overrides.update(settings)
    folder = None if data is None else Path(data)
    if recipe is not None:
        plan = load_recipe(recipe, overrides, pairs=pairs, folder=folder)
    else:
        plan = recipe_from_pairs(pairs, overrides, folder=folder)

    from bitextmine.train import trainer  # only now: a bad recipe need not wait for torch

    trainer.train(plan, Path(out), device=device)


@program.command(
    "embed",
    example="bitextmine embed corpus.fr",
    resume="the same command again goes on where this one stopped",
)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@_model
@click.option(
    "--lang", type=Language(), metavar="L", help="Language of the corpus, where its name does not tell."
)
@click.option(
    "--out",
    type=NpyFile(),
    metavar="FILE.npy",
    help="Where the vectors go (one corpus only).  [default: CORPUS.npy]",
)
@click.option("--force", is_flag=True, help="Embed again what is up to date.")
@_device
@_batch_tokens
@_errors
def embed(corpora: tuple[str, ...], model: str, device: str, out: str | None, **options: Any) -> None:
    """Turn each line of a corpus into a vector.

    Writes corpus.fr.npy (float16, row i is line i, unit length, zeros for an empty line) and corpus.fr.json beside
    corpus.fr. An embedding of the same text and model is left as it is; an interrupted one is taken up.

    \b
    bitextmine embed corpus.en corpus.fr.gz
    zcat crawl.gz | bitextmine embed - --lang fr --out crawl.fr.npy
    """
    if out is not None and len(corpora) > 1:
        raise click.UsageError(f"--out names one file, but {len(corpora)} corpora are given")
    from bitextmine.embeddings.embed import embed_corpus
    from bitextmine.encoder import load_encoder

    encoder = load_encoder(model, device)
    for corpus in corpora:
        embed_corpus(corpus, encoder, out=out, **options)


@program.command(
    "index",
    example="bitextmine index corpus.fr",
    resume="the same command again goes on where this one stopped",
)
@click.argument("corpora", metavar="CORPUS|FILE.npy...", nargs=-1, required=True)
@click.option(
    "--type",
    "kind",
    type=IndexType(),
    default="auto",
    show_default=True,
    metavar="auto|flat|ivf|pq|hnsw|FACTORY",
    help="Kind of index, or a FAISS factory string such as IVF1024,SQ8; auto: what costs least, measured here.",
)
@click.option(
    "--recall-sample",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Rows that the recall is measured on.",
)
@click.option(
    "--recall",
    "--recall-target",
    "recall_target",
    type=Number(0, 1),
    default=0.99,
    show_default=True,
    metavar="X",
    help="Search harder (nprobe, efSearch) until the nearest row is found this often.",
)
@click.option(
    "-k",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Neighbours that the recall counts.",
)
@click.option(
    "--seed", type=_SEED, default=1, show_default=True, metavar="N", help="Of training rows and sample."
)
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many searches 'auto' counts on.  [default: as many as rows]",
)
@click.option(
    "--memory",
    type=Memory(),
    metavar="SIZE",
    help="Most that building may take, as 500M or 2G.  [default: half of what is free]",
)
@click.option("--force", is_flag=True, help="Build again what is up to date.")
@_model
@click.option(
    "--lang", type=Language(), metavar="L", help="Language of the corpus, where its name does not tell."
)
@_device
@_batch_tokens
@_errors
def index(
    corpora: tuple[str, ...],
    model: str,
    device: str,
    lang: str | None,
    batch_tokens: int | None,
    errors: str,
    **options: Any,
) -> None:
    """Build a FAISS index of a corpus, for searches too large to be exact.

    Writes corpus.fr.faiss and corpus.fr.faiss.json beside the vectors, with the recall measured against exact search.
    A corpus whose vectors are missing or stale is embedded first; of FILE.npy the vectors are taken as they are.

    \b
    bitextmine index corpus.fr --type ivf
    bitextmine index corpus.en corpus.fr && bitextmine mine --src en --tgt fr --search index
    """
    from bitextmine.console import progress
    from bitextmine.embeddings.embed import embed_corpus
    from bitextmine.encoder import load_encoder
    from bitextmine.index.file import index_corpus

    for corpus in corpora:
        vectors = corpus
        if not corpus.endswith(".npy"):
            encoder = load_encoder(model, device)
            vectors = str(embed_corpus(corpus, encoder, lang=lang, errors=errors, batch_tokens=batch_tokens))
        with progress(None, f"index {corpus}", "vectors") as bar:
            report = index_corpus(vectors, progress=bar.update, **options)
        click.echo(report.to_table(), err=True)


@program.command(
    "mine",
    example="bitextmine mine --src en --tgt fr",
    resume="the same command again goes on where this one stopped",
)
@click.option(
    "--src", type=Language(), metavar="L", help="Source language: its corpus is looked for in --dir."
)
@click.option("--tgt", type=Language(), metavar="L", help="Target language, likewise.")
@click.option(
    "--dir", "directory", default=".", metavar="FOLDER", help="Where the corpora lie.  [default: here]"
)
@click.option(
    "--name", metavar="NAME", help="Which corpora, if --dir holds several: news for news.en and news.fr."
)
@click.option(
    "--src-file", "src_corpus", metavar="FILE", help="The source corpus itself, instead of a search."
)
@click.option("--tgt-file", "tgt_corpus", metavar="FILE", help="The target corpus, likewise.")
@_model
@click.option(
    "-k",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Neighbours that a margin is taken over.",
)
@click.option(
    "--margin",
    type=click.Choice(["ratio", "distance", "absolute"]),
    default="ratio",
    show_default=True,
    help="Score: cosine over, minus, or regardless of the mean cosine to the neighbours.",
)
@click.option(
    "--retrieval",
    type=click.Choice(["max", "matching", "intersect", "union", "forward", "backward"]),
    default="max",
    show_default=True,
    help="One to one, best first; one to one, highest total; chosen by both sides; by either; by the source; "
    "by the target.",
)
@click.option(
    "--threshold",
    type=Threshold(),
    default="auto",
    show_default=True,
    metavar="NUMBER|auto|none",
    help="Lowest score kept. auto: the best F1 on --gold, else the score that a share --fpr of the lines "
    "without a translation would reach.",
)
@click.option(
    "--gold", metavar="FILE", help="Known pairs for --threshold auto: source line, tab, target line, from 1."
)
@click.option(
    "--fpr",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    metavar="X",
    help="False-positive rate for --threshold auto.",
)
@click.option(
    "--rescore",
    is_flag=True,
    help="Score by the pieces' matches, too: better pairs, in more time. Scores and --threshold are then log odds.",
)
@click.option(
    "--dedup",
    type=click.Choice(["exact", "near", "none"]),
    default="exact",
    show_default=True,
    help="Which lines count as the same and are mined once; near: up to case, digits and punctuation.",
)
@click.option(
    "--duplicates",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="Pairs for the first of equal lines, or for each.",
)
@click.option(
    "--search",
    type=click.Choice(["auto", "exact", "index"]),
    default="auto",
    show_default=True,
    help="Compare every line with every line, or use FAISS; auto: exact up to 10^12 comparisons.",
)
@click.option("--ids", is_flag=True, help="Add two columns after the score: both line numbers, from 1.")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Where the pairs go, with FILE.json.  [default: standard output]",
)
@click.option("--force", is_flag=True, help="Embed again what is up to date.")
@_memory
@_device
@_batch_tokens
@_errors
def mine(output: str, ids: bool, **options: Any) -> None:
    """Find the sentence pairs in two corpora.

    Prints score, source sentence, target sentence, separated by tabs, best first. Corpora that are not embedded, or
    whose text or model changed, are embedded first.

    \b
    bitextmine mine --src en --tgt fr --dir crawl --name news -o pairs.tsv.gz
    bitextmine mine --src-file a.en --tgt-file b.fr --threshold 1.1 | cut -f 2,3
    """
    for side in ("src", "tgt"):
        if options[side] is None and options[f"{side}_corpus"] is None:
            raise click.UsageError(f"give --{side} or --{side}-file")
    from bitextmine.mine.run import mine as mine_corpora

    bitext = mine_corpora(output=output, **options)
    bitext.write(output, ids)
    click.echo(bitext.to_table(), err=True)


@program.group("evaluate", example="bitextmine evaluate mining mined.tsv --gold gold.tsv")
def evaluate() -> None:
    """Measure retrieval (P@1), mining (precision, recall, F1) or classification (accuracy)."""


@evaluate.command("retrieval", example="bitextmine evaluate retrieval --queries queries.tsv --distractors .")
@click.option(
    "--queries", metavar="FILE.tsv", help="A header of languages, then per row one sentence in each of them."
)
@click.option(
    "--distractors",
    metavar="FOLDER",
    help="Further sentences for the pools: distractors.LANG.txt[.gz|.xz|.zst].",
)
@click.option(
    "--pairs",
    type=Directions(),
    default="all",
    show_default=True,
    metavar="en-fr,fr-en,...",
    help="Directions; all: to and from --pivot.",
)
@click.option(
    "--pivot",
    type=Language(),
    default="en",
    show_default=True,
    metavar="L",
    help="The language that 'all' pairs with the rest.",
)
@click.option("--src-file", metavar="FILE", help="Instead of queries: aligned files, and MUSE's protocol.")
@click.option("--tgt-file", metavar="FILE", help="Line i is the translation of line i of --src-file.")
@click.option(
    "--src-lang", type=Language(), metavar="L", help="Language of --src-file, where its name does not tell."
)
@click.option("--tgt-lang", type=Language(), metavar="L", help="Language of --tgt-file, likewise.")
@_model
@click.option(
    "-k",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Neighbours of the ratio margin.",
)
@click.option(
    "--csls",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Neighbours of CSLS.",
)
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Nearest by cosine that the margins choose among.",
)
@click.option("--rescore", is_flag=True, help="Also choose among these by the scorer of mine --rescore.")
@click.option(
    "--work", metavar="FOLDER", help="Keep the pools' vectors here for the next run.  [default: nowhere]"
)
@_format
@_memory
@_device
@_batch_tokens
@_errors
def evaluate_retrieval(form: str, **options: Any) -> None:
    """Measure P@1: how often the nearest sentence of a pool is the translation.

    By cosine, by ratio margin and by CSLS, with 95% intervals. The pool of a language is its queries and its
    distractors. With two aligned files: the protocol of MUSE's sent_translation, 2,000 queries among 200,000 keys.

    \b
    bitextmine evaluate retrieval --queries queries.tsv --pairs en-fr,fr-en
    bitextmine evaluate retrieval --src-file europarl.en --tgt-file europarl.fr
    """
    if options["queries"] is None and options["src_file"] is None:
        raise click.UsageError("give --queries, or --src-file and --tgt-file")
    from bitextmine.evaluate.retrieval import evaluate_retrieval as evaluate_pools

    _report(evaluate_pools(**options), form)


@evaluate.command("mining", example="bitextmine evaluate mining mined.tsv --gold gold.tsv")
@click.argument("mined", metavar="MINED.tsv")
@click.option(
    "--gold", required=True, metavar="FILE", help="The true pairs: source line, tab, target line, from 1."
)
@click.option(
    "--src-file", "src_corpus", metavar="FILE", help="The source corpus: equal texts count as one sentence."
)
@click.option("--tgt-file", "tgt_corpus", metavar="FILE", help="The target corpus, likewise.")
@click.option(
    "--seed", type=_SEED, default=1, show_default=True, metavar="N", help="Of the split and of the bootstrap."
)
@click.option(
    "--resamples",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    metavar="N",
    help="Of the bootstrap.",
)
@_format
@_errors
def evaluate_mining(mined: str, form: str, **options: Any) -> None:
    """Score mined pairs as the BUCC shared task does: precision, recall and F1 against gold.

    MINED.tsv is what 'bitextmine mine --ids --threshold none' prints. The threshold is tuned on one half of the
    source sentences and applied to the other, both ways.

    \b
    bitextmine mine --src en --tgt fr --ids --threshold none | bitextmine evaluate mining - --gold gold.tsv
    """
    from bitextmine.evaluate.mining import evaluate_mining as evaluate_file

    _report(evaluate_file(mined, **options), form)


@evaluate.command(
    "classification",
    example="bitextmine evaluate classification --train news.en --test news.de --test news.fr",
)
@click.option(
    "--train",
    required=True,
    metavar="FILE",
    help="Documents to learn from: a label, a tab and the text per line.",
)
@click.option(
    "--test",
    "tests",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Documents in another language, likewise; may be repeated.",
)
@click.option(
    "--dev",
    metavar="FILE",
    help="Documents in the first language to choose the L2 term by.  [default: a tenth of --train]",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Classifiers to take the mean of, each on another nine tenths of --train.",
)
@click.option("--seed", type=_SEED, default=1, show_default=True, metavar="N", help="Of the draw.")
@_model
@_format
@_device
@_batch_tokens
@_errors
def evaluate_classification(form: str, **options: Any) -> None:
    """Measure how well a classifier of documents carries over to other languages, as MLDoc does.

    A linear classifier learns labels from the vectors of one language's documents and is tested on those of others;
    the encoder stays as it is.

    \b
    bitextmine evaluate classification --train topics/train.en --test topics/test.de --test topics/test.fr
    """
    from bitextmine.evaluate.classification import evaluate_classification as evaluate_files

    _report(evaluate_files(**options), form)


@program.command("info", example="bitextmine info corpus.fr.npy")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@_errors
def info(paths: tuple[str, ...], errors: str) -> None:
    """Tell what a file or a folder is.

    Models ("default" is the one in the package), embeddings (finished or not), indexes, mined files and corpora:
    one "what: which" per line, as far as the manifest knows.
    """
    from bitextmine.info import describe

    for number, path in enumerate(paths):
        if len(paths) > 1:
            click.echo(f"{chr(10) if number else ''}{path}")
        for name, value in describe(path, errors).items():
            click.echo(f"{name}: {value}")


@program.command("report", example="bitextmine report bitext.tsv -o report.html")
@click.argument("bitext", metavar="BITEXT.tsv")
@click.option("-o", "--output", metavar="FILE.html", help='Where the page goes; "-" is standard output.')
@click.option("--png", metavar="FILE.png", help="The plots alone, as a picture (needs matplotlib).")
@click.option(
    "--threshold",
    type=Threshold(),
    default="auto",
    show_default=True,
    metavar="NUMBER|auto|none",
    help="Score to mark and count at. auto: the one that the file was mined with.",
)
@click.option(
    "--score-col", "score", metavar="COL", help="Column of the score: position from 1, or name in the header."
)
@click.option("--scol", "src", metavar="COL", help="Column of the source sentence.")
@click.option("--tcol", "tgt", metavar="COL", help="Column of the target sentence.")
@click.option(
    "--header/--no-header", default=None, help="Whether the first line names the columns.  [default: look]"
)
@click.option("--manifest", metavar="FILE.json", help="How it was mined.  [default: BITEXT.tsv.json]")
@_errors
def report(
    bitext: str, score: str | None, src: str | None, tgt: str | None, header: bool | None, **options: Any
) -> None:
    """Show what is in a file of sentence pairs.

    Makes one HTML file that needs no network: scores and thresholds, lengths, languages, high scores to doubt,
    examples, how the file was made. Reads what 'mine' writes, and any tab-separated pairs, with scores or without.

    \b
    bitextmine report crawl.tsv.gz --scol 4 --tcol 5 --score-col 3 -o report.html
    bitextmine mine --src en --tgt fr | bitextmine report - --threshold 1.1 -o report.html
    """
    if options["output"] is None and options["png"] is None:
        raise click.UsageError("give -o FILE.html, --png FILE.png, or both")
    from bitextmine.console import counted
    from bitextmine.report import Columns, write_report

    pairs = write_report(bitext, columns=Columns(score, src, tgt, header), **options)
    made = ", ".join(path for path in (options["output"], options["png"]) if path not in (None, "-"))
    if made:
        click.echo(f"{made}: a report on {counted(pairs, 'pair')}", err=True)


_header = click.option("--header", is_flag=True, help="The first line names the columns.")
_scol = click.option(
    "--scol",
    default="1",
    show_default=True,
    metavar="COL",
    help="Column of the source: position from 1, or name.",
)
_tcol = click.option(
    "--tcol", default="2", show_default=True, metavar="COL", help="Column of the target, likewise."
)
_stream_output = click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where the rows go.  [default: standard output]"
)


@program.command("score", example="bitextmine score pairs.tsv > scored.tsv")
@click.argument("path", metavar="[PAIRS.tsv]", default="-")
@_stream_output
@click.option(
    "--columns",
    metavar="NAME,...",
    help="Columns to add, in this order.  [default: cosine,margin,length_ratio,numbers,copy,quality, and lang "
    "before quality where --src and --tgt are given]",
)
@click.option("--score-only", is_flag=True, help="Print the added columns alone, for 'paste'.")
@click.option(
    "--src", type=Language(), default="", metavar="L", help="The language that the sources should be in."
)
@click.option(
    "--tgt", type=Language(), default="", metavar="L", help="The language that the targets should be in."
)
@_scol
@_tcol
@_header
@click.option(
    "--strict", is_flag=True, help="Stop at a row that is no pair, instead of leaving its scores empty."
)
@_model
@click.option(
    "-k",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Neighbours that the margin is taken over.",
)
@click.option(
    "--margin",
    type=click.Choice(["ratio", "distance", "absolute"]),
    default="ratio",
    show_default=True,
    help="Cosine over, minus, or regardless of the mean cosine to the neighbours.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="Pairs of the stream that the margin's neighbours are looked for among.",
)
@click.option(
    "--src-index",
    metavar="FILE",
    help="Look for them in this embedded corpus instead (corpus.en, .npy or .faiss), and in --tgt-index: such margins "
    "compare with those of 'mine'.",
)
@click.option("--tgt-index", metavar="FILE", help="See --src-index.")
@_device
@_batch_tokens
def score(path: str, **options: Any) -> None:
    """Add columns to sentence pairs: one line out for each line in.

    Reads tab-separated lines, or Parquet by its suffix; a row of another width or that is not UTF-8 keeps its place,
    with empty scores.

    \b
    cosine              of the two sentence vectors
    margin              that, against the cosines to the nearest neighbours
    length_ratio        characters of the longer side over those of the shorter
    numbers             agreement of the numbers, from 0 to 1 (1: all of them, or none there)
    copy                words that both sides have, from 0 to 1 (1: nothing is translated)
    lang                both sides look like --src and --tgt: above 0.5
    quality             margin, cosine, length, numbers, copy and lang in one probability
    shorter, longer     characters of that side
    letters             share of letters, in the side that has fewer
    src_lang, tgt_lang  what language a side looks like
    key                 the same for pairs that differ in case, digits and punctuation alone

    \b
    zstdcat crawl.tsv.zst | bitextmine score | bitextmine filter --rejected bad.tsv > clean.tsv
    bitextmine score pairs.tsv --columns cosine --score-only | paste - pairs.tsv | sort -k 1,1gr
    """
    from bitextmine.clean.score import score as score_rows

    click.echo(score_rows(path, **options).to_table(), err=True)


@program.command("filter", example="bitextmine filter scored.tsv --rejected bad.tsv > clean.tsv")
@click.argument("path", metavar="[SCORED.tsv]", default="-")
@_stream_output
@click.option("--rejected", metavar="FILE", help="Where the others go, with the rule that each fails.")
@click.option(
    "--preset",
    type=click.Choice(["mild", "strict", "cheap", "none"]),
    help="A set of rules; cheap needs no scores.  [default: mild, unless rules are given]",
)
@click.option(
    "--rules", "rules_file", metavar="RULES.toml", help="Rules from a file, after those of the preset."
)
@click.option(
    "--min", "least", type=Limit(), multiple=True, metavar="COL=X", help="Keep X and more; may be repeated."
)
@click.option(
    "--max", "most", type=Limit(), multiple=True, metavar="COL=X", help="Keep X and less; may be repeated."
)
@click.option(
    "--equal", type=Setting(), multiple=True, metavar="COL=TEXT", help="Keep just this; may be repeated."
)
@click.option(
    "--duplicates",
    type=click.Choice(["exact", "near", "none"]),
    help="Keep the first of equal pairs; near: up to case, digits and punctuation.  [default: as the preset says, "
    "else none]",
)
@click.option(
    "--memory",
    type=click.IntRange(min=1),
    default=2048,
    show_default=True,
    metavar="MIB",
    help="Most that the search for duplicates may take; 100 million pairs need 1,024.",
)
@click.option(
    "--explain",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show N pairs just outside and just inside each rule.",
)
@click.option(
    "--columns",
    metavar="NAME,...",
    help="What the last columns are, as given to 'score'.  [default: its default, where rows look so]",
)
@_scol
@_tcol
@_header
@click.option(
    "--src",
    type=Language(),
    default="",
    metavar="L",
    help="For a rule on lang, where 'score' did not add it.",
)
@click.option("--tgt", type=Language(), default="", metavar="L", help="Likewise.")
def filter_command(
    path: str,
    output: str,
    preset: str | None,
    rules_file: str | None,
    least: tuple[tuple[str, Any], ...],
    most: tuple[tuple[str, Any], ...],
    equal: tuple[tuple[str, Any], ...],
    duplicates: str | None,
    memory: int,
    **options: Any,
) -> None:
    """Keep the sentence pairs that meet every rule.

    A rule is on a column: its name, or its position from 1. What 'score' did not add is computed from the texts, but
    for cosine, margin and quality. Rows of another width and invalid UTF-8 count as malformed.

    \b
    bitextmine filter scored.tsv --preset strict --min numbers=1 --explain 3 > clean.tsv
    bitextmine filter pairs.tsv --max length_ratio=2.5 --duplicates near > clean.tsv
    bitextmine filter pairs.parquet --scol en --tcol fr --min bicleaner=0.5 -o clean.parquet
    """
    from bitextmine.clean.filter import filter_rows
    from bitextmine.clean.rules import choose_rules

    rules = choose_rules(preset, rules_file, {"min": least, "max": most, "equal": equal}, duplicates)
    done = filter_rows(path, output, rules, memory=memory << 20, **options)
    click.echo(done.to_table(), err=True)


def _report(report: Any, form: str) -> None:
    """Print the result of an evaluation in the form that was asked for."""
    if form == "json":
        import json

        click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(report.to_table(tabs=form == "tsv"))
