"""Scoring a stream of sentence pairs: the same rows come out, with columns added."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.clean.columns import COLUMNS, Pairs, Tools, default_columns
from bitextmine.console import counted, progress
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.streams import display_name, keep_apart
from bitextmine.files.tables import Added, Block, Table, open_table, write_rows
from bitextmine.mine.margin import MARGINS
from bitextmine.signature import signature

__all__ = ["WINDOW", "Scored", "pairs_of", "score", "wanted_columns"]

# Rows scored together, and the pairs that a margin's neighbours are looked for among. A fixed number, whatever arrives
# how fast, so that a score does not depend on the pipe.
WINDOW = 4096


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
    names = tuple(name.strip() for name in (columns.split(",") if isinstance(columns, str) else columns))
    for name in names:
        if name not in COLUMNS:
            raise UsageError(f"--columns: no column is called '{name}'; there are {', '.join(COLUMNS)}")
    if len(set(names)) < len(names):
        raise UsageError(f"--columns: a column is named twice in {','.join(names)}")
    return names


def score(
    path: str | os.PathLike[str] = "-",
    output: str | os.PathLike[str] = "-",
    *,
    scol: str = "1",
    tcol: str = "2",
    header: bool = False,
    columns: str | Sequence[str] | None = None,
    score_only: bool = False,
    strict: bool = False,
    src: str = "",
    tgt: str = "",
    model: str = "default",
    k: int = 4,
    margin: str = "ratio",
    window: int = WINDOW,
    src_index: str | os.PathLike[str] | None = None,
    tgt_index: str | os.PathLike[str] | None = None,
    device: str = "auto",
    batch_tokens: int | None = None,
) -> Scored:
    """Add columns to a tab-separated stream or a Parquet file of pairs: one line out per line in, in order.

    scol, tcol: where source and target are, a number from 1 or a name in the header (`header`: the first line is
    one). columns: names in `columns.COLUMNS`, comma-separated; None: `default_columns`. score_only: the added cells
    alone. src, tgt: the languages that the sides should be in. A row with another number of columns than the first,
    or that is not UTF-8, keeps its bytes and gets empty scores; with `strict` it is an error.

    The margin's neighbours are the `k` nearest among the last `window` pairs, or, with src_index and tgt_index, in
    two indexed corpora (`neighbourhood.IndexNeighbourhood`).

    Holds `window` pairs at a time. Raises BitextmineError for choices that do not go together and for what cannot be
    read or written.
    """
    names = wanted_columns(columns, bool(src and tgt))
    if margin not in MARGINS:
        raise UsageError(f"margin: unknown kind {margin!r}; choose one of {', '.join(MARGINS)}")
    if k < 1 or window < 1:
        raise UsageError(f"k and the window must be at least 1, found {k} and {window}")
    if bool(src) != bool(tgt):
        raise UsageError(
            f"{'--src' if src else '--tgt'} alone says nothing: give --src and --tgt, or neither"
        )
    keep_apart(path, {"-o": output})
    if (src_index is None) != (tgt_index is None):
        raise UsageError("a margin needs both indexes: give --src-index and --tgt-index")
    tools = Tools(margin=margin, src_lang=src, tgt_lang=tgt, device=device, batch_tokens=batch_tokens)
    needed = [COLUMNS[name] for name in names]
    notes = []
    if src and not any(column.languages or column.better_with_languages for column in needed):
        notes.append("--src and --tgt change nothing: no column that was asked for looks at the languages")
    if src_index is not None and not any(column.neighbours for column in needed):
        notes.append(
            "--src-index and --tgt-index change nothing: no column that was asked for has neighbours"
        )
        src_index = tgt_index = None
    tools.prepare(needed)
    table = open_table(path, scol, tcol, header=header)
    if any(column.encoder for column in needed):
        from bitextmine.encoder import load_encoder

        tools.encoder = load_encoder(model, device)
    made: dict[str, Any] = {
        "columns": ",".join(names),
        "model": tools.encoder.hash if tools.encoder else None,
    }
    if any(column.neighbours for column in needed):
        made |= {"k": k, "margin": margin, "neighbours": f"window{window}"}
        if src_index is not None and tgt_index is not None and tools.encoder is not None:
            from bitextmine.clean.columns.neighbourhood import IndexNeighbourhood

            tools.neighbourhood = IndexNeighbourhood(src_index, tgt_index, tools.encoder, k)
            made["neighbours"] = "index"
        else:
            from bitextmine.clean.columns.neighbourhood import WindowNeighbourhood

            tools.neighbourhood = WindowNeighbourhood(k, window)
    if src and tgt:
        made |= {"src": tools.src_lang, "tgt": tools.tgt_lang}
    rows = bad = 0
    first_bad = ""
    with (
        write_rows(output, table, names, only_added=score_only) as out,
        progress(None, "score", "rows") as bar,
    ):
        for block in table.rows.blocks(window):
            wrong = block.bad()
            if wrong:
                place = min(wrong)
                line = block.start + place + (1 if header else 0)
                first_bad = first_bad or f"{display_name(path)}: line {line}: {wrong[place]}"
                if strict:
                    raise BitextmineError(
                        f"{first_bad}; without --strict it would keep its row, with empty scores"
                    )
            out.write(block, None, _added(block, table, names, tools))
            rows += len(block)
            bad += len(wrong)
            bar.update(len(block))
    return Scored(rows, bad, first_bad, names, signature(**made), tuple(notes))


def pairs_of(block: Block, table: Table, rows: NDArray[np.int64], tools: Tools) -> Pairs:
    """The texts of some rows of a block, none of them bad."""
    return Pairs(block.texts(table.src, rows), block.texts(table.tgt, rows), tools)


def _added(block: Block, table: Table, names: Sequence[str], tools: Tools) -> list[Added]:
    wrong = block.bad()
    good = np.array([row for row in range(len(block)) if row not in wrong], dtype=np.int64)
    pairs = pairs_of(block, table, good, tools)
    added = []
    for name in names:
        values = pairs.column(name)
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
