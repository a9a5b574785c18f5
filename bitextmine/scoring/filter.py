"""Filter a stream of sentence pairs by rules."""

import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bitextmine.console import aligned
from bitextmine.files.formats.blocks import Added
from bitextmine.files.formats.table import Malformed, check_pairs_output, open_pairs, open_table
from bitextmine.files.output import Destination, keep_apart
from bitextmine.files.source import Source
from bitextmine.run import Run
from bitextmine.scoring.judge import Fewest, Sieve
from bitextmine.scoring.options import FilterOptions
from bitextmine.scoring.rules import RuleSet
from bitextmine.scoring.score import FLOATS, INTEGERS
from bitextmine.signature import signature


@dataclass(frozen=True)
class Filtered:
    """Counts of rows: all, kept, and rejected by reason, in the order of testing; examples per rule, if asked for."""

    rows: int
    kept: int
    rejected: dict[str, int]
    signature: str
    notes: tuple[str, ...] = ()
    examples: dict[str, tuple[Fewest[str], Fewest[str]]] = field(default_factory=dict)

    def to_table(self) -> str:
        """Return counts, examples, notes and signature as text."""

        def row(name: str, count: int) -> list[str]:
            return [name, f"{count:,}", f"{100 * count / self.rows:.2f}%" if self.rows else "-"]

        rejected = [row(f"rejected: {name}", count) for name, count in self.rejected.items()]
        table = [row("kept", self.kept), *rejected, row("all", self.rows)]
        parts = [aligned(["", "rows", "share"], table)]
        for name, nearest in self.examples.items():
            parts.append(name)
            for side, examples in zip(("outside", "inside"), nearest, strict=True):
                parts += [f"  {side:8}{example}" for example in examples.items]
        return "\n".join([*parts, *self.notes, self.signature])


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
    source = Source.of(path, run)
    outputs = {"-o": Destination.of(output)}
    if rejected is not None:
        outputs["--rejected"] = Destination.of(rejected)
    keep_apart(source, outputs)
    formats = [check_pairs_output(file, option) for option, file in outputs.items()]
    stated = options.src, options.tgt
    table = open_table(source, replace(options.where, last=options.columns or (), langs=stated))
    langs = table.langs(*stated)
    for format in formats:
        format.check_languages(langs)
    sieve = Sieve(rules, table, str(source), options, run.memory)
    # Formats other than tsv write the languages that --src and --tgt state.
    if options.src and not sieve.uses_languages and all(format.name == "tsv" for format in formats):
        sieve.notes.append("--src and --tgt change nothing: no rule needs them")
    malformed = Malformed(table)
    header = bool(table.layout.names) and options.where.header is not False
    fields: dict[str, Any] = {"header": header, "floats": FLOATS, "integers": INTEGERS, "langs": langs}
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(open_pairs(outputs["-o"], table.outline(**fields)))
        others = None
        if "--rejected" in outputs:
            others = stack.enter_context(
                open_pairs(outputs["--rejected"], table.outline(("reason",), **fields))
            )
        bar = stack.enter_context(run.progress(None, "filter", "rows"))
        for block, reasons in sieve.sifted(table.blocks(), run):
            malformed.add(block)
            failed = reasons >= 0
            out.write(block, np.flatnonzero(~failed) if failed.any() else None, ())
            if others is not None and failed.any():
                cells = [sieve.reasons[reason] if reason >= 0 else "" for reason in reasons]
                others.write(block, np.flatnonzero(failed), [Added("reason", cells)])
            bar.update(len(block))
        malformed.finish()
        sieve.notes += malformed.notes()
    counts = sieve.counts()
    return Filtered(
        rows=malformed.rows,
        kept=malformed.rows - sum(counts.values()),
        rejected=counts,
        signature=signature(rules=str(RuleSet(sieve.rules)), duplicates=rules.duplicates),
        notes=tuple(sieve.notes),
        examples=sieve.examples,
    )
