"""bitextmine split, embed, index."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import click

from bitextmine.cli.declared import Only, command, explicit
from bitextmine.cli.shell import program
from bitextmine.declarations import Opt
from bitextmine.documents.kinds import SplitOptions
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.errors import BitextmineError
from bitextmine.files.options import output
from bitextmine.languages.codes import LanguageCode
from bitextmine.run import Run
from bitextmine.search.options import IndexOptions
from bitextmine.shipped import Model

Lang = Annotated[LanguageCode | None, Opt("--lang", "Language of the corpus, if its file name does not say.")]


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

    Reads plain text (blank lines separate paragraphs), HTML, WARC, EPUB, DOCX, ODT, PDF (roughly), subtitles (SRT,
    WebVTT, ASS), JSON Lines and Parquet, also compressed, and folders of such files. Keeps the main text of web pages.
    With -o, writes NAME.LANG and, line by line beside it, document, URL, paragraph and sentence number in
    NAME.LANG.origin.tsv. Thai, Lao and Khmer do not mark sentence ends: a paragraph stays one line.
    """
    from bitextmine.documents.split import split_files

    report = split_files(inputs, output, options, run)
    click.echo(report.to_text(options), err=True)
    if report.damaged:
        raise BitextmineError(report.damage())


@command(
    program,
    "embed",
    example=(
        "bitextmine embed corpus.fr",
        "bitextmine embed corpus.en corpus.fr.gz",
        "zcat crawl.gz | bitextmine embed - --lang fr --out crawl.fr.npy",
        "bitextmine embed corpus.fr --vectors laser.npy",
    ),
    resume="run the same command again to resume",
)
def embed(
    *,
    corpora: Annotated[tuple[str, ...], Opt("CORPUS...", remote=True)],
    model: Model = "auto",
    lang: Lang = None,
    vectors: Annotated[
        str | None,
        Opt(
            "--vectors",
            "Import vectors that another tool made, for a single corpus. Use them with --model precomputed.",
            metavar="FILE.npy",
        ),
    ] = None,
    options: EmbedOptions,
    run: Annotated[Run, Only("device", "executor", "batch_tokens", "errors", "max_line")],
) -> None:
    """Encode each line of a corpus as a vector.

    Writes corpus.fr.npy (float16, one row per line, unit length, zeros for an empty line) and corpus.fr.json beside
    corpus.fr. Skips a corpus whose embedding is up to date and resumes an interrupted one. If corpus.fr.npy holds the
    vectors of another model, chooses another name.
    """
    if options.out is not None and not explicit("cache"):
        options = replace(options, cache=None)  # --out wins over the environment
    if options.out is not None and len(corpora) > 1:
        raise click.UsageError(f"--out names one file, but {len(corpora)} corpora are given")
    if vectors is not None:
        if len(corpora) > 1 or corpora[0] == "-" or explicit("cache"):
            raise click.UsageError("--vectors belong to a single corpus, in a file, beside it or at --out")
        from bitextmine.embeddings.vectors import adopt_vectors

        adopt_vectors(corpora[0], vectors, run, options, lang=lang)
        return
    from bitextmine.distributed.encoding import encoding_of
    from bitextmine.embeddings.embed import check_embedding, embed_corpus
    from bitextmine.encoder import load_encoder
    from bitextmine.files.source import Source
    from bitextmine.shipped import choose_model

    model = choose_model(model, [lang or Source.of(corpus).lang for corpus in corpora])
    encoder = load_encoder(model, run.device_here)
    sources = [Source.of(corpus, run) for corpus in corpora]
    for source in sources:
        check_embedding(source, encoder, options, lang=lang)
    with encoding_of(run, encoder) as encoding:
        for source in sources:
            embed_corpus(source, encoder, run, options, lang=lang, encoding=encoding)


@command(
    program,
    "index",
    example=(
        "bitextmine index corpus.fr",
        "bitextmine index corpus.fr --type ivf",
        "bitextmine index corpus.en corpus.fr && bitextmine mine --src en --tgt fr --search index",
    ),
    resume="run the same command again to resume",
)
def index(
    *,
    corpora: Annotated[tuple[str, ...], Opt("CORPUS|FILE.npy...", remote=True)],
    options: IndexOptions,
    model: Model = "auto",
    lang: Lang = None,
    embedding: Annotated[EmbedOptions, Only("cache")],
    run: Annotated[
        Run,
        Only(
            *("device", "executor", "batch_tokens", "errors", "max_line"),
            memory=Opt(
                "--memory", "Memory limit for building, e.g. 500M or 2G.", default="half of the free memory"
            ),
        ),
    ],
) -> None:
    """Build a FAISS index, for corpora too large for exact search.

    Writes corpus.fr.faiss and corpus.fr.faiss.json beside the vectors, with the recall measured against exact search.
    Embeds a corpus first if its vectors are missing or stale; FILE.npy is indexed as it is.
    """
    from bitextmine.console import progress
    from bitextmine.distributed.encoding import encoding_of
    from bitextmine.embeddings.embed import check_embedding, embed_corpus
    from bitextmine.embeddings.index_file import check_index_output, index_corpus
    from bitextmine.embeddings.store import vectors_path
    from bitextmine.encoder import load_encoder
    from bitextmine.files.source import Source
    from bitextmine.files.storage import local_path
    from bitextmine.shipped import choose_model

    sources = [Source.of(corpus, run) for corpus in corpora]
    for pipe in (source for source in sources if source.reads_once):
        raise click.UsageError(
            f"{pipe.text}: a pipe cannot be indexed; embed it first with 'bitextmine embed - --lang fr --out "
            "corpus.fr.npy', then index the .npy"
        )
    texts = [source for source in sources if not source.text.endswith(".npy")]
    model = choose_model(model, [lang or source.lang for source in texts])
    encoder = load_encoder(model, run.device_here) if texts else None
    embedding = replace(embedding, overwrite=options.force)
    for source in sources:
        vectors = local_path(source.path, "its index is built beside it")
        if encoder is not None and source in texts:
            check_embedding(source, encoder, embedding, lang=lang)
            if embedding.cache is not None:
                continue
            vectors = vectors_path(source, encoder.hash)
        check_index_output(vectors, force=options.force)
    with encoding_of(run, encoder) as encoding:
        for source in sources:
            vectors = local_path(source.path, "its index is built beside it")
            if encoder is not None and source in texts:
                vectors = embed_corpus(source, encoder, run, embedding, lang=lang, encoding=encoding)
            with progress(None, f"index {source}", "vectors") as bar:
                report = index_corpus(vectors, options, run, bar.update)
            click.echo(report.to_table(), err=True)
