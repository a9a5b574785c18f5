"""bitextmine evaluate: retrieval, mining, align, sts, classification."""

import json
from typing import Annotated, Any, Literal

import click

from bitextmine.arguments import matching
from bitextmine.cli.declared import Only, command
from bitextmine.cli.shell import program
from bitextmine.declarations import Kind, Opt
from bitextmine.evaluation.options import RankingOptions
from bitextmine.languages.codes import LanguageCode
from bitextmine.run import Run
from bitextmine.search.options import SEARCH_MEMORY
from bitextmine.shipped import Model

_PAIR = r"\s*\w+(-\w+)+\s*"  # a code may contain a hyphen: pt-BR
Directions = Annotated[
    str,
    Kind("en-fr,fr-en,...", matching(rf"all|{_PAIR}(,{_PAIR})*", "pairs of languages such as en-fr, or all")),
]
Format = Annotated[Literal["table", "json"], Opt("--format", "Output format; json holds the most detail.")]
File = str | None


def _file(flags: str, help: str, metavar: str = "FILE", default: str | None = None) -> Opt:
    return Opt(flags, help, metavar=metavar, default=default, remote=True)


def show(report: Any, form: str) -> None:
    """Print a report."""
    if form == "json":
        click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        click.echo(report.to_table())


@program.group("evaluate", example="bitextmine evaluate mining mined.tsv --gold gold.tsv")
def evaluate() -> None:
    """Measure retrieval, mining, alignment, similarity, classification."""


@command(
    evaluate,
    "retrieval",
    example=(
        "bitextmine evaluate retrieval --queries queries.tsv --distractors .",
        "bitextmine evaluate retrieval --queries queries.tsv --pairs en-fr,fr-en",
        "bitextmine evaluate retrieval --src-file europarl.en --tgt-file europarl.fr",
    ),
)
def evaluate_retrieval(
    *,
    queries: Annotated[
        File,
        _file(
            "--queries", "Aligned sentences: a header of language codes, one column per language.", "FILE.tsv"
        ),
    ] = None,
    distractors: Annotated[
        File,
        Opt(
            "--distractors",
            "More sentences for the pools: distractors.LANG.txt, plain or compressed.",
            metavar="FOLDER",
        ),
    ] = None,
    pairs: Annotated[
        Directions,
        Opt("--pairs", "Directions to measure; all: to and from English, else the first language."),
    ] = "all",
    src_file: Annotated[
        File, _file("--src-file", "Instead of --queries: a corpus, for MUSE's protocol.")
    ] = None,
    tgt_file: Annotated[File, _file("--tgt-file", "Its translation, line by line.")] = None,
    src_lang: Annotated[
        LanguageCode | None, Opt("--src-lang", "Language of --src-file, if its name does not say.")
    ] = None,
    tgt_lang: Annotated[LanguageCode | None, Opt("--tgt-lang", "Language of --tgt-file, likewise.")] = None,
    model: Model = "auto",
    ranking: RankingOptions,
    form: Format = "table",
    run: Annotated[Run, Only("device", "batch_tokens", "errors", "max_line", memory=SEARCH_MEMORY)],
) -> None:
    """Measure P@1: how often the nearest sentence is the translation.

    Reports cosine, ratio margin and CSLS with 95% confidence intervals. The pool of a language is its queries plus its
    distractors. With two aligned files, follows the sent_translation protocol of MUSE: 2,000 queries, 200,000 keys.
    """
    if (queries is None) == (src_file is None) or (src_file is None) != (tgt_file is None):
        raise click.UsageError("give either --queries, or both --src-file and --tgt-file")
    from bitextmine.evaluation import retrieval

    if queries is not None:
        pools = {"pairs": pairs, "model": model, "options": ranking, "run": run}
        return show(retrieval.evaluate_retrieval(queries, distractors, **pools), form)
    assert src_file is not None and tgt_file is not None
    langs = src_lang, tgt_lang
    return show(retrieval.evaluate_muse((src_file, tgt_file), langs, ranking, run, model=model), form)


@command(
    evaluate,
    "mining",
    example=(
        "bitextmine evaluate mining mined.tsv --gold gold.tsv",
        "bitextmine mine --src en --tgt fr --ids --threshold none | bitextmine evaluate mining - --gold gold.tsv",
    ),
)
def evaluate_mining(
    *,
    mined: Annotated[str, Opt("MINED.tsv", remote=True)],
    gold: Annotated[str, _file("--gold", "True pairs: source line, tab, target line, counted from 1.")],
    form: Format = "table",
    run: Annotated[Run, Only("errors", "max_line")],
) -> None:
    """Measure precision, recall and F1 of mined pairs.

    Follows the BUCC shared task: the threshold is tuned on one half of the source sentences and applied to the other
    half, and vice versa. MINED.tsv is the output of 'bitextmine mine --ids --threshold none'.
    """
    from bitextmine.evaluation.mining import evaluate_mining as evaluate_file
    from bitextmine.files.source import Source

    show(evaluate_file(Source.of(mined, run), Source.of(gold, run)), form)


@command(
    evaluate,
    "align",
    example=(
        "bitextmine evaluate align links.txt --gold gold.de-fr",
        "bitextmine align book.de book.fr --format vecalign | bitextmine evaluate align - --gold gold.de-fr",
    ),
)
def evaluate_align(
    *,
    aligned: Annotated[tuple[str, ...], Opt("LINKS...", remote=True)],
    golds: Annotated[
        tuple[str, ...], _file("--gold", "True alignment of LINKS, for several in the same order.")
    ],
    form: Format = "table",
    run: Annotated[Run, Only("errors", "max_line")],
) -> None:
    """Measure strict and lax F1 of alignments, as Vecalign does.

    Files hold one link per line, such as [0, 1]:[2], with sentences counted from 0 (the output of 'align --format
    vecalign'), or the TSV of 'align --ids'. Blank lines separate documents. A link is correct if it is in the gold
    alignment (strict), or if it shares a sentence on both sides with a gold link (lax). Recall ignores gold links with
    an empty side.
    """
    from bitextmine.evaluation.alignment import evaluate_alignment
    from bitextmine.files.source import Source

    links, gold_links = ([Source.of(path, run) for path in paths] for paths in (aligned, golds))
    show(evaluate_alignment(links, gold_links), form)


@command(
    evaluate,
    "sts",
    example=(
        "bitextmine evaluate sts stsb.en.csv stsb.de.csv --pairs en-de",
        "bitextmine evaluate sts stsb.en.dev.csv",
        "bitextmine evaluate sts stsb.*.dev.csv --pairs en-de,en-es,en-fr,en-it --format json",
    ),
)
def evaluate_sts(
    *,
    files: Annotated[tuple[str, ...], Opt("FILE...", remote=True)],
    pairs: Annotated[
        Directions | None,
        Opt(
            "--pairs",
            "Also measure across languages: first sentences from one file, second sentences from the other; all: to "
            "and from English.",
        ),
    ] = None,
    model: Model = "auto",
    form: Format = "table",
    run: Annotated[Run, Only("device", "batch_tokens", "errors", "max_line")],
) -> None:
    """Measure correlation of cosines with human similarity ratings.

    Prints Spearman correlations x 100 with 95% bootstrap intervals. FILE is comma- or tab-separated: sentence1,
    sentence2, score, or the columns of the STS benchmark, or any order that a header names. The file name states the
    language: stsb.de.dev.csv, stsb-de-dev.csv.
    """
    from bitextmine.evaluation.sts import evaluate_sts as evaluate_files

    show(evaluate_files(files, pairs=pairs, model=model, run=run), form)


@command(
    evaluate,
    "classification",
    example=(
        "bitextmine evaluate classification --train news.en --test news.de --test news.fr",
        "bitextmine evaluate classification --train topics/train.en --test topics/test.de --test topics/test.fr",
    ),
)
def evaluate_classification(
    *,
    train: Annotated[str, _file("--train", "Training documents: label, tab, text on each line.")],
    tests: Annotated[tuple[str, ...], _file("--test", "Test documents in another language.")],
    dev: Annotated[
        File,
        _file(
            "--dev",
            "Documents in the training language to choose the L2 penalty on.",
            default="a tenth of --train",
        ),
    ] = None,
    model: Model = "auto",
    form: Format = "table",
    run: Annotated[Run, Only("device", "batch_tokens", "errors", "max_line")],
) -> None:
    """Measure zero-shot document classification, as MLDoc does.

    Trains a linear classifier on the vectors of documents in one language and tests it on documents in others. The
    encoder itself is not trained.
    """
    from bitextmine.evaluation.classification import evaluate_classification as evaluate_files

    show(evaluate_files(train, tests, dev=dev, model=model, run=run), form)
