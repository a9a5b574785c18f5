"""Filter a stream of sentence pairs by rules."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bitextmine.console import aligned, counted
from bitextmine.files.cells import Added
from bitextmine.files.layout import Columns
from bitextmine.files.streams import keep_apart
from bitextmine.files.tables import Block, Malformed, check_pairs_output, open_pairs, open_table
from bitextmine.run import Run
from bitextmine.scoring.explain import Example
from bitextmine.scoring.join import Joiner
from bitextmine.scoring.judge import Judged
from bitextmine.scoring.remote import remote_judge
from bitextmine.scoring.request import column_names
from bitextmine.scoring.rules import RuleSet
from bitextmine.scoring.score import FLOATS, INTEGERS
from bitextmine.scoring.seen import DEFAULT_MEMORY
from bitextmine.scoring.sieve import Sieve
from bitextmine.signature import signature


@dataclass(frozen=True)
class Filtered:
    """Counts of rows: all, kept, and rejected by reason, in the order of testing; examples per rule, if asked for."""

    rows: int
    kept: int
    rejected: dict[str, int]
    signature: str
    notes: tuple[str, ...] = ()
    examples: dict[str, tuple[list[Example], list[Example]]] = field(default_factory=dict)

    def to_table(self) -> str:
        """Return counts, examples, notes and signature as text."""

        def row(name: str, count: int) -> list[str]:
            return [name, f"{count:,}", f"{100 * count / self.rows:.2f}%" if self.rows else "-"]

        rejected = [row(f"rejected: {name}", count) for name, count in self.rejected.items()]
        table = [row("kept", self.kept), *rejected, row("all", self.rows)]
        parts = [aligned(["", "rows", "share"], table)]
        for name, (outside, inside) in self.examples.items():
            parts.append(name)
            parts += [f"  {'outside':8}{example}" for example in outside]
            parts += [f"  {'inside':8}{example}" for example in inside]
        return "\n".join([*parts, *self.notes, self.signature])


@dataclass(frozen=True)
class FilterOptions:
    """Where the pairs are, and what to report.

    Attributes:
        where: the columns of source and target.
        columns: names of the last columns if there is no header, as given to `score`.
        src, tgt: the languages that the sides should be in, for a rule on `lang` if the rows have no such column.
        explain: the number of examples on each side of every rule.
        join: write "paragraph" or "document" pairs, joined from the sentence pairs that are kept, by their origins.
    """

    where: Columns = field(default_factory=Columns)
    columns: str | Sequence[str] | None = None
    src: str = ""
    tgt: str = ""
    explain: int = 0
    join: str | None = None


def filter_rows(
    path: str | os.PathLike[str] = "-",
    output: str | os.PathLike[str] = "-",
    rules: RuleSet | None = None,
    options: FilterOptions | None = None,
    run: Run | None = None,
    *,
    rejected: str | os.PathLike[str] | None = None,
) -> Filtered:
    """Copy the rows that pass every rule, in order.

    The others go to `rejected`, each with the first rule that it fails in an added cell, `reason`. A header is copied
    to both. A missing column is computed from the texts unless it needs an encoder. Malformed rows are rejected, as are
    rows without a value for a rule. Duplicates are found last, among rows that pass all rules, within the memory of
    `run` (default: 2 GiB).

    Raises:
        UsageError: choices that do not go together.
        BitextmineError: unreadable or unwritable files, unknown columns, or nearly all rows malformed.
    """
    options, run, rules = options or FilterOptions(), run or Run(), rules or RuleSet()
    outputs = {"-o": output, **({} if rejected is None else {"--rejected": rejected})}
    keep_apart(path, {"-o": output, "--rejected": rejected})
    formats = [check_pairs_output(place, option) for option, place in outputs.items()]
    last = () if options.columns is None else column_names(options.columns, False)
    table = open_table(path, replace(options.where, last=last))
    langs = table.langs(options.src, options.tgt)
    for format in formats:
        format.check_languages(langs)
    memory = DEFAULT_MEMORY if run.memory is None else run.memory
    names_languages = any(
        format.name != "tsv" for format in formats
    )  # what is written states --src and --tgt
    stated = options.src, options.tgt
    sieve = Sieve(rules, table, last, stated, options.explain, memory, names_languages)
    malformed = Malformed(table)
    header = bool(table.layout.names) and options.where.header is not False
    joiner = Joiner(table, options.join) if options.join else None
    outline = functools.partial(table.outline, header=header, floats=FLOATS, integers=INTEGERS, langs=langs)
    with contextlib.ExitStack() as stack:
        judged = _judged(sieve, table.rows.blocks(), run, stack)
        kept = outline() if joiner is None else joiner.outline(langs, header=header)
        out = stack.enter_context(open_pairs(output, kept))
        away = None if rejected is None else stack.enter_context(open_pairs(rejected, outline(("reason",))))
        bar = stack.enter_context(run.progress(None, "filter", "rows"))
        for block, found in judged:
            malformed.add(block)
            reasons = sieve.settle(block, found)
            failed = reasons >= 0
            if joiner is not None:
                joiner.add(block, np.flatnonzero(~failed))
            else:
                out.write(block, np.flatnonzero(~failed) if failed.any() else None, ())
            if away is not None and failed.any():
                names = [sieve.reasons[reason] if reason >= 0 else "" for reason in reasons]
                away.write(block, np.flatnonzero(failed), [Added("reason", names)])
            bar.update(len(block))
        malformed.finish()
        if joiner is not None:
            sieve.notes.append(f"joined to {counted(joiner.write(out), f'{options.join} pair')}")
    counts = sieve.counts()
    return Filtered(
        rows=sieve.rows,
        kept=sieve.rows - sum(counts.values()),
        rejected=counts,
        signature=signature(rules=str(RuleSet(sieve.rules)), duplicates=rules.duplicates),
        notes=tuple(sieve.notes),
        examples={str(nearest.rule): nearest.examples() for nearest in sieve.explains},
    )


def _judged(
    sieve: Sieve, blocks: Iterator[Block], run: Run, stack: contextlib.ExitStack
) -> Iterator[tuple[Block, Judged]]:
    if not run.executor.distributed:
        return ((block, sieve.judged(block)) for block in blocks)
    workers = stack.enter_context(run.executor.open())
    return remote_judge(workers, sieve.judge, sieve.request, ((block, sieve.sent(block)) for block in blocks))
