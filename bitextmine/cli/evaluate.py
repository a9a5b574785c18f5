"""bitextmine evaluate: retrieval, mining, classification; evaluate_align has alignment, evaluate_sts similarity"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.evaluate_align import evaluate_align
from bitextmine.cli.evaluate_sts import evaluate_sts
from bitextmine.cli.reports import print_report
from bitextmine.cli.shell import Group
from bitextmine.cli.types import Directions, Language


@click.group(cls=Group, name="evaluate", example="bitextmine evaluate mining mined.tsv --gold gold.tsv")
def evaluate() -> None:
    """Measure retrieval (P@1), mining and alignment (F1), similarity (Spearman) or classification (accuracy)."""


@evaluate.command(
    "retrieval",
    example="bitextmine evaluate retrieval --queries queries.tsv --distractors .",
    remote=("queries", "src_file", "tgt_file"),
)
@click.option(
    "--queries", metavar="FILE.tsv", help="A header of languages, then per row one sentence in each of them."
)
@click.option(
    "--distractors",
    metavar="FOLDER",
    help="Further sentences for the pools: distractors.LANG.txt[.gz|.bz2|.xz|.zst].",
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
    help="The language that 'all' pairs with the rest; en is the first one where there is no English.",
)
@click.option("--src-file", metavar="FILE", help="Instead of queries: aligned files, and MUSE's protocol.")
@click.option("--tgt-file", metavar="FILE", help="Line i is the translation of line i of --src-file.")
@click.option(
    "--src-lang", type=Language(), metavar="L", help="Language of --src-file, where its name does not tell."
)
@click.option("--tgt-lang", type=Language(), metavar="L", help="Language of --tgt-file, likewise.")
@options.model
@options.neighbours("Neighbours of the ratio margin.")
@options.count("--csls", default=10, help="Neighbours of CSLS.")
@options.count("--candidates", default=10, help="Nearest by cosine that the margins choose among.")
@click.option("--rescore", is_flag=True, help="Also choose among these by the scorer of mine --rescore.")
@click.option(
    "--work", metavar="FOLDER", help="Keep the pools' vectors here for the next run.  [default: nowhere]"
)
@options.form
@options.search_memory
@options.device
@options.batch_tokens
@options.errors
@options.max_line
def evaluate_retrieval(
    queries: str | None,
    distractors: str | None,
    pairs: str,
    pivot: str,
    src_file: str | None,
    tgt_file: str | None,
    src_lang: str | None,
    tgt_lang: str | None,
    k: int,
    csls: int,
    candidates: int,
    rescore: bool,
    form: str,
    **machine: Any,
) -> None:
    """Measure P@1: how often the nearest sentence of a pool is the translation.

    By cosine, by ratio margin and by CSLS, with 95% intervals. The pool of a language is its queries and its
    distractors. With two aligned files: the protocol of MUSE's sent_translation, 2,000 queries among 200,000 keys.

    \b
    bitextmine evaluate retrieval --queries queries.tsv --pairs en-fr,fr-en
    bitextmine evaluate retrieval --src-file europarl.en --tgt-file europarl.fr
    """
    if queries is None and src_file is None:
        raise click.UsageError("give --queries, or --src-file and --tgt-file")
    if (queries is None) == (src_file is None) or (src_file is None) != (tgt_file is None):
        raise click.UsageError("give --queries, or else --src-file and --tgt-file")
    from bitextmine.evaluation.bench import RankingOptions

    ranking = RankingOptions(k, csls, candidates, rescore)
    if queries is not None:
        from bitextmine.evaluation.retrieval import evaluate_retrieval as evaluate_pools

        report = evaluate_pools(queries, distractors, ranking, pairs=pairs, pivot=pivot, **machine)
    else:
        from bitextmine.evaluation.muse import evaluate_muse

        assert src_file is not None
        assert tgt_file is not None
        report = evaluate_muse(src_file, tgt_file, ranking, src_lang=src_lang, tgt_lang=tgt_lang, **machine)
    print_report(report, form)


@evaluate.command(
    "mining",
    example="bitextmine evaluate mining mined.tsv --gold gold.tsv",
    remote=("mined", "gold", "src_corpus", "tgt_corpus"),
)
@click.argument("mined", metavar="MINED.tsv")
@click.option(
    "--gold", required=True, metavar="FILE", help="The true pairs: source line, tab, target line, from 1."
)
@click.option(
    "--src-file", "src_corpus", metavar="FILE", help="The source corpus: equal texts count as one sentence."
)
@click.option("--tgt-file", "tgt_corpus", metavar="FILE", help="The target corpus, likewise.")
@options.seed("Of the split and of the bootstrap.")
@options.resamples
@options.form
@options.errors
@options.max_line
def evaluate_mining(mined: str, form: str, **options: Any) -> None:
    """Score mined pairs as the BUCC shared task does: precision, recall and F1 against gold.

    MINED.tsv is what 'bitextmine mine --ids --threshold none' prints. The threshold is tuned on one half of the
    source sentences and applied to the other, both ways.

    \b
    bitextmine mine --src en --tgt fr --ids --threshold none | bitextmine evaluate mining - --gold gold.tsv
    """
    from bitextmine.evaluation.mining import evaluate_mining as evaluate_file

    print_report(evaluate_file(mined, **options), form)


evaluate.add_command(evaluate_align)
evaluate.add_command(evaluate_sts)


@evaluate.command(
    "classification",
    example="bitextmine evaluate classification --train news.en --test news.de --test news.fr",
    remote=("train", "tests", "dev"),
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
@options.count(
    "--runs", default=5, help="Classifiers to take the mean of, each on another nine tenths of --train."
)
@options.seed("Of the draw.")
@options.model
@options.form
@options.device
@options.batch_tokens
@options.errors
@options.max_line
def evaluate_classification(form: str, **options: Any) -> None:
    """Measure how well a classifier of documents carries over to other languages, as MLDoc does.

    A linear classifier learns labels from the vectors of one language's documents and is tested on those of others;
    the encoder stays as it is.

    \b
    bitextmine evaluate classification --train topics/train.en --test topics/test.de --test topics/test.fr
    """
    from bitextmine.evaluation.classification import evaluate_classification as evaluate_files

    print_report(evaluate_files(**options), form)
