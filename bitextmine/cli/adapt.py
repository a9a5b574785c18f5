"""bitextmine adapt"""

from __future__ import annotations

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Language, Number


@click.command(
    cls=Command,
    name="adapt",
    example="bitextmine adapt --src en --tgt de --out model",
    resume="the same command again goes on where this one stopped",
    remote=("directory", "src_file", "tgt_file", "gold"),
)
@click.option(
    "--src",
    type=Language(),
    multiple=True,
    metavar="L",
    help="Source language: its corpus is looked for in --dir; may be repeated.",
)
@click.option(
    "--tgt", type=Language(), multiple=True, metavar="L", help="Target language, likewise: each with each."
)
@click.option(
    "--dir", "directory", default=".", metavar="FOLDER", help="Where the corpora lie.  [default: here]"
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Which corpora, if --dir holds several: news for news.en and news.de; may be repeated.",
)
@click.option(
    "--src-file",
    "src_files",
    multiple=True,
    metavar="FILE",
    help="A source corpus itself, instead of a search; may be repeated.",
)
@click.option(
    "--tgt-file",
    "tgt_files",
    multiple=True,
    metavar="FILE",
    help="The target corpus that goes with it, likewise.",
)
@options.model
@click.option("--out", required=True, metavar="FOLDER", help="The model folder to make.")
@click.option(
    "--error-rate",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    metavar="X",
    help="Share of wrong pairs, as estimated, among those that are trained on.",
)
@options.count("--rounds", default=4, help="Of mining and training, at most.")
@options.neighbours("Neighbours that a margin is taken over.", least=2)
@click.option(
    "--gold",
    multiple=True,
    metavar="FILE",
    help="Known pairs, for true figures in the log: source line, tab, target line, from 1; one for each two corpora.",
)
@options.seed("Of everything random.")
@options.search_memory
@options.device
@options.batch_tokens
@options.errors
@options.max_line
def adapt(
    src: tuple[str, ...],
    tgt: tuple[str, ...],
    directory: str,
    names: tuple[str, ...],
    src_files: tuple[str, ...],
    tgt_files: tuple[str, ...],
    model: str,
    out: str,
    error_rate: float,
    rounds: int,
    k: int,
    gold: tuple[str, ...],
    seed: int,
    memory: int | None,
    device: str,
    batch_tokens: int | None,
    errors: str,
) -> None:
    """Make an encoder that knows your text better, out of that text alone.

    Mines the corpora with the encoder that there is, trains it on from the pairs that --error-rate allows, and mines
    again, until pairs held out are found no better. No known pairs are needed. Writes a model folder for --model, and
    adapt.jsonl in it, what each round gave. If no round is better, or there are too few pairs, it says so, writes no
    model, and ends with exit code 1.

    \b
    bitextmine adapt --src en --tgt de --tgt es --dir crawl --out model
    bitextmine mine --src en --tgt de --dir crawl --model model -o pairs.tsv.gz
    """
    from bitextmine.adaptation.options import AdaptOptions
    from bitextmine.adaptation.piles import find_piles, read_golds
    from bitextmine.adaptation.run import adapt_piles
    from bitextmine.mining.options import WorkOptions

    plan = AdaptOptions(error_rate=error_rate, rounds=rounds, k=k, seed=seed)
    work = WorkOptions(device=device, memory=memory, batch_tokens=batch_tokens, errors=errors)
    piles = find_piles(src, tgt, directory, names, src_files, tgt_files, errors)
    adapt_piles(piles, out, plan, work, model=model, gold=read_golds(gold, piles, errors))
