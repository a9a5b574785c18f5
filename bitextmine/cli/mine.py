"""bitextmine mine"""

from __future__ import annotations

from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Language, Number
from bitextmine.mine.choices import Dedup, Duplicates, Retrieval, SearchWay


@click.command(
    cls=Command,
    name="mine",
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
@click.option("--src-file", metavar="FILE", help="The source corpus itself, instead of a search.")
@click.option("--tgt-file", metavar="FILE", help="The target corpus, likewise.")
@options.model
@options.neighbours("Neighbours that a margin is taken over.")
@options.margin("Score.")
@options.choice("--retrieval", Retrieval, Retrieval.MAX, "Which pairs are kept.")
@options.threshold(
    "Lowest score kept. auto: the best F1 on --gold, else the score that a share --fpr of the lines "
    "without a translation would reach. precision=0.95: the lowest at which an estimated 95% of the pairs are true.",
    precision=True,
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
@options.choice("--dedup", Dedup, Dedup.EXACT, "Which lines count as the same and are mined once.")
@options.choice("--duplicates", Duplicates, Duplicates.FIRST, "What becomes of equal lines.")
@options.choice("--search", SearchWay, SearchWay.AUTO, "How neighbours are found.")
@click.option("--ids", is_flag=True, help="Add two columns after the score: both line numbers, from 1.")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Where the pairs go, with FILE.json: .tsv, .jsonl, .tmx or .parquet; .gz, .bz2, .xz or .zst behind compress."
    "  [default: standard output]",
)
@click.option(
    "--force", is_flag=True, help="Embed again what is up to date, and write over files of other programs."
)
@options.search_memory
@options.device
@options.batch_tokens
@options.errors
@options.max_line
def mine(
    src: str | None,
    tgt: str | None,
    directory: str,
    name: str | None,
    src_file: str | None,
    tgt_file: str | None,
    model: str,
    output: str,
    ids: bool,
    **options: Any,
) -> None:
    """Find the sentence pairs in two corpora.

    Prints score, source sentence, target sentence, separated by tabs, best first. Corpora that are not embedded, or
    whose text or model changed, are embedded first.

    \b
    bitextmine mine --src en --tgt fr --dir crawl --name news -o pairs.tsv.gz
    bitextmine mine --src-file a.en --tgt-file b.fr --threshold 1.1 | cut -f 2,3
    """
    for side, lang, path in (("src", src, src_file), ("tgt", tgt, tgt_file)):
        if lang is None and path is None:
            raise click.UsageError(f"give --{side} or --{side}-file")
    from bitextmine.mine.options import split_options
    from bitextmine.mine.run import mine_texts
    from bitextmine.mine.texts import find_text

    mining, work = split_options(options)
    source, target = (
        find_text(side, lang, path, directory, name, work.errors)
        for side, lang, path in (("source", src, src_file), ("target", tgt, tgt_file))
    )
    bitext = mine_texts(source, target, mining, work, model=model, output=output)
    bitext.write(output, ids, force=work.force)
    bitext.discard_checkpoint()
    click.echo(bitext.to_table(), err=True)
