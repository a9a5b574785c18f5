"""bitextmine mine."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.mining.choices import Dedup, Duplicates, Retrieval, SearchWay

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="mine",
    example=(
        "bitextmine mine --src en --tgt fr",
        "bitextmine mine --src en --tgt fr --dir crawl --name news -o pairs.tsv.gz",
        "bitextmine mine a.en b.fr --threshold 3 | cut -f 2,3",
        "bitextmine mine --src en --tgt fr --tgt de -o mined.{src}-{tgt}.tsv",
    ),
    resume="run the same command again to resume",
    remote=("corpora", "directory", "src_file", "tgt_file", "gold", "output"),
)
@click.argument("corpora", metavar="[SRC TGT]", nargs=-1)
@options.with_corpora(several_names=False)
@options.model
@options.neighbours("Neighbours for the margin.")
@options.margin("How a pair is scored.")
@options.choice("--retrieval", Retrieval, Retrieval.MAX, "Which pairs are kept.")
@options.threshold(
    "Lowest score to keep. auto: the best F1 on --gold or, without it, f1. f1, f0.5, ...: the best expected F-measure, "
    "estimated from the corpora; f0.5 prefers precision. precision=0.95: the lowest score at which an estimated 95% of "
    "the pairs are true. fpr=0.01: the score that an estimated 1% of the lines without a translation reach.",
    estimated=True,
)
@options.text(
    "--gold",
    "FILE",
    "Known pairs to tune --threshold auto on, all or a sample: source line, tab, target line, from 1.",
)
@click.option(
    "--rescore/--no-rescore",
    default=None,
    help="Also compare the subwords of each pair; scores and --threshold are then the log odds that a pair is a "
    "translation (0: even odds), not margins.  [default: on if the encoder has a scorer, the margin is ratio and k >= "
    "2]",
)
@click.option(
    "--clean/--no-clean",
    default=True,
    show_default=True,
    help="Leave out junk, boilerplate, copies and, with the extra 'languages', text in the wrong language.",
)
@options.choice("--dedup", Dedup, Dedup.EXACT, "Lines that count as duplicates and are mined once.")
@options.choice("--duplicates", Duplicates, Duplicates.FIRST, "Pairs for duplicate lines.")
@options.choice("--search", SearchWay, SearchWay.AUTO, "How to search for neighbours.")
@options.flag("--ids", "Add both line numbers, counted from 1, after the score.")
@options.flag(
    "--origin",
    "Add the origin of source and target at the end, from NAME.LANG.origin.tsv beside the corpora: URL or document, "
    "paragraph and sentence.",
)
@options.flag(
    "--normalize", "Write sentences without markup, mojibake, control characters and runs of spaces."
)
@options.output(
    "Output file, described by FILE.json: .tsv, .jsonl, .tmx or .parquet; add .gz, .bz2, .xz or .zst to compress; "
    "{src} and {tgt} are replaced by the languages."
)
@options.cache
@options.wait
@options.overwrite
@options.with_run(
    options.search_memory,
    options.device,
    options.cluster("encode and search."),
    options.batch_tokens,
    options.errors,
)
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
    origin: bool,
    normalize: bool,
    run: Run,
    **options: Any,
) -> None:
    """Find translated sentence pairs in two corpora.

    Prints score, source sentence and target sentence, separated by tabs, best pair first. Embeds corpora that have no
    embedding, or whose text or model has changed. With several languages, mines every source with every target and
    embeds each corpus once.
    """
    from bitextmine.encoder import load_encoder
    from bitextmine.mining.options import split_options
    from bitextmine.mining.run import embed_all, mine_texts
    from bitextmine.mining.scorer import open_scoring
    from bitextmine.mining.texts import find_pairs, output_names

    mining, work = split_options(options, run)
    pairs = find_pairs(corpora, (src, src_file), (tgt, tgt_file), directory, name, run.errors)
    if origin:  # better now than after the work
        for text in {text for pair in pairs for text in pair}:
            text.origins()
    outputs = output_names(output, pairs, mining.gold)
    embedded, encoder = None, None
    done = []
    with contextlib.ExitStack() as stack:
        if len(pairs) > 1:
            stack.enter_context(run.executor.open())  # once for all of them
            encoder = load_encoder(model, run.device_here)
            rescored = open_scoring(encoder, model, mining.wants_rescoring) is not None
            embedded = embed_all(pairs, outputs, encoder, work, rescored)
        for (source, target), place in zip(pairs, outputs, strict=True):
            bitext = mine_texts(
                source, target, mining, work, model=encoder or model, output=place, embedded=embedded
            )
            bitext.write(place, ids, origin=origin, normalize=normalize, force=work.force)
            done.append(bitext)
            click.echo(bitext.to_table(), err=True)
    for bitext in done:  # only now: until all are written, an interrupted run resumes from the checkpoints
        bitext.discard_checkpoint()
