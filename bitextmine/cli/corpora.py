"""bitextmine split, embed, index."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from bitextmine.cli import options
from bitextmine.cli.declared import Only, command, explicit
from bitextmine.cli.shell import program
from bitextmine.declarations import Opt
from bitextmine.documents.kinds import SplitOptions
from bitextmine.errors import BitextmineError
from bitextmine.files.options import output
from bitextmine.run import Run
from bitextmine.search.options import INDEX_KINDS, IndexOptions

if TYPE_CHECKING:
    from bitextmine.embeddings.embed import Encoding


@command(
    program,
    "split",
    example=(
        "bitextmine split book.en.txt > book.en",
        "bitextmine split site/ --lang fr -o site.fr",
        "bitextmine split crawl.warc.gz --by-language -o 'crawl.{lang}'",
        "zcat articles.jsonl.gz | bitextmine split - --lang de --text-field body > articles.de",
    ),
    resume="with -o, run the same command again to resume",
)
def split(
    *,
    inputs: Annotated[tuple[str, ...], Opt("FILE|FOLDER|-...", remote=True)],
    output: Annotated[
        str, output("Output file; {lang} stands for the language.", "NAME.{lang}", remote=False)
    ] = "-",
    options: SplitOptions,
    run: Annotated[Run, Only("errors", "max_line")],
) -> None:
    """Split documents into sentences, one per line.

    Reads plain text (blank lines separate paragraphs), HTML, WARC, EPUB, DOCX, ODT, PDF (roughly), JSON Lines and
    Parquet, also compressed, and folders of such files. Keeps the main text of web pages. With -o, writes NAME.LANG
    and, line by line beside it, document, URL, paragraph and sentence number in NAME.LANG.origin.tsv. Thai and
    Khmer do not mark sentence ends: a paragraph stays one line.
    """
    from bitextmine.documents.split import split_files

    report = split_files(inputs, output, options, run)
    click.echo(report.to_text(options), err=True)
    if report.damaged:
        raise BitextmineError(report.damage())


@program.command(
    "embed",
    example=(
        "bitextmine embed corpus.fr",
        "bitextmine embed corpus.en corpus.fr.gz",
        "zcat crawl.gz | bitextmine embed - --lang fr --out crawl.fr.npy",
        "bitextmine embed corpus.fr --vectors laser.npy",
    ),
    resume="run the same command again to resume",
    remote=("corpora",),
)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@options.model
@options.lang
@options.text(
    "--out", "FILE.npy", "Output file, for a single corpus.  [default: CORPUS.npy]", type=options.npy_file
)
@options.cache
@options.wait
@options.text(
    "--vectors",
    "FILE.npy",
    "Import vectors that another tool made, for a single corpus. Use them with --model precomputed.",
)
@options.overwrite
@options.with_run(options.device, options.cluster("encode."), options.batch_tokens, options.errors)
def embed(
    corpora: tuple[str, ...],
    model: str,
    lang: str | None,
    out: str | None,
    vectors: str | None,
    run: Run,
    **options: Any,
) -> None:
    """Encode each line of a corpus as a vector.

    Writes corpus.fr.npy (float16, one row per line, unit length, zeros for an empty line) and corpus.fr.json beside
    corpus.fr. Skips a corpus whose embedding is up to date and resumes an interrupted one. If corpus.fr.npy holds the
    vectors of another model, chooses another name.
    """
    if out is not None and not explicit("cache"):
        options["cache"] = None  # --out wins over the environment
    if out is not None and len(corpora) > 1:
        raise click.UsageError(f"--out names one file, but {len(corpora)} corpora are given")
    if vectors is not None:
        _check_vectors(corpora, model, run.executor.distributed)
    from bitextmine.embeddings.embed import EmbedOptions, check_embedding, embed_corpus

    if vectors is not None:
        from bitextmine.embeddings.vectors import adopt_vectors

        how = EmbedOptions(out, force=options["force"])
        adopt_vectors(corpora[0], vectors, run, how, lang=lang)
        return
    from bitextmine.encoder import load_encoder
    from bitextmine.files.source import Source
    from bitextmine.shipped import choose_model

    model = choose_model(model, [lang or Source.of(corpus).lang for corpus in corpora])
    encoder = load_encoder(model, run.device_here)
    how = EmbedOptions(out, **options)
    sources = [Source.of(corpus, run) for corpus in corpora]
    for source in sources:
        check_embedding(source, encoder, how, lang=lang)
    with _encoding(run, model) as encoding:
        how = replace(how, encoding=encoding)
        for source in sources:
            embed_corpus(source, encoder, run, how, lang=lang)


def _check_vectors(corpora: tuple[str, ...], model: str, distributed: bool) -> None:
    from bitextmine.encoder.encoder import PRECOMPUTED

    for wrong, reason in (
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


@program.command(
    "index",
    example=(
        "bitextmine index corpus.fr",
        "bitextmine index corpus.fr --type ivf",
        "bitextmine index corpus.en corpus.fr && bitextmine mine --src en --tgt fr --search index",
    ),
    resume="run the same command again to resume",
    remote=("corpora",),
)
@click.argument("corpora", metavar="CORPUS|FILE.npy...", nargs=-1, required=True)
@options.text(
    "--type",
    f"{'|'.join(INDEX_KINDS)}|FACTORY",
    "Kind of index, or a FAISS factory string such as IVF1024,SQ8; auto: flat up to 250,000 lines, else ivf.",
    dest="kind",
    shown="auto",
    type=options.index_type,
)
@options.count("--recall-sample", "Rows to measure recall on.", default=1000)
@click.option(
    "--recall",
    "--recall-target",
    "recall_target",
    type=options.Number(0, 1),
    default=0.99,
    show_default=True,
    metavar="X",
    help="Raise the search effort (nprobe, efSearch) until recall@1 reaches this share.",
)
@options.neighbours("Neighbours to measure recall with.")
@options.seed("Random seed of the training rows and the recall sample.")
@options.packed(
    "place",
    lambda given: [given.pop(name) for name in ("force", "cache", "wait")],
    options.overwrite,
    options.model,
    options.lang,
    options.cache,
    options.wait,
)
@options.with_run(
    options.memory("Memory limit for building, e.g. 500M or 2G."),
    options.device,
    options.cluster("compute missing vectors; the index itself is built on this machine."),
    options.batch_tokens,
    options.errors,
)
def index(
    corpora: tuple[str, ...], model: str, lang: str | None, place: Any, run: Run, **options: Any
) -> None:
    """Build a FAISS index, for corpora too large for exact search.

    Writes corpus.fr.faiss and corpus.fr.faiss.json beside the vectors, with the recall measured against exact search.
    Embeds a corpus first if its vectors are missing or stale; FILE.npy is indexed as it is.
    """
    from bitextmine.console import progress
    from bitextmine.embeddings.embed import EmbedOptions, check_embedding, embed_corpus
    from bitextmine.embeddings.index_file import check_index_output, index_corpus
    from bitextmine.embeddings.store import vectors_path
    from bitextmine.encoder import load_encoder
    from bitextmine.files.source import Source
    from bitextmine.files.storage import local_path
    from bitextmine.shipped import choose_model

    force, cache, wait = place
    sources = [Source.of(corpus, run) for corpus in corpora]
    for pipe in (source for source in sources if source.reads_once):
        raise click.UsageError(
            f"{pipe.text}: a pipe cannot be indexed; embed it first with 'bitextmine embed - --lang fr --out "
            "corpus.fr.npy', then index the .npy"
        )
    texts = [source for source in sources if not source.text.endswith(".npy")]
    model = choose_model(model, [lang or source.lang for source in texts])
    encoder = load_encoder(model, run.device_here) if texts else None
    how = EmbedOptions(cache=cache, overwrite=force, wait=wait)
    for source in sources:
        vectors = local_path(source.path, "its index is built beside it")
        if encoder is not None and source in texts:
            check_embedding(source, encoder, how, lang=lang)
            if cache is not None:
                continue
            vectors = vectors_path(source, encoder.hash)
        check_index_output(vectors, force=force)
    with _encoding(run, model) if texts else nullcontext() as encoding:
        for source in sources:
            vectors = local_path(source.path, "its index is built beside it")
            if encoder is not None and source in texts:
                vectors = embed_corpus(source, encoder, run, replace(how, encoding=encoding), lang=lang)
            with progress(None, f"index {source}", "vectors") as bar:
                report = index_corpus(vectors, IndexOptions(force=force, **options), run, bar.update)
            click.echo(report.to_table(), err=True)
