"""Filter a stream of sentence pairs by rules, and join the kept ones to paragraphs or documents."""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, counted
from bitextmine.errors import BitextmineError
from bitextmine.files.formats.blocks import DECIMALS, Added, Block, Outline, one_cell
from bitextmine.files.formats.table import (
    Malformed,
    Table,
    Writer,
    check_pairs_output,
    open_pairs,
    open_table,
)
from bitextmine.files.output import Destination, keep_apart
from bitextmine.files.source import Source
from bitextmine.languages.scripts import join_sentences
from bitextmine.run import Run
from bitextmine.scoring.columns.catalogue import column_names
from bitextmine.scoring.judge import Nearest, Sieve
from bitextmine.scoring.options import FilterOptions
from bitextmine.scoring.rules import RuleSet
from bitextmine.scoring.score import FLOATS, INTEGERS
from bitextmine.scoring.seen import DEFAULT_MEMORY
from bitextmine.signature import signature

_PLACE = re.compile(r"(.+) (\d+)\.(\d+)(?:-\d+\.\d+)?")  # document or URL, paragraph, first sentence
_JOINED = ("score", "src", "tgt", "src_origin", "tgt_origin")
_BLOCK = 8192
_Texts = dict[tuple[int, int], str]


@dataclass(frozen=True)
class Filtered:
    """Counts of rows: all, kept, and rejected by reason, in the order of testing; examples per rule, if asked for."""

    rows: int
    kept: int
    rejected: dict[str, int]
    signature: str
    notes: tuple[str, ...] = ()
    examples: dict[str, Nearest] = field(default_factory=dict)

    def to_table(self) -> str:
        """Return counts, examples, notes and signature as text."""

        def row(name: str, count: int) -> list[str]:
            return [name, f"{count:,}", f"{100 * count / self.rows:.2f}%" if self.rows else "-"]

        rejected = [row(f"rejected: {name}", count) for name, count in self.rejected.items()]
        table = [row("kept", self.kept), *rejected, row("all", self.rows)]
        parts = [aligned(["", "rows", "share"], table)]
        for name, nearest in self.examples.items():
            parts.append(name)
            parts += [f"  {'outside':8}{example}" for example in nearest.outside]
            parts += [f"  {'inside':8}{example}" for example in nearest.inside]
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
    last = () if options.columns is None else column_names(options.columns, False)
    stated = options.src, options.tgt
    table = open_table(source, replace(options.where, last=last, langs=stated))
    langs = table.langs(*stated)
    for format in formats:
        format.check_languages(langs)
    sieve = Sieve(
        rules,
        table.rows,
        table.names,
        str(source),
        last=last,
        langs=stated,
        explain=options.explain,
        memory=DEFAULT_MEMORY if run.memory is None else run.memory,
    )
    # Formats other than tsv write the languages that --src and --tgt state.
    if options.src and not sieve.uses_languages and all(format.name == "tsv" for format in formats):
        sieve.notes.append("--src and --tgt change nothing: no rule needs them")
    malformed = Malformed(table)
    with contextlib.ExitStack() as stack:
        writers = _Writers(table, langs, options, outputs, stack)
        bar = stack.enter_context(run.progress(None, "filter", "rows"))
        for block, reasons in sieve.sifted(table.rows.blocks(), run):
            malformed.add(block)
            writers.write(block, reasons, sieve.reasons)
            bar.update(len(block))
        malformed.finish()
        sieve.notes += malformed.notes()
        sieve.notes += writers.finish()
    counts = sieve.counts()
    return Filtered(
        rows=malformed.rows,
        kept=malformed.rows - sum(counts.values()),
        rejected=counts,
        signature=signature(rules=str(RuleSet(sieve.rules)), duplicates=rules.duplicates),
        notes=tuple(sieve.notes),
        examples=sieve.examples,
    )


class _Writers:
    """The outputs of `filter_rows`: kept rows, joined if the options say so, and rejected ones."""

    def __init__(
        self,
        table: Table,
        langs: tuple[str, str],
        options: FilterOptions,
        outputs: Mapping[str, Destination],
        stack: contextlib.ExitStack,
    ) -> None:
        header = bool(table.layout.names) and options.where.header is not False
        fields: dict[str, Any] = {"header": header, "floats": FLOATS, "integers": INTEGERS, "langs": langs}
        self._unit, self._joiner = options.join, Joiner(table, options.join) if options.join else None
        kept = table.outline(**fields)
        if self._joiner is not None:
            kept = Outline(_JOINED, 1, 2, langs, header=header, floats=("score",))
        self._kept, self._rejected = stack.enter_context(open_pairs(outputs["-o"], kept)), None
        if "--rejected" in outputs:
            outline = table.outline(("reason",), **fields)
            self._rejected = stack.enter_context(open_pairs(outputs["--rejected"], outline))

    def write(self, block: Block, reasons: NDArray[np.int64], names: Sequence[str]) -> None:
        """Write a block whose rows have these reasons of rejection, -1 for none; `names` are those of the reasons."""
        failed = reasons >= 0
        if self._joiner is not None:
            self._joiner.add(block, np.flatnonzero(~failed))
        else:
            self._kept.write(block, np.flatnonzero(~failed) if failed.any() else None, ())
        if self._rejected is not None and failed.any():
            cells = [names[reason] if reason >= 0 else "" for reason in reasons]
            self._rejected.write(block, np.flatnonzero(failed), [Added("reason", cells)])

    def finish(self) -> list[str]:
        """Write what was joined; return a note on it."""
        if self._joiner is None:
            return []
        return [f"joined to {counted(self._joiner.write(self._kept), f'{self._unit} pair')}"]


class Joiner:
    """Collects sentence pairs, and joins those of one pair of paragraphs or documents.

    Args:
        table: the sentence pairs.
        unit: "paragraph" or "document".

    Raises:
        BitextmineError: the table has no columns of origin.
    """

    def __init__(self, table: Table, unit: str) -> None:
        places = table.layout.places
        if not {"src_origin", "tgt_origin"} <= places.keys():
            raise BitextmineError(
                f"{table.source}: --join needs the columns src_origin and tgt_origin; make the "
                "pairs with 'mine --origin' or 'align --origin'"
            )
        self._columns = [table.layout.src, table.layout.tgt, places["src_origin"], places["tgt_origin"]]
        self._score = places.get("score")
        self._unit = unit
        # By the names of both sides: sentences by paragraph and number, and the scores.
        self._joined: dict[tuple[str, str], tuple[_Texts, _Texts, list[float]]] = {}

    def add(self, block: Block, rows: NDArray[np.int64]) -> None:
        """Take rows of a block; those without an origin on both sides are left out."""
        cells = [block.texts(column, rows) for column in self._columns]
        scores = [np.nan] * len(rows) if self._score is None else block.numbers(self._score, rows).tolist()
        for src, tgt, *origins, score in zip(*cells, scores, strict=True):
            src_origin, tgt_origin = (_PLACE.fullmatch(origin) for origin in origins)
            if src_origin is None or tgt_origin is None:
                continue
            names = self._name(src_origin), self._name(tgt_origin)
            src_texts, tgt_texts, pair_scores = self._joined.setdefault(names, ({}, {}, []))
            for texts, origin, text in ((src_texts, src_origin, src), (tgt_texts, tgt_origin, tgt)):
                texts.setdefault((int(origin[2]), int(origin[3])), text)
            pair_scores.append(score)

    def _name(self, origin: re.Match[str]) -> str:
        return origin[1] if self._unit == "document" else f"{origin[1]} {origin[2]}.1"

    def write(self, out: Writer) -> int:
        """Write the joined pairs, in the order of their first sentence pairs; return their number.

        The sentences are in the order of their document. The score is the mean of the sentence pairs.
        """
        rows = []
        for names, (*sides, scores) in self._joined.items():
            score = float(np.mean(scores))
            texts = (one_cell(join_sentences(side[place] for place in sorted(side))) for side in sides)
            rows.append([None if np.isnan(score) else round(score, DECIMALS), *texts, *names])
        for start in range(0, len(rows), _BLOCK):
            out.write(Block(_JOINED, rows[start : start + _BLOCK], start + 1), None, ())
        return len(rows)
