"""Filtering a stream of sentence pairs by rules: what is kept, what is not and why, and how close it was."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, progress
from bitextmine.errors import BitextmineError
from bitextmine.executor import LOCAL, Executor
from bitextmine.files.cells import Added
from bitextmine.files.layout import Columns, is_position
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
from bitextmine.scoring.columns.catalogue import COLUMNS
from bitextmine.scoring.columns.texts import Tools
from bitextmine.scoring.explain import Example, Nearest
from bitextmine.scoring.judge import Judge, Judged, PlacedRule, SentCells
from bitextmine.scoring.rules import Rule, RuleSet
from bitextmine.scoring.score import FLOATS, INTEGERS, both_languages, wanted_columns
from bitextmine.scoring.seen import DEFAULT_MEMORY, Seen
from bitextmine.signature import signature

__all__ = ["FilterOptions", "Filtered", "filter_rows"]

_MALFORMED = "malformed"


@dataclass(frozen=True)
class Filtered:
    """What `filter_rows` did.

    rows, kept: counts. rejected: per reason how many rows, in the order in which reasons are tried. notes: what a
    person should know. examples: per rule pairs just outside and just inside, if asked for.
    """

    rows: int
    kept: int
    rejected: dict[str, int]
    signature: str
    notes: tuple[str, ...] = ()
    examples: dict[str, tuple[list[Example], list[Example]]] = field(default_factory=dict)

    def to_table(self) -> str:
        """The counts per rule, the examples, the notes and the signature, for a person."""

        def share(count: int) -> str:
            return f"{100 * count / self.rows:.2f}%" if self.rows else "-"

        rows = [["kept", f"{self.kept:,}", share(self.kept)]]
        rows += [[f"rejected: {name}", f"{count:,}", share(count)] for name, count in self.rejected.items()]
        rows.append(["all", f"{self.rows:,}", share(self.rows)])
        parts = [aligned(["", "rows", "share"], rows)]
        for name, (outside, inside) in self.examples.items():
            parts.append(name)
            parts += [f"  {'outside':8}{example}" for example in outside]
            parts += [f"  {'inside':8}{example}" for example in inside]
        return "\n".join([*parts, *self.notes, self.signature])


@dataclass(frozen=True)
class FilterOptions:
    """How rows are read and looked at.

    where: which columns hold source and target, and whether the first line names them. columns: what the last columns
    of a row are called, as they were given to `score`, where there is no header. src, tgt: the languages that the sides
    should be in, for a rule on `lang` where the rows have no such column. explain: how many examples to keep on each
    side of every rule. memory: bytes that the search for duplicates may take (`seen.Seen`). executor: computes
    columns and the keys of duplicates.
    """

    where: Columns = field(default_factory=Columns)
    columns: str | Sequence[str] | None = None
    src: str = ""
    tgt: str = ""
    explain: int = 0
    memory: int = DEFAULT_MEMORY
    executor: Executor = LOCAL


def filter_rows(
    path: str | os.PathLike[str] = "-",
    output: str | os.PathLike[str] = "-",
    rules: RuleSet | None = None,
    options: FilterOptions | None = None,
    *,
    rejected: str | os.PathLike[str] | None = None,
) -> Filtered:
    """Copy the rows that meet every rule, in order; with `rejected`, the others go there, each with the first rule that
    it fails in a cell of its own, `reason`. A header is copied to both.

    A rule on a column that is not there is computed from the texts if it needs no encoder. Rows of another width than
    most and invalid UTF-8 are rejected as malformed, a row without a value for a rule as "no COLUMN". Duplicates are
    looked for last, among rows that meet all the rules.

    Raises UsageError for choices that do not go together, and BitextmineError for a rule on a column that cannot be
    had, for what cannot be read or written, for texts that are needed and cannot be told, and where nearly all rows
    are malformed.
    """
    keep_apart(path, {"-o": output, "--rejected": rejected})
    options = options or FilterOptions()
    both_languages(options.src, options.tgt)
    outputs = {"-o": output, **({} if rejected is None else {"--rejected": rejected})}
    for option, place in outputs.items():
        check_pairs_output(place, option)
    last = () if options.columns is None else wanted_columns(options.columns, False)
    table = open_table(path, options.where, last)
    langs = table.langs(options.src, options.tgt)
    for place in outputs.values():
        check_languages(place, langs)
    sieve = _Sieve(rules or RuleSet(), table, options, last)
    malformed = Malformed(table)
    with contextlib.ExitStack() as stack:
        header = False if options.where.header is False else None
        write = functools.partial(
            write_rows, table=table, header=header, floats=FLOATS, integers=INTEGERS, langs=langs
        )
        out = stack.enter_context(write(output))
        away = None if rejected is None else stack.enter_context(write(rejected, added=("reason",)))
        judged = stack.enter_context(_judging(options.executor, sieve))
        bar = stack.enter_context(progress(None, "filter", "rows"))
        for block, found in judged(table.rows.blocks()):
            malformed.add(block)
            reasons = sieve.settle(block, found)
            out.write(block, np.flatnonzero(reasons < 0) if (reasons >= 0).any() else None, ())
            if away is not None and (reasons >= 0).any():
                names = [sieve.reasons[reason] if reason >= 0 else "" for reason in reasons]
                away.write(block, np.flatnonzero(reasons >= 0), [Added("reason", names)])
            bar.update(len(block))
        malformed.finish()
    return sieve.result()


@contextlib.contextmanager
def _judging(
    executor: Executor, sieve: _Sieve
) -> Iterator[Callable[[Iterator[Block]], Iterator[tuple[Block, Judged]]]]:
    """What judges the rows of each of the blocks, in their order."""
    if not executor.distributed:
        yield lambda blocks: ((block, sieve.judge(block)) for block in blocks)
        return
    from bitextmine.scoring.on_cluster import ClusterJudge

    with ClusterJudge(
        executor, sieve.rules, sieve.duplicates, sieve.tools, keeps=bool(sieve.explains)
    ) as workers:
        yield lambda blocks: workers.of((block, sieve.sent(block)) for block in blocks)


class _BlockCells:
    """The rows of a block as a judge sees them."""

    def __init__(self, block: Block, table: Table) -> None:
        self._block, self._layout = block, table.layout
        self.numbers, self.texts = block.numbers, block.texts

    def pairs(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        return self._block.texts(self._layout.src, rows), self._block.texts(self._layout.tgt, rows)


class _Sieve:
    """The rules on the columns of one input, and what became of its rows."""

    def __init__(self, rules: RuleSet, table: Table, options: FilterOptions, last: Sequence[str]) -> None:
        self._table = table
        self.tools = Tools(src_lang=options.src, tgt_lang=options.tgt)
        # Columns by name, counted from 0.
        self._known = {name: at for at, name in enumerate(table.names)}
        self._known |= {name: table.layout.width - len(last) + at for at, name in enumerate(last)}
        self._notes: list[str] = []
        self._rules: list[Rule] = []
        for rule in rules.rules:
            if (
                rule.column in rules.if_present
                and rule.column not in self._known
                and not self._can_tell(rule)
            ):
                self._notes.append(f"rule {rule} not applied: the rows have no column {rule.column}")
                continue
            self._check(rule)
            self._rules.append(rule)
        self._check_width(last)
        if self.tools.src_lang and not any(self._can_tell(rule) for rule in self._rules):
            self._notes.append("--src and --tgt change nothing: no rule needs them")
        computed = any(self._place(rule.column) is None for rule in self._rules)
        if not table.rows.empty and (computed or options.explain or rules.duplicates != "none"):
            _ = table.layout.src, table.layout.tgt  # if they are not known, now is the time to say so
        self.duplicates = rules.duplicates
        self._seen = None if rules.duplicates == "none" else Seen(options.memory)
        self.explains = [Nearest(options.explain, rule) for rule in self._rules] if options.explain else []
        self.rules = tuple(PlacedRule(rule, self._place(rule.column)) for rule in self._rules)
        self._judge = Judge(self.rules, self.duplicates, self.tools, keeps=bool(self.explains))
        self.reasons = [_MALFORMED]
        for rule in self._rules:
            self.reasons += [f"no {rule.column}", str(rule)]
        self.reasons.append(f"duplicate ({rules.duplicates})")
        self._counts = np.zeros(len(self.reasons), dtype=np.int64)
        self._rows = 0

    def _can_tell(self, rule: Rule) -> bool:
        """Whether a rule is on a column that is not there and can be computed because the languages are stated."""
        column = rule.column
        return bool(
            self.tools.src_lang
            and column not in self._known
            and column in COLUMNS
            and COLUMNS[column].languages
        )

    def _check(self, rule: Rule) -> None:
        column = rule.column
        if column in self._known or self._is_position(column):
            return
        if column not in COLUMNS:
            names = ", ".join([*self._known, *(name for name in COLUMNS if name not in self._known)])
            raise BitextmineError(f"rule {rule}: no column is called '{column}'; there are {names}")
        if COLUMNS[column].encoder:
            if not self._table.names:
                return  # no rows, so none without the column either
            raise BitextmineError(
                f"{display_name(self._table.path)}: rule {rule}: the rows have no column {column} "
                f"(they have {', '.join(self._known)}); add it with 'bitextmine score', or, if it is "
                "there and no header names it, say with --columns what the last columns are"
            )
        self.tools.prepare([COLUMNS[column]])

    def judge(self, block: Block) -> Judged:
        """The rows of a block against the rules, here."""
        return self._judge.judge(_BlockCells(block, self._table), _good(block), len(block))

    def sent(self, block: Block) -> SentCells:
        """What a worker needs to judge the good rows of a block."""
        good = _good(block)
        columns: dict[tuple[int, bool], list[str] | NDArray[np.float64]] = {}
        for rule in self.rules:
            if rule.place is not None and (rule.place, rule.is_text) not in columns:
                read = block.texts if rule.is_text else block.numbers
                columns[rule.place, rule.is_text] = read(rule.place, good)
        texts: tuple[list[str], list[str]] = [], []
        if self.duplicates != "none" or any(rule.place is None for rule in self.rules):
            texts = _BlockCells(block, self._table).pairs(good)
        return SentCells(columns, *texts)

    def settle(self, block: Block, judged: Judged) -> NDArray[np.int64]:
        """For each row of the next block the number of its reason, -1 for a row to keep. judged: all its rows, or the
        good ones."""
        good = _good(block)
        reason = np.full(len(block), -1, dtype=np.int64)
        reason[list(block.bad())] = 0
        values = judged.values
        if len(judged.reason) == len(block):
            reason[good] = judged.reason[good]
        else:
            reason[good] = judged.reason
            values = [_spread(value, good, len(block)) for value in values]
        if self._seen is not None and len(judged.hashes):
            alive = np.flatnonzero(reason < 0)
            reason[alive[~self._seen.add(judged.hashes)]] = len(self.reasons) - 1
        self._rows += len(block)
        self._counts += np.bincount(reason[reason >= 0], minlength=len(self.reasons))
        for number, (nearest, value) in enumerate(zip(self.explains, values, strict=True)):
            nearest.add(block, self._table, value, reason == 2 * number + 2, reason < 0)
        return reason

    def _check_width(self, last: Sequence[str]) -> None:
        if self._table.rows.empty:
            return
        positions = [int(rule.column) for rule in self._rules if self._is_position(rule.column)]
        wanted = max([len(last), *positions])
        if wanted > self._table.layout.width:
            raise BitextmineError(
                f"{display_name(self._table.path)}: the rows have {self._table.layout.width} columns, and the rules or "
                f"--columns speak of {wanted}"
            )

    def _place(self, column: str) -> int | None:
        """The place of a column in the rows, from 0; None for one that is computed."""
        return int(column) - 1 if self._is_position(column) else self._known.get(column)

    def _is_position(self, column: str) -> bool:
        """Whether a rule's column is a number that counts from 1, and not a name in the header."""
        return column not in self._known and is_position(column) and 0 < len(column.lstrip("0")) < 10

    def result(self) -> Filtered:
        """What became of the rows that were judged."""
        notes = list(self._notes)
        if self._seen is not None and self._seen.forgotten:
            notes.append(
                f"the table of pairs seen is full ({self._seen.bytes:,} bytes): {self._seen.forgotten:,} pairs were "
                "looked up but not remembered, so duplicates of those may be among the kept; allow it more memory"
            )
        made: dict[str, Any] = {"rules": str(RuleSet(tuple(self._rules))), "duplicates": self.duplicates}
        counts = {name: int(n) for name, n in zip(self.reasons, self._counts, strict=True)}
        return Filtered(
            rows=self._rows,
            kept=self._rows - int(self._counts.sum()),
            rejected={
                name: n
                for name, n in counts.items()
                if n or not (name == _MALFORMED or name.startswith(("no ", "duplicate (none")))
            },
            signature=signature(**made),
            notes=tuple(notes),
            examples={str(nearest.rule): nearest.examples() for nearest in self.explains},
        )


def _good(block: Block) -> NDArray[np.int64]:
    """The rows of a block that can be read."""
    wrong = block.bad()
    if not wrong:
        return np.arange(len(block))
    return np.array([row for row in range(len(block)) if row not in wrong], dtype=np.int64)


def _spread(values: NDArray[np.float64], rows: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Values of some of the rows, NaN for the others."""
    out = np.full(count, np.nan)
    out[rows] = values
    return out
