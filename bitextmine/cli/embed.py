"""bitextmine embed"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.options import explicit
from bitextmine.cli.shell import Command
from bitextmine.cli.types import NpyFile
from bitextmine.files.urls import is_remote

if TYPE_CHECKING:
    from bitextmine.distributed.options import RayOptions
    from bitextmine.embeddings.embed import Encoding


@click.command(
    cls=Command,
    name="embed",
    example="bitextmine embed corpus.fr",
    resume="the same command again goes on where this one stopped",
    remote=("corpora", "out"),
)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@options.model
@options.lang
@click.option(
    "--out",
    type=NpyFile(),
    metavar="FILE.npy",
    help="Where the vectors go (one corpus only); with --cache it may be a URL.  [default: CORPUS.npy]",
)
@options.cache
@options.wait
@click.option(
    "--vectors",
    metavar="FILE",
    help="Take these, made by another tool: a .npy, or LASER's float32 or float16 without a header (one corpus only; "
    "use them with --model precomputed).",
)
@options.count("--dim", default=None, help="Numbers in each of --vectors that have no header.")
@click.option(
    "--force", is_flag=True, help="Embed again what is up to date, and write over files of other programs."
)
@options.device
@options.ray("Have a Ray cluster encode.")
@options.batch_tokens
@options.errors
@options.max_line
@options.plan
def embed(
    corpora: tuple[str, ...],
    model: str,
    device: str,
    out: str | None,
    cache: str | None,
    vectors: str | None,
    dim: int | None,
    plan: bool,
    assume: tuple[tuple[str, float], ...],
    ray: str | None,
    ray_cpus: int,
    ray_gpus: int,
    ray_rows: int | None,
    ray_report: str | None,
    **options: Any,
) -> None:
    """Turn each line of a corpus into a vector.

    Writes corpus.fr.npy (float16, row i is line i, unit length, zeros for an empty line) and corpus.fr.json beside
    corpus.fr. An embedding of the same text and model is left as it is; an interrupted one is taken up. Where
    corpus.fr.npy has the vectors of another model, those of this one get a name of their own.

    \b
    bitextmine embed corpus.en corpus.fr.gz
    zcat crawl.gz | bitextmine embed - --lang fr --out crawl.fr.npy
    bitextmine embed corpus.fr --vectors laser.raw --dim 1024
    bitextmine embed corpus.en corpus.fr --ray auto --ray-cpus 4
    """
    if assume and not plan:
        raise click.UsageError("--assume is for --plan")
    from bitextmine.distributed.options import ray_options

    cluster = ray_options(ray, ray_cpus, ray_gpus, ray_rows, ray_report)
    sent = out is not None and is_remote(out)
    if out is not None and not sent:
        cache = cache if explicit("cache") else None  # the environment's gives way
    if out is not None and len(corpora) > 1:
        raise click.UsageError(f"--out names one file, but {len(corpora)} corpora are given")
    if dim is not None and vectors is None:
        raise click.UsageError("--dim is for --vectors")
    if plan and vectors is not None:
        raise click.UsageError("--plan has nothing to say of --vectors: they are made already")
    if vectors is not None:
        if sent:
            raise click.UsageError("--vectors go to a file of this machine: --out FILE.npy")
        from bitextmine.encoder.precomputed import PRECOMPUTED

        if explicit("model") and model != PRECOMPUTED:
            raise click.UsageError("--vectors are made already: no --model makes them")
        if len(corpora) > 1 or corpora[0] == "-":
            raise click.UsageError("--vectors are of one corpus, in a file")
        if cluster is not None:
            raise click.UsageError("--ray has nothing to do with --vectors: they are made already")
        if explicit("cache"):
            raise click.UsageError("--vectors go beside their corpus, or where --out says: not into --cache")
        from bitextmine.embeddings.vectors import adopt_vectors

        adopt_vectors(
            corpora[0],
            vectors,
            dim=dim,
            out=out,
            lang=options["lang"],
            errors=options["errors"],
            force=options["force"],
        )
        return
    from bitextmine.embeddings.embed import check_embedding, embed_corpus
    from bitextmine.encoder import load_encoder

    if cluster is not None:
        cluster.device(device)
    encoder = load_encoder(model, device if cluster is None else "cpu")
    if plan:
        from bitextmine.distributed.planned import plan_embedding, rates_of

        click.echo(plan_embedding(corpora, encoder, rates_of(encoder, assume, cluster), cluster))
        return
    if sent and out is not None:
        from bitextmine.embeddings.sending import embed_to
        from bitextmine.files.storage import Remote

        with _encoding(cluster, model, device) as encoding:
            embed_to(Remote(out), corpora[0], encoder, cache, encoding=encoding, **options)
        return
    for corpus in corpora:
        check_embedding(
            corpus, encoder, out=out, cache=cache, lang=options["lang"], overwrite=options["force"]
        )
    with _encoding(cluster, model, device) as encoding:
        for corpus in corpora:
            embed_corpus(corpus, encoder, out=out, cache=cache, encoding=encoding, **options)


def _encoding(cluster: RayOptions | None, model: str, device: str) -> AbstractContextManager[Encoding | None]:
    """What encodes in the place of this process; None without a cluster."""
    if cluster is None:
        return nullcontext()
    from bitextmine.distributed.encoding import ClusterEncoding

    return ClusterEncoding(cluster, model, device)
