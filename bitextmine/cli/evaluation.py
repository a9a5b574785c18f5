"""bitextmine evaluate: retrieval, mining, align, sts, classification."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import program

if TYPE_CHECKING:
    from bitextmine.run import Run


pivot = options.language(
    "--pivot",
    default="en",
    help="Language paired with every other one when --pairs is 'all'.  [default: en if present, else the first]",
)
bootstrap_seed = options.seed("Random seed of the bootstrap.")


def printed(command: Callable[..., Any]) -> Any:
    """Add --format to a command, and print the report that it returns."""

    @functools.wraps(command)
    def call(*args: Any, report_format: str, **given: Any) -> None:
        report = command(*args, **given)
        if report_format == "json":
            import json

            click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
        else:
            click.echo(report.to_table(tabs=report_format == "tsv"))

    forms, help = ("table", "tsv", "json"), "Output format; json holds the most detail."
    return options.pick("--format", forms, help, dest="report_format", shown="table")(call)


@program.group("evaluate", example="bitextmine evaluate mining mined.tsv --gold gold.tsv")
def evaluate() -> None:
    """Measure retrieval, mining, alignment, similarity, classification."""


@evaluate.command(
    "retrieval",
    example=(
        "bitextmine evaluate retrieval --queries queries.tsv --distractors .",
        "bitextmine evaluate retrieval --queries queries.tsv --pairs en-fr,fr-en",
        "bitextmine evaluate retrieval --src-file europarl.en --tgt-file europarl.fr",
    ),
    remote=("queries", "src_file", "tgt_file"),
)
@options.text(
    "--queries", "FILE.tsv", "Aligned sentences: a header of language codes, one column per language."
)
@options.text(
    "--distractors", "FOLDER", "More sentences for the pools: distractors.LANG.txt[.gz|.bz2|.xz|.zst]."
)
@options.text(
    "--pairs",
    "en-fr,fr-en,...",
    "Directions to measure; all: to and from --pivot.",
    shown="all",
    type=options.directions,
)
@pivot
@options.text("--src-file", "FILE", "Instead of --queries: a corpus, for MUSE's protocol.")
@options.text("--tgt-file", "FILE", "Its translation, line by line.")
@options.language("--src-lang", "Language of --src-file, if its name does not say.")
@options.language("--tgt-lang", "Language of --tgt-file, likewise.")
@options.model
@options.neighbours("Neighbours for the ratio margin.")
@options.count("--csls", "Neighbours for CSLS.", default=10)
@options.count("--candidates", "Nearest sentences by cosine that the margins rerank.", default=10)
@options.flag("--rescore", "Also rerank them with the scorer of 'mine --rescore'.")
@printed
@options.with_run(options.search_memory, options.device, options.batch_tokens, options.errors)
def evaluate_retrieval(queries: str | None, distractors: str | None, run: Run, **given: Any) -> Any:
    """Measure P@1: how often the nearest sentence is the translation.

    Reports cosine, ratio margin and CSLS with 95% confidence intervals. The pool of a language is its queries plus its
    distractors. With two aligned files, follows the sent_translation protocol of MUSE: 2,000 queries, 200,000 keys.
    """
    files, langs = (tuple(given.pop(f"{side}_{of}") for side in ("src", "tgt")) for of in ("file", "lang"))
    if (queries is None) == (files[0] is None) or (files[0] is None) != (files[1] is None):
        raise click.UsageError("give either --queries, or both --src-file and --tgt-file")
    from bitextmine.evaluation import retrieval
    from bitextmine.evaluation.ranking import RankingOptions

    if queries is not None:
        return retrieval.evaluate_retrieval(queries, distractors, run=run, **given)
    ranking = RankingOptions(*(given.pop(name) for name in ("k", "csls", "candidates", "rescore")))
    return retrieval.evaluate_muse(files, langs, ranking, run, model=given["model"])


@evaluate.command(
    "mining",
    example=(
        "bitextmine evaluate mining mined.tsv --gold gold.tsv",
        "bitextmine mine --src en --tgt fr --ids --threshold none | bitextmine evaluate mining - --gold gold.tsv",
    ),
    remote=("mined", "gold", "src_corpus", "tgt_corpus"),
)
@click.argument("mined", metavar="MINED.tsv")
@options.text("--gold", "FILE", "True pairs: source line, tab, target line, counted from 1.", required=True)
@options.text(
    "--src-file", "FILE", "The source corpus: lines with equal text count as one.", dest="src_corpus"
)
@options.text("--tgt-file", "FILE", "The target corpus, likewise.", dest="tgt_corpus")
@options.seed("Random seed of the split and the bootstrap.")
@options.resamples
@printed
@options.with_run(options.errors)
def evaluate_mining(
    mined: str, gold: str, src_corpus: str | None, tgt_corpus: str | None, run: Run, **options: Any
) -> Any:
    """Measure precision, recall and F1 of mined pairs.

    Follows the BUCC shared task: the threshold is tuned on one half of the source sentences and applied to the other
    half, and vice versa. MINED.tsv is the output of 'bitextmine mine --ids --threshold none'.
    """
    if (src_corpus is None) != (tgt_corpus is None):
        raise click.UsageError("give both corpora, --src-file and --tgt-file, or neither")
    from bitextmine.evaluation.mining import evaluate_mining as evaluate_file
    from bitextmine.files.source import Source

    corpora = None
    if src_corpus is not None and tgt_corpus is not None:
        corpora = Source.of(src_corpus, run), Source.of(tgt_corpus, run)
    return evaluate_file(Source.of(mined, run), Source.of(gold, run), corpora, **options)


@evaluate.command(
    "align",
    example=(
        "bitextmine evaluate align found.txt --gold gold.de-fr",
        "bitextmine align book.de book.fr --format vecalign | bitextmine evaluate align - --gold gold.de-fr",
    ),
    remote=("found", "golds"),
)
@click.argument("found", nargs=-1, required=True, metavar="FOUND...")
@options.text(
    "--gold",
    "FILE",
    "True alignment of FOUND; repeat it for several, in the same order.",
    dest="golds",
    multiple=True,
    required=True,
)
@options.resamples
@bootstrap_seed
@printed
@options.with_run(options.errors)
def evaluate_align(found: tuple[str, ...], golds: tuple[str, ...], run: Run, **options: Any) -> Any:
    """Measure strict and lax F1 of alignments, as Vecalign does.

    Files hold one link per line, such as [0, 1]:[2], with sentences counted from 0 (the output of 'align --format
    vecalign'), or the TSV of 'align --ids'. Blank lines separate documents. A link is correct if it is in the gold
    alignment (strict), or if it shares a sentence on both sides with a gold link (lax). Recall ignores gold links with
    an empty side.
    """
    from bitextmine.evaluation.alignment import evaluate_alignment
    from bitextmine.files.source import Source

    sides = ([Source.of(path, run) for path in paths] for paths in (found, golds))
    return evaluate_alignment(*sides, **options)


@evaluate.command(
    "sts",
    example=(
        "bitextmine evaluate sts stsb.en.csv stsb.de.csv --pairs en-de",
        "bitextmine evaluate sts stsb.en.dev.csv",
        "bitextmine evaluate sts stsb.*.dev.csv --pairs en-de,en-es,en-fr,en-it --format json",
    ),
    remote=("files",),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.text(
    "--pairs",
    "en-de,de-en,...",
    "Also measure across languages: first sentences from one file, second sentences from the other; all: to and "
    "from --pivot.",
    type=options.directions,
)
@pivot
@options.model
@options.resamples
@bootstrap_seed
@printed
@options.with_run(options.device, options.batch_tokens, options.errors)
def evaluate_sts(files: tuple[str, ...], run: Run, **options: Any) -> Any:
    """Measure correlation of cosines with human similarity ratings.

    Prints Spearman correlations x 100 with 95% bootstrap intervals. FILE is comma- or tab-separated: sentence1,
    sentence2, score, or the columns of the STS benchmark, or any order that a header names. The file name states the
    language: stsb.de.dev.csv, stsb-de-dev.csv.
    """
    from bitextmine.evaluation.sts import evaluate_sts as evaluate_files

    return evaluate_files(files, run=run, **options)


@evaluate.command(
    "classification",
    example=(
        "bitextmine evaluate classification --train news.en --test news.de --test news.fr",
        "bitextmine evaluate classification --train topics/train.en --test topics/test.de --test topics/test.fr",
    ),
    remote=("train", "tests", "dev"),
)
@options.text("--train", "FILE", "Training documents: label, tab, text on each line.", required=True)
@options.text(
    "--test",
    "FILE",
    "Test documents in another language; repeat it for more.",
    dest="tests",
    multiple=True,
    required=True,
)
@options.text(
    "--dev",
    "FILE",
    "Documents in the training language to choose the L2 penalty on.  [default: a tenth of --train]",
)
@options.count("--runs", "Classifiers to average, each trained on a different 90% of --train.", default=5)
@options.seed("Random seed of the splits.")
@options.model
@printed
@options.with_run(options.device, options.batch_tokens, options.errors)
def evaluate_classification(run: Run, **options: Any) -> Any:
    """Measure zero-shot document classification, as MLDoc does.

    Trains a linear classifier on the vectors of documents in one language and tests it on documents in others. The
    encoder itself is not trained.
    """
    from bitextmine.evaluation.classification import evaluate_classification as evaluate_files

    return evaluate_files(run=run, **options)
