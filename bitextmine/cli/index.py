"""bitextmine index"""

from __future__ import annotations

import contextlib
from typing import Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.cli.types import IndexType, Number
from bitextmine.indexing.kinds import KINDS


@click.command(
    cls=Command,
    name="index",
    example="bitextmine index corpus.fr",
    resume="the same command again goes on where this one stopped",
    remote=("corpora",),
)
@click.argument("corpora", metavar="CORPUS|FILE.npy...", nargs=-1, required=True)
@click.option(
    "--type",
    "kind",
    type=IndexType(),
    default="auto",
    show_default=True,
    metavar=f"{'|'.join(KINDS)}|FACTORY",
    help="Kind of index, or a FAISS factory string such as IVF1024,SQ8; auto: what costs least, measured here.",
)
@options.count("--recall-sample", default=1000, help="Rows that the recall is measured on.")
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
@options.neighbours("Neighbours that the recall counts.")
@options.seed("Of training rows and sample.")
@options.count(
    "--queries", default=None, help="How many searches 'auto' counts on.  [default: as many as rows]"
)
@options.memory("Most that building may take, as 500M or 2G.")
@click.option(
    "--force", is_flag=True, help="Build again what is up to date, and write over files of other programs."
)
@options.model
@options.lang
@options.cache
@options.wait
@options.device
@options.ray("Have a Ray cluster make vectors that are missing; the index is built here.")
@options.batch_tokens
@options.errors
@options.max_line
def index(
    corpora: tuple[str, ...],
    model: str,
    device: str,
    lang: str | None,
    batch_tokens: int | None,
    errors: str,
    cache: str | None,
    wait: bool,
    ray: str | None,
    ray_cpus: int,
    ray_gpus: int,
    ray_rows: int | None,
    ray_report: str | None,
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
    from bitextmine.distributed.options import ray_options
    from bitextmine.embeddings.embed import check_embedding, embed_corpus
    from bitextmine.embeddings.places import place_of
    from bitextmine.encoder import load_encoder
    from bitextmine.files.streams import read_once
    from bitextmine.indexing.file import check_index_output, index_corpus

    for corpus in corpora:
        if read_once(corpus):
            raise click.UsageError(
                f"{corpus}: what comes out of a pipe has no vectors to lie beside; embed it first, as in "
                "'bitextmine embed - --lang fr --out corpus.fr.npy', and index the .npy"
            )
    force = options["force"]
    cluster = ray_options(ray, ray_cpus, ray_gpus, ray_rows, ray_report)
    here = device
    if cluster is not None:
        cluster.device(device)
        here = "cpu"
    encoder = None if all(corpus.endswith(".npy") for corpus in corpora) else load_encoder(model, here)
    for corpus in corpora:
        if encoder is None or corpus.endswith(".npy"):
            check_index_output(corpus, force=force)
            continue
        check_embedding(corpus, encoder, cache=cache, lang=lang, overwrite=force)
        if cache is None:
            check_index_output(place_of(corpus, encoder.hash), force=force)
    with contextlib.ExitStack() as stack:
        encoding = None
        if cluster is not None and encoder is not None:
            from bitextmine.distributed.encoding import ClusterEncoding

            encoding = stack.enter_context(ClusterEncoding(cluster, model, device))
        for corpus in corpora:
            vectors = corpus
            if encoder is not None and not corpus.endswith(".npy"):
                vectors = str(
                    embed_corpus(
                        corpus,
                        encoder,
                        lang=lang,
                        errors=errors,
                        batch_tokens=batch_tokens,
                        overwrite=force,
                        cache=cache,
                        wait=wait,
                        encoding=encoding,
                    )
                )
            with progress(None, f"index {corpus}", "vectors") as bar:
                report = index_corpus(vectors, progress=bar.update, **options)
            click.echo(report.to_table(), err=True)
