"""Scoring a stream of sentence pairs: the same rows come out, with columns added."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted, progress
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.executor import LOCAL, Executor
from bitextmine.files.cells import Added
from bitextmine.files.layout import Columns
from bitextmine.files.streams import display_name, keep_apart
from bitextmine.files.tables import (
    Block,
    Malformed,
    Table,
    check_languages,
    check_pairs_output,
    open_table,
    write_rows,
)
from bitextmine.mining.margin import MARGINS
from bitextmine.scoring.columns.catalogue import COLUMNS, pair_texts
from bitextmine.scoring.columns.names import default_columns
from bitextmine.scoring.columns.texts import PairTexts, Tools
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder
    from bitextmine.scoring.columns.around import Neighbourhood

__all__ = [
    "FLOATS",
    "INTEGERS",
    "WINDOW",
    "ScoreOptions",
    "Scored",
    "both_languages",
    "pairs_of",
    "score",
    "wanted_columns",
]

# Rows scored together, and the pairs that a margin's neighbours are looked for among. A fixed number, whatever arrives
# how fast, so that a score does not depend on the pipe.
WINDOW = 4096

# Columns by these names are numbers in Parquet.
FLOATS = frozenset({"score", *(column.name for column in COLUMNS.values() if not column.is_text)})
INTEGERS = frozenset({"src_line", "tgt_line"})


@dataclass(frozen=True)
class Scored:
    """What `score` did: rows, bad ones among them (their scores are empty), the first of those and what was wrong with
    it, the columns added, how they were made, what a person should know."""

    rows: int
    bad: int
    first_bad: str
    columns: tuple[str, ...]
    signature: str
    notes: tuple[str, ...] = ()

    def to_table(self) -> str:
        """A few lines for a person."""
        lines = [f"{counted(self.rows, 'row')} scored: {', '.join(self.columns)}"]
        if self.bad:
            have = "is no pair and has" if self.bad == 1 else "are no pairs and have"
            lines.append(f"{self.bad:,} of them {have} empty scores; the first: {self.first_bad}")
        return "\n".join([*lines, *self.notes, self.signature])


def wanted_columns(columns: str | Sequence[str] | None, languages: bool) -> tuple[str, ...]:
    """The columns of a comma-separated list, or the usual ones; BitextmineError for an unknown or repeated name."""
    if columns is None:
        return default_columns(languages)
    asked: list[Any] = [columns]
    if isinstance(columns, Iterable):
        asked = columns.split(",") if isinstance(columns, str) else list(columns)
    if not all(isinstance(name, str) for name in asked):
        raise UsageError(f"columns (--columns): expected names of columns, found {columns!r}")
    names = tuple(name.strip() for name in asked)
    for name in names:
        if name not in COLUMNS:
            raise UsageError(
                f"columns (--columns): no column is called '{name}'; there are {', '.join(COLUMNS)}"
            )
    if len(set(names)) < len(names):
        raise UsageError(f"columns (--columns): a column is named twice in {','.join(names)}")
    return names


@dataclass(frozen=True)
class ScoreOptions:
    """How pairs are scored.

    where: which columns hold source and target, and whether the first line names them; with `header=False` none is
    written either. columns: names in `columns.COLUMNS`, comma-separated; None: `default_columns`. score_only: the added
    cells alone, without a header unless the input has one. strict: a row that is no pair is an error. src, tgt: the
    languages that the sides should be in. k, margin, window: of the margin, whose neighbours are the `k` nearest among
    the last `window` pairs, or, with src_index and tgt_index, in two indexed corpora
    (`neighbourhood.IndexNeighbourhood`). executor: computes the columns.
    """

    where: Columns = field(default_factory=Columns)
    columns: str | Sequence[str] | None = None
    score_only: bool = False
    strict: bool = False
    src: str = ""
    tgt: str = ""
    model: str = "default"
    k: int = 4
    margin: str = "ratio"
    window: int = WINDOW
    src_index: str | os.PathLike[str] | None = None
    tgt_index: str | os.PathLike[str] | None = None
    device: str = "auto"
    batch_tokens: int | None = None
    executor: Executor = LOCAL

    def check(self) -> None:
        """Raises UsageError for choices that do not go together."""
        if self.margin not in MARGINS:
            raise UsageError(f"margin: unknown kind {self.margin!r}; choose one of {', '.join(MARGINS)}")
        if self.k < 1 or self.window < 1:
            raise UsageError(f"k and the window must be at least 1, found {self.k} and {self.window}")
        both_languages(self.src, self.tgt)
        self.executor.device(self.device)
        if (self.src_index is None) != (self.tgt_index is None):
            raise UsageError("a margin needs both indexes: give --src-index and --tgt-index")


def score(
    path: str | os.PathLike[str] = "-",
    output: str | os.PathLike[str] = "-",
    options: ScoreOptions | None = None,
) -> Scored:
    """Add columns to a stream of pairs, tab-separated, or to a file in another form that its suffix tells: one row out
    per row in, in order; in text behind a header that names the columns. The suffix of the output tells its form.

    Columns of the input that have no name get one: src and tgt; score, src_line and tgt_line where the rows look like
    those of `mine`; else column_N. A column that the header has already is replaced by the new one, at the end. A row
    of another width than most, or that is not UTF-8, keeps its bytes and gets empty scores.

    Holds a window of pairs at a time. Raises UsageError for choices that do not go together, and BitextmineError for
    what cannot be read or written, for columns that are not there or cannot be told, and where nearly all rows are
    malformed.
    """
    options = options or ScoreOptions()
    names = wanted_columns(options.columns, bool(options.src and options.tgt))
    options.check()
    keep_apart(path, {"-o": output})
    check_pairs_output(output, only_added=options.score_only)
    tools = Tools(
        margin=options.margin,
        src_lang=options.src,
        tgt_lang=options.tgt,
        device=options.device,
        batch_tokens=options.batch_tokens,
    )
    needed = [COLUMNS[name] for name in names]
    notes = []
    if options.src and not any(column.languages or column.better_with_languages for column in needed):
        notes.append("--src and --tgt change nothing: no column that was asked for looks at the languages")
    indexes = (options.src_index, options.tgt_index)
    if options.src_index is not None and not any(column.neighbours for column in needed):
        notes.append(
            "--src-index and --tgt-index change nothing: no column that was asked for has neighbours"
        )
        indexes = (None, None)
    tools.prepare(needed)
    table = open_table(path, options.where)
    langs = table.langs(options.src, options.tgt)
    check_languages(output, langs)
    notes += _replaced(table, () if options.score_only else names)
    if any(column.encoder for column in needed):
        from bitextmine.encoder import load_encoder

        tools.encoder = load_encoder(options.model, "cpu" if options.executor.distributed else options.device)
    made: dict[str, Any] = {
        "columns": ",".join(names),
        "model": tools.encoder.hash if tools.encoder else None,
    }
    if any(column.neighbours for column in needed):
        made |= {"k": options.k, "margin": options.margin, "neighbours": f"window{options.window}"}
        if indexes[0] is not None:
            made["neighbours"] = "index"
        if not options.executor.distributed and tools.encoder is not None:
            tools.neighbourhood = _neighbourhood(options, indexes, tools.encoder)
    if options.src and options.tgt:
        made |= {"src": tools.src_lang, "tgt": tools.tgt_lang}
    malformed = Malformed(table)
    looked = False
    with (
        _computing(options, names, tools, indexes) as computed,
        write_rows(
            output,
            table,
            names,
            header=_writes_header(table, options),
            only_added=options.score_only,
            floats=FLOATS,
            integers=INTEGERS,
            langs=langs,
        ) as out,
        progress(None, "score", "rows") as bar,
    ):
        blocks = ((block, _good(block, table)) for block in table.rows.blocks(options.window))
        for block, values in computed(blocks):
            if tools.encoder is not None and not looked:
                _warn_unfamiliar(tools.encoder, block, table, tools)
                looked = True
            malformed.add(block)
            if options.strict and malformed.first:
                raise BitextmineError(
                    f"{malformed.first}; without --strict it would keep its row, with empty scores"
                )
            out.write(block, None, _added(block, names, values))
            bar.update(len(block))
        malformed.finish()
    return Scored(malformed.rows, malformed.count, malformed.first, names, signature(**made), tuple(notes))


def _replaced(table: Table, names: Sequence[str]) -> list[str]:
    """What to say of columns that are there already. Raises BitextmineError where one of them is a text to score, and
    where the texts cannot be told."""
    if not table.names:
        return []
    there = [name for name in names if name in table.layout.names]
    for place in (table.layout.src, table.layout.tgt):
        if table.names[place] in there:
            raise BitextmineError(
                f"{display_name(table.path)}: column {place + 1} is called '{table.names[place]}' and is to be scored, "
                "so no score can have that name; name it another way in the header, or leave it out of --columns"
            )
    return [f"replaced, as the header has them already: {', '.join(there)}"] if there else []


def _writes_header(table: Table, options: ScoreOptions) -> bool:
    """With the scores alone there is a line for each line: one for the header, if a line of the input is one."""
    if options.where.header is False:
        return False
    return not options.score_only or table.rows.header_line


def both_languages(src: str, tgt: str) -> None:
    """Raises UsageError where only one language is stated."""
    if bool(src) != bool(tgt):
        raise UsageError(
            f"{'--src' if src else '--tgt'} alone says nothing: give --src and --tgt, or neither"
        )


def pairs_of(block: Block, table: Table, rows: NDArray[np.int64], tools: Tools) -> PairTexts:
    """The texts of some rows of a block, none of them bad."""
    layout = table.layout
    return pair_texts(block.texts(layout.src, rows), block.texts(layout.tgt, rows), tools)


def _warn_unfamiliar(encoder: Encoder, block: Block, table: Table, tools: Tools) -> None:
    from bitextmine.encoder.familiar import sampled, warn_unfamiliar

    wrong = block.bad()
    good = np.array([row for row in range(len(block)) if row not in wrong], dtype=np.int64)
    pairs = pairs_of(block, table, good, tools)
    for side, lang, texts in (("source", tools.src_lang, pairs.src), ("target", tools.tgt_lang, pairs.tgt)):
        warn_unfamiliar(encoder, f"{display_name(table.path)}: {side}", lang, sampled(texts, len(texts)))


Texts = tuple[list[str], list[str]]
Computed = Callable[[Iterator[tuple[Block, Texts]]], Iterator[tuple[Block, list[Any]]]]


def _neighbourhood(options: ScoreOptions, indexes: tuple[Any, Any], encoder: Encoder) -> Neighbourhood:
    from bitextmine.scoring.columns.neighbourhood import IndexNeighbourhood, WindowNeighbourhood

    if indexes[0] is not None and indexes[1] is not None:
        return IndexNeighbourhood(indexes[0], indexes[1], encoder, options.k)
    return WindowNeighbourhood(options.k, options.window)


@contextlib.contextmanager
def _computing(
    options: ScoreOptions, names: Sequence[str], tools: Tools, indexes: tuple[Any, Any]
) -> Iterator[Computed]:
    """What makes the values of the columns for each of the blocks, in their order, of the texts of their good rows."""
    if not options.executor.distributed:

        def here(blocks: Iterator[tuple[Block, Texts]]) -> Iterator[tuple[Block, list[Any]]]:
            for block, texts in blocks:
                pairs = pair_texts(*texts, tools)
                yield block, [pairs.column(name) for name in names]

        yield here
        return
    from bitextmine.scoring.on_cluster import ClusterColumns

    with ClusterColumns(
        options.executor,
        names,
        tools,
        model=None if tools.encoder is None else options.model,
        k=options.k,
        window=options.window,
        indexes=None if indexes[0] is None else indexes,
    ) as cluster:
        yield cluster.of


def _good(block: Block, table: Table) -> Texts:
    """Source and target texts of the rows of a block that are pairs."""
    wrong = block.bad()
    good = np.array([row for row in range(len(block)) if row not in wrong], dtype=np.int64)
    layout = table.layout
    return block.texts(layout.src, good), block.texts(layout.tgt, good)


def _added(block: Block, names: Sequence[str], columns: Sequence[Any]) -> list[Added]:
    wrong = block.bad()
    good = np.array([row for row in range(len(block)) if row not in wrong], dtype=np.int64)
    added = []
    for name, values in zip(names, columns, strict=True):
        if not wrong:
            added.append(Added(name, values))
        elif isinstance(values, np.ndarray):
            spread = np.full(len(block), np.nan)
            spread[good] = values
            added.append(Added(name, spread))
        else:
            cells = [""] * len(block)
            for row, value in zip(good.tolist(), values, strict=True):
                cells[row] = value
            added.append(Added(name, cells))
    return added
