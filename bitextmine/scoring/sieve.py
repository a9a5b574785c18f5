"""Apply rules to the rows of one input, and count the reasons of rejection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.files.layout import is_position
from bitextmine.files.streams import display_name
from bitextmine.files.tables import Block, Table
from bitextmine.scoring.columns.catalogue import COLUMNS
from bitextmine.scoring.explain import Nearest
from bitextmine.scoring.judge import Judge, Judged, PlacedRule, SentCells
from bitextmine.scoring.request import Request, good_rows, good_texts, spread
from bitextmine.scoring.rules import Rule, RuleSet
from bitextmine.scoring.seen import Seen

_MALFORMED = "malformed"


class _BlockCells:
    """The rows of a block as `Cells`."""

    def __init__(self, block: Block, table: Table) -> None:
        self._block, self._layout = block, table.layout
        self.numbers, self.texts = block.numbers, block.texts

    def pairs(self, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
        return self._block.texts(self._layout.src, rows), self._block.texts(self._layout.tgt, rows)


class Sieve:
    """Rules placed on the columns of an input.

    Attributes:
        judge, request: the rules with their places, and the columns to compute for them; a worker can be sent both.
        rules: the rules that apply.
        reasons: names of the reasons of rejection.
        explains: pairs near each rule's threshold.
        notes: remarks for the reader.

    Raises:
        UsageError: languages that cannot be identified.
        BitextmineError: a rule on an unknown column, or on one that needs an encoder, or unknown texts.
    """

    def __init__(
        self,
        rules: RuleSet,
        table: Table,
        last: Sequence[str],
        langs: tuple[str, str],
        explain: int,
        memory: int,
        names_languages: bool = False,
    ) -> None:
        self._table, self._stated = table, bool(langs[0])
        self._known = {name: at for at, name in enumerate(table.names)}
        self._known |= {name: table.layout.width - len(last) + at for at, name in enumerate(last)}
        self.notes: list[str] = []
        kept = []
        for rule in rules.rules:
            absent = rule.column in rules.if_present and rule.column not in self._known
            if absent and not self._needs_languages(rule):
                self.notes.append(f"rule {rule} not applied: the rows have no column {rule.column}")
            else:
                kept.append(rule)
        self.rules = tuple(kept)
        computed = [rule.column for rule in self.rules if self._is_computed(rule)]
        self.request = Request(tuple(dict.fromkeys(computed)), *langs).checked()
        self._check_width(len(last))
        if self._stated and not names_languages and not any(map(self._needs_languages, self.rules)):
            self.notes.append("--src and --tgt change nothing: no rule needs them")
        if not table.rows.empty and (computed or explain or rules.duplicates != "none"):
            _ = table.layout.src, table.layout.tgt  # raises now if unknown
        self._tools = self.request.tools()
        self._seen = None if rules.duplicates == "none" else Seen(memory)
        self.explains = [Nearest(explain, rule) for rule in self.rules] if explain else []
        placed = tuple(PlacedRule(rule, self._place(rule.column)) for rule in self.rules)
        self.judge = Judge(placed, rules.duplicates, keeps_values=bool(explain))
        self.reasons = [_MALFORMED]
        for rule in self.rules:
            self.reasons += [f"no {rule.column}", str(rule)]
        self.reasons.append(f"duplicate ({rules.duplicates})")
        self._counts = np.zeros(len(self.reasons), dtype=np.int64)
        self.rows = 0

    def _needs_languages(self, rule: Rule) -> bool:
        """Return True if a rule is on a missing column that can be computed because the languages are stated."""
        column = COLUMNS.get(rule.column)
        return bool(self._stated and rule.column not in self._known and column and column.languages)

    def _is_computed(self, rule: Rule) -> bool:
        """Return True if a column must be computed from the texts; raise BitextmineError if it cannot be."""
        column = rule.column
        if column in self._known or self._is_position(column):
            return False
        if column not in COLUMNS:
            names = ", ".join(dict.fromkeys([*self._known, *COLUMNS]))
            raise BitextmineError(f"rule {rule}: no column is called '{column}'; there are {names}")
        if COLUMNS[column].encoder:
            if not self._table.names:
                return True  # no rows, so none without the column either
            raise BitextmineError(
                f"{display_name(self._table.path)}: rule {rule}: the rows have no column {column} (they have "
                f"{', '.join(self._known)}); add it with 'bitextmine score', or name the last columns with --columns"
            )
        return True

    def _check_width(self, last: int) -> None:
        if self._table.rows.empty:
            return
        positions = [int(rule.column) for rule in self.rules if self._is_position(rule.column)]
        wanted = max([last, *positions])
        if wanted > self._table.layout.width:
            raise BitextmineError(
                f"{display_name(self._table.path)}: the rows have {self._table.layout.width} columns, but the rules or "
                f"--columns name {wanted}"
            )

    def _place(self, column: str) -> int | None:
        """Return the place of a column in the rows, from 0; None for a computed one."""
        return int(column) - 1 if self._is_position(column) else self._known.get(column)

    def _is_position(self, column: str) -> bool:
        """Return True for a number that counts from 1, unless the header has that name."""
        return column not in self._known and is_position(column) and 0 < len(column.lstrip("0")) < 10

    def judged(self, block: Block) -> Judged:
        """Judge a block in this process."""
        return self.judge.judge(_BlockCells(block, self._table), good_rows(block), len(block), self._tools)

    def sent(self, block: Block) -> SentCells:
        """Return the cells that a worker needs to judge the good rows of a block."""
        good = good_rows(block)
        columns: dict[tuple[int, bool], list[str] | NDArray[np.float64]] = {}
        for rule in self.judge.rules:
            if rule.place is not None and (rule.place, rule.is_text) not in columns:
                read = block.texts if rule.is_text else block.numbers
                columns[rule.place, rule.is_text] = read(rule.place, good)
        texts: tuple[list[str], list[str]] = [], []
        if self.judge.duplicates != "none" or any(rule.place is None for rule in self.judge.rules):
            texts = good_texts(block, self._table)
        return SentCells(columns, *texts)

    def settle(self, block: Block, judged: Judged) -> NDArray[np.int64]:
        """Return the number of the reason of each row of the next block, -1 for a row to keep.

        The verdict covers all rows of the block, or the good ones.
        """
        good, count = good_rows(block), len(block)
        reason = np.full(count, -1, dtype=np.int64)
        reason[list(block.bad())] = 0
        whole = len(judged.reason) == count
        reason[good] = judged.reason[good] if whole else judged.reason
        values = judged.values if whole else [spread(value, good, count) for value in judged.values]
        if self._seen is not None and len(judged.hashes):
            alive = np.flatnonzero(reason < 0)
            reason[alive[~self._seen.add(judged.hashes)]] = len(self.reasons) - 1
        self.rows += count
        self._counts += np.bincount(reason[reason >= 0], minlength=len(self.reasons))
        for number, (nearest, value) in enumerate(zip(self.explains, values, strict=True)):
            nearest.add(block, self._table, value, reason == 2 * number + 2, reason < 0)
        return reason

    def counts(self) -> dict[str, int]:
        """Return the rejected rows by reason, in the order of testing; add a note if the duplicate table was full."""
        if self._seen is not None and self._seen.forgotten:
            self.notes.append(
                f"the table of pairs seen is full ({self._seen.bytes:,} bytes): {self._seen.forgotten:,} pairs were "
                "looked up but not remembered, so duplicates of those may be among the kept; allow it more memory"
            )
        counts = zip(self.reasons, self._counts.tolist(), strict=True)
        silent = (_MALFORMED, "no ", "duplicate (none")
        return {name: n for name, n in counts if n or not name.startswith(silent)}
