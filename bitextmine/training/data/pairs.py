"""Read sentence pairs from tables or from paired files, and check corpora before training."""

from collections.abc import Iterator

from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.table import open_table
from bitextmine.files.source import Source, TwoFiles
from bitextmine.training.recipe import PairCorpus, Recipe, resolve_corpora

FIRST = 400  # pairs that are read before any work


def corpus_files(recipe: Recipe, corpus: PairCorpus) -> list[Source]:
    """Return the file of a TSV corpus, or the two of a paired one; BitextmineError for a pipe."""
    files = [recipe.corpus(name) for name in corpus.files]
    for file in (file for file in files if file.reads_once):
        raise BitextmineError(f"{file}: not a regular file; a corpus is read more than once: save it first")
    return files


def pair_chunks(recipe: Recipe, corpus: PairCorpus, size: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the sources and targets of a corpus in file order, ``size`` pairs at a time.

    Raises BitextmineError if a row is not a pair, paired files differ in length, UTF-8 is invalid (unless the recipe
    has it replaced), or a file cannot be read.
    """
    first, *second = corpus_files(recipe, corpus)
    if not second:
        yield from _rows(first, corpus.langs, size)
    else:
        both = TwoFiles.join(first, second[0], errors=first.errors, max_line=first.max_line)
        yield from _rows(both, None, size)


def _rows(source: Source, langs: tuple[str, str] | None, size: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the pairs of a file; the columns are swapped if it names the languages (``langs``) that way.

    Lines of text may have further cells. Where columns cannot be told apart, the first two are meant.
    """
    table = open_table(source, Columns(errors=source.errors, ragged=True))
    layout = table.layout
    if table.rows.empty:
        return
    sides = [0, 1] if layout.unknown and table.format.lines else [layout.src, layout.tgt]
    if langs and (layout.src_lang, layout.tgt_lang) == langs[::-1]:
        sides.reverse()
    for block in table.rows.blocks(size):
        untranslated = getattr(block, "untranslated", ())
        bad = {at: reason for at, reason in block.bad().items() if at not in untranslated}
        if bad:
            place = min(bad)
            number = block.start + place + table.rows.header_line
            if not table.format.lines:
                raise BitextmineError(f"{source}: row {number}: {bad[place]}")
            raise BitextmineError(
                f"{source}: line {number}: {bad[place]}; a pair is source, tab, target; for two files with a side "
                "each, name them as src and tgt instead of pairs in the recipe"
            )
        rows = [row for row in range(len(block)) if row not in untranslated]
        sources, targets = (block.texts(at, rows) for at in sides)
        if not table.format.lines:
            sources, targets = list(map(one_cell, sources)), list(map(one_cell, targets))
        yield sources, targets


# --- checks before training ----------------------------------------------------------------------------------


def find_corpora(recipe: Recipe) -> Recipe:
    """Return the recipe with its patterns resolved.

    Raises BitextmineError if files are missing, before hours of work on the others.
    """
    recipe = resolve_corpora(recipe)
    files = [file for corpus in recipe.data.corpora for file in map(recipe.corpus, corpus.files)]
    missing = [file for file in files if not file.path.exists()]
    if missing:
        more = f"; {len(missing)} of {len(files)} are missing" if len(missing) > 1 else ""
        raise BitextmineError(
            f"{missing[0]}: no such file{more}; the recipe's corpora are looked for in {recipe.path('.')}: --data "
            "FOLDER names another folder, train --pairs FILE other corpora"
        )
    return recipe


def check_corpora(recipe: Recipe) -> None:
    """Raise BitextmineError if the first lines of a corpus cannot be read."""
    for corpus in recipe.data.corpora:
        next(pair_chunks(recipe, corpus, FIRST), None)
