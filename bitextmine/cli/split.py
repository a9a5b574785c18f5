"""bitextmine split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bitextmine.cli import options
from bitextmine.cli.shell import Command
from bitextmine.documents.options import Kind, SplitOptions

if TYPE_CHECKING:
    from bitextmine.run import Run


@click.command(
    cls=Command,
    name="split",
    example=(
        "bitextmine split book.en.txt > book.en",
        "bitextmine split site/ --lang fr -o site.fr",
        "bitextmine split crawl.warc.gz --by-language -o 'crawl.{lang}'",
        "zcat articles.jsonl.gz | bitextmine split - --lang de --text-field body > articles.de",
    ),
    resume="with -o, run the same command again to resume",
    remote=("inputs",),
)
@click.argument("inputs", metavar="FILE|FOLDER|-...", nargs=-1, required=True)
@options.language(
    "--lang",
    "Language of the documents.  [default: as in book.en.txt] With --by-language, a language to keep; repeatable.",
    dest="langs",
    multiple=True,
)
@options.flag("--by-language", "Identify the language of each document. Needs the extra 'languages'.")
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="NAME.{lang}",
    help="Corpus to write; {lang} stands for the language.  [default: standard output]",
)
@options.flag(
    "--ids",
    "Write document, URL, paragraph and sentence number before each sentence, separated by tabs, and no "
    "NAME.LANG.origin.tsv.",
)
@click.option(
    "--join",
    type=click.Choice(["sentence", "paragraph"]),
    default="sentence",
    show_default=True,
    help="Write one sentence or one paragraph per line.",
)
@click.option(
    "--normalize/--no-normalize",
    default=True,
    show_default=True,
    help="Remove markup, mojibake, control and zero-width characters and runs of spaces, and apply Unicode NFC.",
)
@click.option(
    "--from",
    "kind",
    type=click.Choice([kind.value for kind in Kind]),
    help="Format of the files.  [default: by suffix, then by content]",
)
@options.text(
    "--text-field", "NAME", "Field of JSON Lines, or column of Parquet, that holds the text.", shown="text"
)
@options.with_run(options.errors)
def split(inputs: tuple[str, ...], output: str, kind: str | None, run: Run, **options: Any) -> None:
    """Split documents into sentences, one per line.

    Reads plain text (blank lines separate paragraphs), HTML, WARC, JSON Lines and Parquet, also compressed, and folders
    of such files. Of a web page, keeps the main text. With -o, writes NAME.LANG and NAME.LANG.origin.tsv, whose line i
    is the document, URL, paragraph and sentence number of line i.
    """
    from bitextmine.documents.run import split_files

    how = SplitOptions(kind=Kind(kind) if kind else None, **options)
    click.echo(split_files(inputs, output, how, run).to_text(how), err=True)
