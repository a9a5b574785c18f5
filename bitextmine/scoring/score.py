"""Score a stream of sentence pairs, here or on workers: the same rows come out, with columns added."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError
from bitextmine.files.formats.names import MOSES, OUTPUT_SUFFIXES
from bitextmine.files.formats.table import Malformed, Rows, check_pairs_output, open_pairs, open_table
from bitextmine.files.output import Destination, keep_apart
from bitextmine.files.source import Source
from bitextmine.languages.clean import clean, readable
from bitextmine.languages.identify import is_installed
from bitextmine.run import Run
from bitextmine.scoring.columns.catalogue import COLUMNS, Request, Tools, identifier
from bitextmine.scoring.compute import PairScorer, good_rows
from bitextmine.scoring.options import ScoreOptions, default_columns
from bitextmine.shipped import choose_model

_SAMPLE = 200  # pairs examined for swapped columns
_LOW = 0.5  # of the column lang: the pair is not in the stated languages
_ENOUGH = 10  # texts that tell a language
_RARE = 0.25  # as many texts in the stated language as in another one, where it is a mistake
# Columns with these names are numbers in Parquet.
FLOATS = frozenset({"score", *(column.name for column in COLUMNS.values() if not column.is_text)})
INTEGERS = frozenset({"src_line", "tgt_line"})


@dataclass(frozen=True)
class ScoreSummary:
    """Counts of rows and of malformed ones, whose scores are empty; the added columns; notes for the reader."""

    rows: int
    bad: int
    first_bad: str
    columns: tuple[str, ...]
    signature: str
    notes: tuple[str, ...] = ()

    def to_table(self) -> str:
        """Return the counts as text."""
        lines = [f"{counted(self.rows, 'row')} scored: {', '.join(self.columns)}"]
        if self.bad:
            subject = f"{counted(self.bad, 'row is', 'rows are')} malformed, with empty scores"
            lines.append(f"{subject}; the first: {self.first_bad}")
        return "\n".join([*lines, *self.notes, self.signature])


def request_of(options: ScoreOptions, batch_tokens: int | None) -> tuple[Request, list[str]]:
    """Return the columns to compute, and notes on options without effect; raise UsageError for bad choices."""
    second, langs, k = options.second is not None, (options.src, options.tgt), min(options.k, options.window)
    names = default_columns(all(langs), second) if options.columns is None else options.columns
    notes = []
    if k < options.k:
        notes.append(
            f"-k {options.k}: at most {k:,} pairs are searched for neighbours (--window), so k is {k:,}"
        )
    request = Request(names, langs, options.margin, k, options.window, batch_tokens, second)
    if second and not (request.uses("second") or "quality" in names):
        notes.append("--second changes nothing: none of the columns has a second encoder")
    return request.checked(), notes


def score(
    path: str | os.PathLike[str] = "-",
    output: str | os.PathLike[str] = "-",
    options: ScoreOptions | None = None,
    run: Run | None = None,
) -> ScoreSummary:
    """Add columns to a stream of pairs: one row out per row in, in order, a window of pairs at a time.

    The suffixes tell the formats. Columns without a name get one: src and tgt; score, src_line and tgt_line if the rows
    look like those of `mine`; else column_N. A column that the header has already is replaced, at the end. A malformed
    row keeps its bytes and gets empty scores.

    Raises:
        UsageError: choices that do not go together.
        BitextmineError: unreadable or unwritable files, unknown columns, or nearly all rows malformed.
    """
    options, run = options or ScoreOptions(), run or Run()
    source, destination = Source.of(path, run), Destination.of(output)
    keep_apart(source, {"-o": destination})
    # Before the first row is read, unless only that can tell the languages.
    tells = "lang" in (options.columns or ()) and not options.src
    early = None if tells else request_of(options, run.batch_tokens)
    format = check_pairs_output(destination, only_added=options.score_only)
    table = open_table(source, replace(options.where, langs=(options.src, options.tgt)))
    if not options.src and (stated := _stated_languages(table)):
        early = request_of(replace(options, src=stated[0], tgt=stated[1]), run.batch_tokens)
    request, notes = early or request_of(options, run.batch_tokens)
    if options.src and not request.uses("languages", "better_with_languages"):
        notes.append("--src and --tgt change nothing: none of the columns depends on the languages")
    names, langs = request.names, table.langs(options.src, options.tgt)
    format.check_languages(langs)
    notes += _replaced(table, () if options.score_only else names)
    if format is MOSES:
        notes.append(
            f"{output} holds texts alone: the columns are lost; name one file for them ({OUTPUT_SUFFIXES})"
        )
    scorer = open_scorer(request, options, langs, run.device_here)
    malformed, made = Malformed(table), scorer.signature
    header = options.where.header is not False and (not options.score_only or table.header_line)
    outline = table.outline(
        names, header=header, only_added=options.score_only, floats=FLOATS, integers=INTEGERS, langs=langs
    )
    with open_pairs(destination, outline) as out, run.progress(None, "score", "rows") as bar:
        for block, added in scorer.scored(table.blocks(options.window), table.layout, run):
            good, sides = good_rows(block), (table.layout.src, table.layout.tgt)
            if block.start == 1:
                src, tgt = (readable(block.texts(side, good)) for side in sides)
                lang = next(
                    (np.asarray(column.values)[good] for column in added if column.name == "lang"), None
                )
                notes += _doubts(str(source), scorer.tools, src, tgt, lang)
            malformed.add(block)
            if len(block) < options.window:  # the last one: nothing is printed of a file that is no table
                malformed.finish()
            if options.strict and malformed.first:
                raise BitextmineError(f"{malformed.first}; without --strict its scores would stay empty")
            if options.normalize:
                block = block.changed(
                    good.tolist(), {side: list(map(clean, block.texts(side, good))) for side in sides}
                )
            out.write(block, None, added)
            bar.update(len(block))
        malformed.finish()
    notes += malformed.notes()
    return ScoreSummary(malformed.rows, malformed.count, malformed.first, names, made, tuple(notes))


def open_scorer(
    request: Request, options: ScoreOptions, langs: Iterable[str | None], device: str
) -> PairScorer:
    """Return the scorer with its encoders, which are loaded while the language identifier is."""
    if not request.uses("encoder"):
        return PairScorer(Tools(request))
    from bitextmine.encoder import load_encoder

    model = choose_model(options.model, langs)
    with ThreadPoolExecutor(1) as beside:
        if request.langs[0] and request.uses("languages", "better_with_languages"):
            beside.submit(identifier)
        second = None if options.second is None else load_encoder(options.second, device)
        scorer = PairScorer(Tools(request, load_encoder(model, device), second))
        _ = scorer.signature  # reads the networks of the column quality
    return scorer


def _stated_languages(table: Rows) -> tuple[str, str] | None:
    """Return the languages in the file itself, if they can be identified; the default columns then have lang."""
    langs = table.layout.src_lang, table.layout.tgt_lang
    if not all(langs) or not is_installed():
        return None
    codes = [identifier().code(lang) for lang in langs]
    return langs if None not in codes and codes[0] != codes[1] else None


def _replaced(table: Rows, names: Sequence[str]) -> list[str]:
    """Return a note on columns that are there already; raise BitextmineError if a text to score is one of them."""
    if not table.names:
        return []
    there = [name for name in names if name in table.layout.names]
    for column in (table.layout.src, table.layout.tgt):
        if table.names[column] in there:
            raise BitextmineError(
                f"{table.source}: column {column + 1}, a text, is called '{table.names[column]}' like "
                "one of the scores; rename it in the header, or leave that score out of --columns"
            )
    return [f"replaced, as the header has them already: {', '.join(there)}"] if there else []


def _doubts(
    name: str, tools: Tools, src: Sequence[str], tgt: Sequence[str], lang: NDArray[np.float64] | None
) -> list[str]:
    """Return notes if the encoder does not know the first texts, or if they are of other languages than stated."""
    notes = []
    request, encoder = tools.request, tools.encoder
    if encoder is not None:
        from bitextmine.encoder.familiar import sampled, warn_unfamiliar

        unknown = [
            warn_unfamiliar(encoder, f"{name}: {side}", lang, sampled(lines, len(lines)))
            for side, lang, lines in zip(("source", "target"), request.langs, (src, tgt), strict=True)
        ]
        if any(unknown) and "quality" in request.names:
            notes.append(
                "warning: quality rejects most good pairs of languages that the encoder does not know; state these "
                "(--src, --tgt), or filter with --preset cheap, which needs no encoder"
                if tools.knows_languages
                else "warning: without the encoder, quality compares only lengths, numbers, copies and languages, and "
                "is at most 0.5: a wrong translation that looks right passes"
            )
    if lang is not None and len(lang) and np.median(lang[:_SAMPLE]) < _LOW:
        notes += _other_languages(*request.langs, src[:_SAMPLE], tgt[:_SAMPLE])
    return notes


def _other_languages(src_lang: str, tgt_lang: str, src: Sequence[str], tgt: Sequence[str]) -> list[str]:
    """Return a note if the sides look swapped, or one for each side that looks like another language than stated."""
    other = np.minimum(identifier().share(src, tgt_lang), identifier().share(tgt, src_lang))
    share = float((other > _LOW).mean())
    if share > _LOW:
        return [
            f"warning: source and target look swapped: of the first {len(src):,} pairs {100 * share:.0f}% fit "
            f"--src {tgt_lang} --tgt {src_lang}; exchange these, or name the columns with --scol and "
            "--tcol"
        ]
    notes = []
    for option, lang, lines in (("--src", src_lang, src), ("--tgt", tgt_lang, tgt)):
        guesses = Counter(identifier().guess(lines))
        guess, count = guesses.most_common(1)[0]
        if (
            len(lines) >= _ENOUGH
            and count > _LOW * len(lines)
            and guesses[identifier().code(lang) or lang] < _RARE * count
        ):
            notes.append(
                f"warning: {option} is {lang}, but {count:,} of the first {len(lines):,} texts look like '{guess}'"
            )
    return notes
