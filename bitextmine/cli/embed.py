"""bitextmine embed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.options import explicit
from bitextmine.cli.shell import Command
from bitextmine.cli.types import npy_file
from bitextmine.files.urls import is_remote

if TYPE_CHECKING:
    from bitextmine.embeddings.embed import Encoding
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="embed",
    example=(
        "bitextmine embed corpus.fr",
        "bitextmine embed corpus.en corpus.fr.gz",
        "zcat crawl.gz | bitextmine embed - --lang fr --out crawl.fr.npy",
        "bitextmine embed corpus.fr --vectors laser.raw --dim 1024",
    ),
    resume="run the same command again to resume",
    remote=("corpora", "out"),
)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@options.model
@options.lang
@click.option(
    "--out",
    type=npy_file,
    metavar="FILE.npy",
    help="Output file, for a single corpus; may be a URL if --cache is given.  [default: CORPUS.npy]",
)
@options.cache
@options.wait
@options.text(
    "--vectors",
    "FILE",
    "Import vectors that another tool made, for a single corpus: .npy, or LASER's headerless float32 or float16. "
    "Use them with --model precomputed.",
)
@options.count("--dim", "Dimensions of headerless --vectors.")
@options.overwrite
@options.with_run(options.device, options.cluster("encode."), options.batch_tokens, options.errors)
def embed(
    corpora: tuple[str, ...],
    model: str,
    out: str | None,
    cache: str | None,
    vectors: str | None,
    dim: int | None,
    run: Run,
    **options: Any,
) -> None:
    """Encode each line of a corpus as a vector.

    Writes corpus.fr.npy (float16, row i is line i, unit length, zeros for an empty line) and corpus.fr.json beside
    corpus.fr. Skips a corpus whose embedding is up to date and resumes an interrupted one. If corpus.fr.npy holds the
    vectors of another model, writes to a name of its own.
    """
    sent = out is not None and is_remote(out)
    if out is not None and not sent:
        cache = cache if explicit("cache") else None  # --out wins over the environment
    if out is not None and len(corpora) > 1:
        raise click.UsageError(f"--out names one file, but {len(corpora)} corpora are given")
    if vectors is not None:
        _check_vectors(corpora, model, sent, run.executor.distributed)
        from bitextmine.embeddings.embed import EmbedOptions
        from bitextmine.embeddings.vectors import adopt_vectors

        how = EmbedOptions(out, force=options["force"])
        adopt_vectors(corpora[0], vectors, run, how, dim=dim, lang=options["lang"])
        return
    if dim is not None:
        raise click.UsageError("--dim is only for --vectors")
    from bitextmine.embeddings.embed import EmbedOptions, check_embedding, embed_corpus, embed_to
    from bitextmine.encoder import load_encoder

    encoder = load_encoder(model, run.device_here)
    lang = options.pop("lang")
    if sent and out is not None:
        from bitextmine.files.storage import Remote

        with _encoding(run, model) as encoding:
            how = EmbedOptions(cache=cache, encoding=encoding, **options)
            embed_to(Remote(out), corpora[0], encoder, run, how, lang=lang)
        return
    for corpus in corpora:
        check_embedding(corpus, encoder, EmbedOptions(out, cache, **options), lang=lang)
    with _encoding(run, model) as encoding:
        how = EmbedOptions(out, cache, encoding=encoding, **options)
        for corpus in corpora:
            embed_corpus(corpus, encoder, run, how, lang=lang)


def _check_vectors(corpora: tuple[str, ...], model: str, sent: bool, distributed: bool) -> None:
    from bitextmine.encoder.encoder import PRECOMPUTED

    for wrong, reason in (
        (sent, "--vectors are written to a local file: --out FILE.npy"),
        (explicit("model") and model != PRECOMPUTED, "--vectors are already computed: leave out --model"),
        (len(corpora) > 1 or corpora[0] == "-", "--vectors belong to a single corpus, in a file"),
        (distributed, "--vectors are already computed: a cluster has nothing to do"),
        (explicit("cache"), "--vectors go beside their corpus or to --out: leave out --cache"),
    ):
        if wrong:
            raise click.UsageError(reason)


def _encoding(run: Run, model: str) -> AbstractContextManager[Encoding | None]:
    if not run.executor.distributed:
        return nullcontext()
    from bitextmine.distributed.encoding import ClusterEncoding

    return ClusterEncoding(run.executor, model, run.device)
