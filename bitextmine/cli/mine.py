"""bitextmine mine"""

from __future__ import annotations

import contextlib
from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Language, Number
from bitextmine.mining.choices import Dedup, Duplicates, Retrieval, SearchWay


@click.command(
    cls=Command,
    name="mine",
    example="bitextmine mine --src en --tgt fr",
    resume="the same command again goes on where this one stopped",
    remote=("corpora", "directory", "src_file", "tgt_file", "gold", "output"),
)
@click.argument("corpora", metavar="[SRC TGT]", nargs=-1)
@click.option(
    "--src",
    type=Language(),
    multiple=True,
    metavar="L",
    help="Source language: its corpus is looked for in --dir. Given again, another source.",
)
@click.option("--tgt", type=Language(), multiple=True, metavar="L", help="Target language, likewise.")
@click.option(
    "--dir", "directory", default=".", metavar="FOLDER", help="Where the corpora lie.  [default: here]"
)
@click.option(
    "--name", metavar="NAME", help="Which corpora, if --dir holds several: news for news.en and news.fr."
)
@click.option(
    "--src-file", multiple=True, metavar="FILE", help="The source corpus itself, instead of a search."
)
@click.option("--tgt-file", multiple=True, metavar="FILE", help="The target corpus, likewise.")
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
    "--rescore/--no-rescore",
    default=None,
    help="Score by the pieces' matches, too: scores, and --threshold, are log odds that a pair is a translation, 0 for "
    "an even chance. Without: margins.  [default: where the encoder has a scorer, by the ratio, with -k 2 or more]",
)
@click.option(
    "--clean/--no-clean",
    default=True,
    show_default=True,
    help="Leave out junk, boilerplate, copies, and with the extra 'languages' text in another language.",
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
    help="Where the pairs go, with FILE.json: .tsv, .jsonl, .tmx or .parquet; .gz, .bz2, .xz or .zst behind compress; "
    "{src} and {tgt} stand for the languages.  [default: standard output]",
)
@options.cache
@options.wait
@click.option(
    "--force", is_flag=True, help="Embed again what is up to date, and write over files of other programs."
)
@options.search_memory
@options.device
@options.ray("Have a Ray cluster encode and search.")
@options.batch_tokens
@options.errors
@options.max_line
@options.plan
def mine(
    corpora: tuple[str, ...],
    src: tuple[str, ...],
    tgt: tuple[str, ...],
    directory: str,
    name: str | None,
    src_file: tuple[str, ...],
    tgt_file: tuple[str, ...],
    model: str,
    output: str,
    ids: bool,
    plan: bool,
    assume: tuple[tuple[str, float], ...],
    **options: Any,
) -> None:
    """Find the sentence pairs in two corpora.

    Prints score, source sentence, target sentence, separated by tabs, best first. Corpora that are not embedded, or
    whose text or model changed, are embedded first. Of several languages each source is mined with each target, and
    every corpus is embedded once.

    \b
    bitextmine mine --src en --tgt fr --dir crawl --name news -o pairs.tsv.gz
    bitextmine mine a.en b.fr --threshold 3 | cut -f 2,3
    bitextmine mine --src en --tgt fr --tgt de -o mined.{src}-{tgt}.tsv
    bitextmine mine --src en --tgt fr --ray auto --ray-cpus 8
    """
    from bitextmine.encoder import load_encoder
    from bitextmine.mining.options import split_options
    from bitextmine.mining.planning import mining_plans
    from bitextmine.mining.run import mine_texts
    from bitextmine.mining.several import embed_all, find_pairs, output_names

    if assume and not plan:
        raise click.UsageError("--assume is for --plan")
    mining, work = split_options(options)
    pairs = find_pairs(corpora, (src, src_file), (tgt, tgt_file), directory, name, work.errors)
    if plan:
        click.echo("\n\n".join(mining_plans(pairs, mining, work, model, assume)))
        return
    outputs = output_names(output, pairs, mining.gold)
    embedded, encoder = None, None
    done = []
    with contextlib.ExitStack() as stack:
        if len(pairs) > 1:
            if work.cluster is not None:
                from bitextmine.distributed.cluster import connected

                stack.enter_context(connected(work.cluster))  # once for all of them
            encoder = load_encoder(model, work.device_here)
            embedded = embed_all(pairs, outputs, encoder, work)
        for (source, target), place in zip(pairs, outputs, strict=True):
            bitext = mine_texts(
                source, target, mining, work, model=encoder or model, output=place, embedded=embedded
            )
            bitext.write(place, ids, force=work.force)
            done.append(bitext)
            click.echo(bitext.to_table(), err=True)
    for bitext in done:  # until then, a run that is killed finds what has been searched
        bitext.discard_checkpoint()
