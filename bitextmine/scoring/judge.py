"""Apply rules to the rows of one input, here or on workers, find duplicates, and count the reasons of rejection."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitextmine.errors import BitextmineError
from bitextmine.executor import Task
from bitextmine.files.formats.layout import MISSING, is_position
from bitextmine.files.formats.table import Block, Rows
from bitextmine.scoring.columns.catalogue import COLUMNS, PairTexts, Request, Tools, pair_hash
from bitextmine.scoring.compute import good_rows, texts_of
from bitextmine.scoring.options import FilterOptions
from bitextmine.scoring.rules import Rule, RuleSet
from bitextmine.scoring.seen import DEFAULT_MEMORY, Seen

if TYPE_CHECKING:
    from bitextmine.executor import Kept
    from bitextmine.run import Run

T = TypeVar("T")

_MALFORMED = "malformed"
_SHOWN = 100  # characters of a text in an example


@dataclass(frozen=True)
class Judged:
    """The verdict on n rows.

    Attributes:
        reason: int64 (n,), the reason of rejection: 0 malformed, 2i + 1 no value for rule i, 2i + 2 rejected
            by rule i; -1 for a row that passes all rules.
        values: for each rule float64 (n,), NaN for rows that failed before; empty unless kept.
        hashes: uint64, the duplicate keys of the rows that pass, in order; empty unless duplicates are removed.
    """

    reason: NDArray[np.int64]
    values: list[NDArray[np.float64]]
    hashes: NDArray[np.uint64]


@dataclass(frozen=True)
class Judge:
    """Tests rules in order; a worker can be sent one.

    Attributes:
        rules, places: the rules, and the places of their columns in the rows, from 0 (None: computed from the texts).
        sides: the columns of source and target, if they are needed.
        duplicates: the level of `dedup.line_key`, or "none".
        keeps_values: return the values that the rules compare.
        request: the columns to compute.
    """

    rules: tuple[Rule, ...]
    places: tuple[int | None, ...]
    sides: tuple[int, int]
    duplicates: str
    keeps_values: bool
    request: Request

    def judge(self, block: Block, tools: Tools) -> Judged:
        """Judge a block; raise BitextmineError for a rule that wants numbers from a column of text."""
        reason = np.full(len(block), -1, dtype=np.int64)
        reason[list(block.bad())] = 0
        good, pairs = good_rows(block), None
        if None in self.places or self.duplicates != "none":
            pairs = PairTexts(*texts_of(block, self.sides), tools)
        passed = np.arange(len(good))
        values: list[NDArray[np.float64]] = []
        for number, (rule, place) in enumerate(zip(self.rules, self.places, strict=True)):
            rows = good[passed]
            column: Any
            if place is not None:
                column = (block.texts if isinstance(rule.value, str) else block.numbers)(place, rows)
            elif pairs is not None:
                column = pairs.take(passed.tolist()).column(rule.column)
            value, met = _compared(rule, column)
            missing = np.isnan(value)
            reason[rows[missing]] = 2 * number + 1
            reason[rows[~met & ~missing]] = 2 * number + 2
            if self.keeps_values:
                values.append(np.full(len(block), np.nan))
                values[-1][rows] = value
            passed = passed[met]
        keys: list[int] = []
        if pairs is not None and self.duplicates != "none":
            keys = [pair_hash(pairs.src[at], pairs.tgt[at], self.duplicates) for at in passed.tolist()]
        return Judged(reason, values, np.array(keys, dtype=np.uint64))


def _compared(rule: Rule, column: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the values that a rule compares (for text: 1 if equal), NaN for none, and flags of rows that pass."""
    if isinstance(rule.value, str):
        texts = column if isinstance(column, list) else [f"{value:g}" for value in column]
        equal = np.array([text == rule.value for text in texts], dtype=bool)
        return equal.astype(np.float64), equal
    if isinstance(column, list):
        raise BitextmineError(
            f"the column {rule.column} holds text: a rule on it is {rule.column} = TEXT (--equal)"
        )
    return column, rule.met(column)


class Fewest(Generic[T]):
    """The `size` items of a stream with the lowest values, in order; of equal values the first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: list[tuple[float, int, T]] = []
        self._seen = 0

    def offer(self, values: NDArray[np.float64], make: Callable[[int], T]) -> None:
        """Offer the next values (n,), NaN to leave one out; make(i) makes the i-th item if it is kept."""
        full = len(self._kept) >= self.size
        at = np.flatnonzero(values < self._kept[-1][0] if full else ~np.isnan(values))
        if len(at) > self.size:
            at = at[np.argsort(values[at], kind="stable")[: self.size]]
        fresh = [(float(values[i]), self._seen + i, make(i)) for i in at.tolist()]
        self._kept = sorted([*self._kept, *fresh], key=lambda entry: entry[:2])[: self.size]
        self._seen += len(values)

    @property
    def items(self) -> list[T]:
        """Return the items."""
        return [item for _, _, item in self._kept]


def _short(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text[: 4 * _SHOWN]).strip()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class Sieve:
    """Rules placed on the columns of an input: the engine of `filter`, whatever holds the pairs.

    Attributes:
        rules: the rules that apply.
        reasons: names of the reasons of rejection.
        examples: of each rule, the rows nearest to its threshold outside and inside, as text.
        notes: remarks for the reader.
        uses_languages: a rule computes a column in the stated languages.

    Args:
        rules: the rules to apply.
        rows, name: the input, and its name for errors.
        options: names of the last columns, stated languages, number of examples.
        memory: bytes for the table of pairs seen (None: 2 GiB).

    Raises:
        UsageError: languages that cannot be identified.
        BitextmineError: a rule on an unknown column, or on one that needs an encoder, or unknown texts.
    """

    def __init__(
        self, rules: RuleSet, rows: Rows, name: str, options: FilterOptions, memory: int | None
    ) -> None:
        self._name, layout, last, langs = name, rows.layout, options.columns or (), (options.src, options.tgt)
        width, names = layout.width, layout.column_names(last)
        self._known = {column: at for at, column in enumerate(names)}
        self._known |= {column: width - len(last) + at for at, column in enumerate(last)}
        self.rules, self.notes = applicable(rules, self._known, bool(langs[0]))
        places = tuple(self._place(rule, bool(names)) for rule in self.rules)
        computed = [rule.column for rule, place in zip(self.rules, places, strict=True) if place is None]
        self.uses_languages = any(COLUMNS[column].languages for column in computed)
        request = Request(tuple(dict.fromkeys(computed)), langs).checked()
        wanted = max([len(last), *(place + 1 for place in places if place is not None)])
        if not rows.empty and wanted > width:
            raise BitextmineError(
                f"{name}: the rows have {width} columns, but the rules or --columns name {wanted}"
            )
        sides = 0, 1
        if not rows.empty and (computed or options.explain or rules.duplicates != "none"):
            sides = layout.src, layout.tgt  # raises now if unknown
        self._seen = (
            None if rules.duplicates == "none" else Seen(DEFAULT_MEMORY if memory is None else memory)
        )
        self.examples = {
            str(rule): (Fewest[str](options.explain), Fewest[str](options.explain))
            for rule in self.rules
            if options.explain
        }
        self._judge = Judge(self.rules, places, sides, rules.duplicates, bool(options.explain), request)
        self.reasons = [_MALFORMED]
        for rule in self.rules:
            self.reasons += [f"no {rule.column}", str(rule)]
        self.reasons.append(f"duplicate ({rules.duplicates})")
        self._counts = np.zeros(len(self.reasons), dtype=np.int64)
        self._kept = 0

    def _place(self, rule: Rule, has_rows: bool) -> int | None:
        """Return the place of a rule's column in the rows, from 0, or None if it is computed from the texts.

        Raise BitextmineError if it cannot be. A number counts from 1, unless the header has that name.
        """
        column = rule.column
        if column in self._known:
            return self._known[column]
        if is_position(column) and 0 < len(column.lstrip("0")) < 10:
            return int(column) - 1
        if column not in COLUMNS:
            names = ", ".join(dict.fromkeys([*self._known, *COLUMNS]))
            raise BitextmineError(f"rule {rule}: no column is called '{column}'; there are {names}")
        # Without rows there are none without the column either.
        if COLUMNS[column].encoder and has_rows:
            raise BitextmineError(
                f"{self._name}: rule {rule}: the rows have no column {column} (they have {', '.join(self._known)}); "
                "add it with 'bitextmine score', or name the last columns with --columns"
            )
        return None

    def sifted(self, blocks: Iterable[Block], run: Run) -> Iterator[tuple[Block, NDArray[np.int64]]]:
        """Yield blocks with the number of the reason of each row, -1 for a row to keep.

        Workers judge if `run` has any. Which of equal pairs came first is left to this process, which sees all of them
        in order.
        """
        tasks = (
            Task(
                f"{__name__}:judged",
                (self._judge, block),
                f"rows {block.start} to {block.start + len(block) - 1}",
                key=block,
            )
            for block in blocks
        )
        with run.executor.open() as workers:
            workers.share([])
            with workers.stage("filter") if run.executor.distributed else contextlib.nullcontext():
                for task, judged in workers.map(tasks, ahead=workers.slots):
                    yield task.key, self._settle(task.key, judged)

    def _settle(self, block: Block, judged: Judged) -> NDArray[np.int64]:
        """Find the duplicates of the next block and count its reasons."""
        reason = judged.reason.copy()  # a worker's may be read-only
        if self._seen is not None:
            alive = np.flatnonzero(reason < 0)
            reason[alive[~self._seen.add(judged.hashes)]] = len(self.reasons) - 1
        self._kept += int((reason < 0).sum())
        self._counts += np.bincount(reason[reason >= 0], minlength=len(self.reasons))
        if block.start == 1:
            self._check_numbers(block, reason)
        for number, values in enumerate(judged.values):
            self._add_examples(number, block, values, (reason == 2 * number + 2, reason < 0))
        return reason

    def _add_examples(
        self,
        number: int,
        block: Block,
        values: NDArray[np.float64],
        chosen: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    ) -> None:
        """Offer the rows that a rule rejects, and those that are kept, as examples of it."""
        rule, sides = self.rules[number], self._judge.sides
        distance = np.abs(values - (rule.value if isinstance(rule.value, float) else 0.5))

        def example(row: int) -> str:
            src, tgt = (_short(block.texts(side, [row])[0]) for side in sides)
            return f"{values[row]:.4f}  row {block.start + row}: {src} | {tgt}"

        for nearest, rows in zip(self.examples[str(rule)], chosen, strict=True):
            nearest.offer(np.where(rows, distance, np.nan), example)

    def _check_numbers(self, block: Block, reason: NDArray[np.int64]) -> None:
        """Raise BitextmineError for a column without a number in the first block, and with other texts."""
        for number, (rule, place) in enumerate(zip(self.rules, self._judge.places, strict=True)):
            if place is None or not self._is_empty(number):
                continue
            texts = block.texts(place, np.flatnonzero(reason == 2 * number + 1))
            if text := next((text for text in texts if text.strip().lower() not in MISSING), ""):
                raise BitextmineError(
                    f"{self._name}: rule {rule}: column {rule.column} holds no numbers; the first value is "
                    f"{text[:80]!r}"
                )

    def _is_empty(self, number: int) -> bool:
        """Return True if rows reached a rule, and none had a value."""
        return bool(self._counts[2 * number + 1] and not self._counts[2 * number + 2 :].sum() + self._kept)

    def counts(self) -> dict[str, int]:
        """Return the rejected rows by reason, in the order of testing; add notes on empty columns and a full table."""
        self.notes += [
            f"warning: column {rule.column} is empty, so every row failed {rule}"
            for number, rule in enumerate(self.rules)
            if self._is_empty(number)
        ]
        if self._seen is not None and self._seen.forgotten:
            self.notes.append(
                f"the table of pairs seen is full ({self._seen.bytes:,} bytes): {self._seen.forgotten:,} pairs were "
                "looked up but not remembered, so duplicates of those may be among the kept; allow it more memory"
            )
        counts = zip(self.reasons, self._counts.tolist(), strict=True)
        silent = (_MALFORMED, "no ", "duplicate (none")
        return {name: n for name, n in counts if n or not name.startswith(silent)}


def applicable(
    rules: RuleSet, known: Container[str], has_languages: bool
) -> tuple[tuple[Rule, ...], list[str]]:
    """Return the rules to apply to rows with some columns, and a note on each that is skipped (`RuleSet.if_present`).

    Languages are identified where they are stated, so a rule on them applies then.
    """
    applied, notes = [], []
    for rule in rules.rules:
        column = COLUMNS.get(rule.column)
        identified = has_languages and column is not None and column.languages
        if rule.column in rules.if_present and rule.column not in known and not identified:
            notes.append(f"rule {rule} not applied: the rows have no column {rule.column}")
        else:
            applied.append(rule)
    return tuple(applied), notes


def judged(kept: Kept, judge: Judge, block: Block) -> Judged:
    """Judge a block, on a worker or here."""
    if "tools" not in kept or kept["tools"].request != judge.request:
        kept["tools"] = Tools(judge.request)
    return judge.judge(block, kept["tools"])
