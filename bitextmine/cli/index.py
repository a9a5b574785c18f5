"""bitextmine index."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import Number, index_type
from bitextmine.indexing.options import KINDS, IndexOptions

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="index",
    example=(
        "bitextmine index corpus.fr",
        "bitextmine index corpus.fr --type ivf",
        "bitextmine index corpus.en corpus.fr && bitextmine mine --src en --tgt fr --search index",
    ),
    resume="run the same command again to resume",
    remote=("corpora",),
)
@click.argument("corpora", metavar="CORPUS|FILE.npy...", nargs=-1, required=True)
@click.option(
    "--type",
    "kind",
    type=index_type,
    default="auto",
    show_default=True,
    metavar=f"{'|'.join(KINDS)}|FACTORY",
    help="Kind of index, or a FAISS factory string such as IVF1024,SQ8; auto: the cheapest, measured on this machine.",
)
@options.count("--recall-sample", "Rows to measure recall on.", default=1000)
@click.option(
    "--recall",
    "--recall-target",
    "recall_target",
    type=Number(0, 1),
    default=0.99,
    show_default=True,
    metavar="X",
    help="Raise the search effort (nprobe, efSearch) until this share of nearest rows is found.",
)
@options.neighbours("Neighbours to measure recall with.")
@options.seed("Random seed of the training rows and the recall sample.")
@options.count("--queries", "Searches that 'auto' plans for.  [default: one per row]")
@options.overwrite
@options.model
@options.lang
@options.cache
@options.wait
@options.with_run(
    options.memory("Memory limit for building, e.g. 500M or 2G."),
    options.device,
    options.cluster("compute missing vectors; the index itself is built on this machine."),
    options.batch_tokens,
    options.errors,
)
def index(
    corpora: tuple[str, ...],
    model: str,
    lang: str | None,
    cache: str | None,
    wait: bool,
    force: bool,
    run: Run,
    **options: Any,
) -> None:
    """Build a FAISS index of a corpus, for corpora too large for exact search.

    Writes corpus.fr.faiss and corpus.fr.faiss.json beside the vectors, with the recall measured against exact search.
    Embeds a corpus first if its vectors are missing or stale; FILE.npy is indexed as it is.
    """
    from bitextmine.console import progress
    from bitextmine.embeddings.embed import EmbedOptions, check_embedding, embed_corpus
    from bitextmine.embeddings.places import place_of
    from bitextmine.encoder import load_encoder
    from bitextmine.files.streams import read_once
    from bitextmine.indexing.file import check_index_output, index_corpus

    for corpus in filter(read_once, corpora):
        raise click.UsageError(
            f"{corpus}: a pipe cannot be indexed; embed it first with 'bitextmine embed - --lang fr --out "
            "corpus.fr.npy', then index the .npy"
        )
    texts = [corpus for corpus in corpora if not corpus.endswith(".npy")]
    encoder = load_encoder(model, run.device_here) if texts else None
    for corpus in corpora:
        if encoder is None or corpus not in texts:
            check_index_output(corpus, force=force)
            continue
        check_embedding(corpus, encoder, EmbedOptions(cache=cache, overwrite=force), lang=lang)
        if cache is None:
            check_index_output(place_of(corpus, encoder.hash), force=force)
    with contextlib.ExitStack() as stack:
        encoding = None
        if run.executor.distributed and encoder is not None:
            from bitextmine.distributed.encoding import ClusterEncoding

            encoding = stack.enter_context(ClusterEncoding(run.executor, model, run.device))
        for corpus in corpora:
            vectors = corpus
            if encoder is not None and corpus in texts:
                how = EmbedOptions(cache=cache, overwrite=force, wait=wait, encoding=encoding)
                vectors = str(embed_corpus(corpus, encoder, run, how, lang=lang))
            with progress(None, f"index {corpus}", "vectors") as bar:
                report = index_corpus(vectors, IndexOptions(force=force, **options), run, bar.update)
            click.echo(report.to_table(), err=True)
