"""bitextmine adapt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="adapt",
    example=(
        "bitextmine adapt news.en news.de --out model",
        "bitextmine adapt --src en --tgt de --out model",
        "bitextmine adapt --src en --tgt de --tgt es --dir crawl --out model",
        "bitextmine mine --src en --tgt de --dir crawl --model model -o pairs.tsv.gz",
    ),
    resume="run the same command again to resume",
    remote=("corpora", "directory", "src_file", "tgt_file", "gold"),
)
@click.argument("corpora", metavar="[SRC TGT]", nargs=-1)
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
    "Known pairs, only to log true figures: source line, tab, target line, counted from 1; one file for each pair "
    "of corpora.",
    multiple=True,
)
@options.seed()
@options.with_run(options.search_memory, options.device, options.batch_tokens, options.errors)
def adapt(
    corpora: tuple[str, ...],
    src: tuple[str, ...],
    tgt: tuple[str, ...],
    directory: str,
    name: tuple[str, ...],
    src_file: tuple[str, ...],
    tgt_file: tuple[str, ...],
    model: str,
    out: str,
    gold: tuple[str, ...],
    run: Run,
    **options: Any,
) -> None:
    """Adapt an encoder to your own text, without known pairs.

    Mines the corpora with the encoder, continues its training on the pairs that --error-rate allows, and repeats until
    retrieval of held-out pairs no longer improves. Writes a model folder for --model; adapt.jsonl in it logs each
    round. If no round helps, or there are too few pairs, writes no model and exits with code 1.
    """
    from bitextmine.adaptation.piles import find_piles, read_golds
    from bitextmine.adaptation.run import adapt_piles
    from bitextmine.adaptation.training import AdaptOptions

    plan = AdaptOptions(**options)
    piles = find_piles(corpora, (src, src_file), (tgt, tgt_file), directory, name, run.errors)
    adapt_piles(piles, out, plan, run, model=model, gold=read_golds(gold, piles, run.errors))
