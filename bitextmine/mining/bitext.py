"""Mined sentence pairs: their lines and scores, and the file they are written to."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, counted
from bitextmine.embeddings.places import embedding_paths
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.cells import one_cell
from bitextmine.files.formats.names import Format, format_of, output_format
from bitextmine.files.formats.protocol import Outline
from bitextmine.files.formats.records import RecordBlock
from bitextmine.files.jsonfile import json_bytes
from bitextmine.files.layout import Columns, find_layout
from bitextmine.files.lines import iter_lines
from bitextmine.files.ours import Made, check_ours
from bitextmine.files.storage import Place, place, same_place
from bitextmine.files.streams import check_writable, is_stream, open_output
from bitextmine.files.tables import check_languages, check_pairs_output, open_pairs, open_table
from bitextmine.mining.candidates import SCORE_DECIMALS
from bitextmine.mining.texts import FileText, Text
from bitextmine.search.checkpoint import remove_checkpoint

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Bitext",
    "Mined",
    "MinedPair",
    "PickedLines",
    "check_output",
    "inputs_of",
    "one_cell",
    "read_mined",
]

_IN_MEMORY = 1 << 26
_BLOCK = 1 << 13


class PickedLines:
    """Some lines of a corpus, read in one pass and kept in a temporary file above 64 MiB of text.

    What stays in memory is 16 bytes per picked line. Use it in a ``with`` statement; index it with a line
    number.
    """

    def __init__(self, lines: Iterable[str], wanted: NDArray[np.int64]) -> None:
        self._numbers = np.unique(wanted)
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed by __exit__)
        ends = array("q", [0])
        numbers = iter(array("q", self._numbers.tobytes()))  # ints one by one, and no list of them
        next_number = next(numbers, None)
        at = 0
        for number, line in enumerate(lines):  # to the last one: only then a text knows that it is the same
            if number == next_number:
                at += self._file.write(line.encode("utf-8", "surrogatepass"))
                ends.append(at)
                next_number = next(numbers, None)
        self._ends = np.frombuffer(ends, dtype=np.int64)
        found = len(ends) - 1
        if found < len(self._numbers):
            self._file.close()
            raise BitextmineError(
                f"line {self._numbers[found] + 1} is wanted, but the text ends before it; it changed while it was read"
            )

    def __getitem__(self, line: int) -> str:
        return next(self.in_order(np.array([line])))

    def in_order(self, lines: NDArray[np.int64]) -> Iterator[str]:
        """The lines of these numbers (n,), one by one; KeyError for one that was not picked."""
        for start in range(0, len(lines), _BLOCK):
            some = lines[start : start + _BLOCK]
            at = np.searchsorted(self._numbers, some)
            there = at < len(self._numbers)
            there[there] = self._numbers[at[there]] == some[there]
            if not there.all():
                raise KeyError(int(some[~there][0]))
            for begin, end in zip(self._ends[at].tolist(), self._ends[at + 1].tolist(), strict=True):
                self._file.seek(begin)
                yield self._file.read(end - begin).decode("utf-8", "surrogatepass")

    def __enter__(self) -> PickedLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class MinedPair(NamedTuple):
    """One pair: its score, both line numbers counted from 1, and the texts as they stand in the corpora."""

    score: float
    src_line: int
    tgt_line: int
    src: str
    tgt: str


@dataclass(frozen=True)
class Bitext:
    """The result of mining: `len()` of it, iteration (`MinedPair`), `to_frame`, `write`.

    src_index, tgt_index: int64 (p,), lines counted from 0, as NumPy and lists count (the pairs, the frame and the files
    number them from 1, as editors do); score: float64 (p,); best first, equal scores by source line, then target line.
    src, tgt: the texts, which are read anew for each output. gold: the file of known pairs that a threshold was tuned
    on. signature: how it was made. details: the numbers of the run, ready for JSON. notes: what a person should read
    about it. checkpoint: where the search may have left its answer, for the next run to go on from;
    discard_checkpoint() removes it.
    """

    src_index: NDArray[np.int64]
    tgt_index: NDArray[np.int64]
    score: NDArray[np.float64]
    src: Text
    tgt: Text
    signature: str
    details: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checkpoint: Path | None = None
    gold: str | os.PathLike[str] | None = None

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return f"<Bitext: {counted(len(self), 'pair')}, {self.signature}>"

    @property
    def threshold(self) -> float | None:
        """Where the pairs were cut; None where they were not."""
        value = self.details.get("threshold", {}).get("value")
        return None if value is None else float(value)

    def __iter__(self) -> Iterator[MinedPair]:
        """The pairs, best first. Raises BitextmineError where a text is not what it was."""
        return self._pairs(slice(None))

    @overload
    def __getitem__(self, place: SupportsIndex) -> MinedPair: ...
    @overload
    def __getitem__(self, place: slice) -> list[MinedPair]: ...
    def __getitem__(self, place: SupportsIndex | slice) -> MinedPair | list[MinedPair]:
        """The pair at a place, 0 for the best, or the pairs of a slice. Both texts are read each time: to see many
        pairs, take a slice or iterate."""
        if isinstance(place, slice):
            return list(self._pairs(place))
        try:
            at = range(len(self))[place]
        except IndexError:
            raise IndexError(f"no pair has number {place}: there are {len(self):,}") from None
        return next(self._pairs(slice(at, at + 1)))

    def _pairs(self, part: slice) -> Iterator[MinedPair]:
        score, src_index, tgt_index = self.score[part], self.src_index[part], self.tgt_index[part]
        with PickedLines(self.src.lines(), src_index) as src, PickedLines(self.tgt.lines(), tgt_index) as tgt:
            numbers = zip(score.tolist(), src_index.tolist(), tgt_index.tolist(), strict=True)
            lines = zip(src.in_order(src_index), tgt.in_order(tgt_index), strict=True)
            for (value, s, t), (source, target) in zip(numbers, lines, strict=True):
                yield MinedPair(value, s + 1, t + 1, source, target)

    def rows(self, ids: bool = False) -> Iterator[str]:
        """The TSV lines without their line feed: score, source, target; with `ids` the two line numbers (from 1)
        between the score and the texts."""
        for pair in self:
            numbers = f"{pair.src_line}\t{pair.tgt_line}\t" if ids else ""
            yield f"{pair.score:.{SCORE_DECIMALS}f}\t{numbers}{one_cell(pair.src)}\t{one_cell(pair.tgt)}"

    def write(self, output: str | os.PathLike[str] = "-", ids: bool = False, *, force: bool = False) -> None:
        """Write the pairs to a file (complete or not at all, with `to_dict` in OUTPUT.json beside it) or to stdout
        (``-``). Its suffix tells the form: TSV without a header (.tsv, .txt, none), JSON Lines (.jsonl), TMX (.tmx) or
        Parquet (.parquet), the first three compressed where .gz, .bz2, .xz or .zst comes last. The columns are score,
        with `ids` src_line and tgt_line, src, tgt.

        Raises UsageError for a name that would replace what the pairs were mined from, and for one whose suffix says
        nothing; BitextmineError for a file that cannot be written, and, without `force`, where OUTPUT.json is there and
        describes something else.
        """
        check_output(output, inputs_of((self.src, self.tgt), self.gold), force=force)
        langs = self.src.lang, self.tgt.lang
        check_languages(output, langs, "the names of the corpora, or --src and --tgt")
        numbers = ("src_line", "tgt_line") if ids else ()
        names = ("score", *numbers, "src", "tgt")
        outline = Outline(
            names=names,
            src=names.index("src"),
            tgt=names.index("tgt"),
            langs=langs,
            floats=("score",),
            integers=("src_line", "tgt_line"),
        )
        exact = output_format(output) == Format.PARQUET
        pairs = iter(self)
        with open_pairs(output, outline) as out:
            start = 1
            while block := list(itertools.islice(pairs, _BLOCK)):
                rows = [
                    [
                        pair.score if exact else round(pair.score, SCORE_DECIMALS),
                        *((pair.src_line, pair.tgt_line) if ids else ()),
                        one_cell(pair.src),
                        one_cell(pair.tgt),
                    ]
                    for pair in block
                ]
                out.write(RecordBlock(names, rows, start), None, ())
                start += len(rows)
        if not is_stream(output):
            with open_output(f"{os.fspath(output)}.json", "binary") as file:
                file.write(json_bytes(self.to_dict(), indent=2, sort_keys=False, allow_nan=True))

    def discard_checkpoint(self) -> None:
        """Remove what the search left for another run to go on from, if there is anything: when this result is safe."""
        if self.checkpoint is not None:
            with contextlib.suppress(OSError):  # if it cannot go, the next run looks into it, and removes it
                remove_checkpoint(self.checkpoint)

    def to_frame(self) -> pandas.DataFrame:
        """The pairs in memory, best first, for notebooks: score float64, src_line and tgt_line int64 (from 1), src and
        tgt, the texts as they stand in the corpora."""
        import pandas

        texts = [(pair.src, pair.tgt) for pair in self]
        return pandas.DataFrame(
            {
                "score": self.score,
                "src_line": self.src_index + 1,
                "tgt_line": self.tgt_index + 1,
                "src": [src for src, _ in texts],
                "tgt": [tgt for _, tgt in texts],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """What the JSON beside the file holds."""
        return {
            "kind": "bitext",
            "signature": self.signature,
            "pairs": len(self),
            "src": self.src.name,
            "tgt": self.tgt.name,
            **self.details,
            "notes": list(self.notes),
        }

    def to_table(self) -> str:
        """A few lines for a person: how many pairs reach which score, the notes, the signature."""
        header = {
            "threshold": ("threshold", "{:g}"),
            "pairs": ("pairs", "{:,}"),
            "false_positive_rate": ("est. false positives", "{:.2%}"),
            "precision": ("est. precision", "{:.1%}"),
        }
        counts = self.details.get("counts", [])
        columns = [key for key in header if counts and key in counts[0]]
        rows = [[header[key][1].format(row[key]) for key in columns] for row in counts]
        table = [aligned([header[key][0] for key in columns], rows)] if rows else []
        return "\n".join([*table, counted(len(self), "pair"), *self.notes, self.signature])


def inputs_of(texts: Iterable[Text], gold: str | os.PathLike[str] | None = None) -> list[Place]:
    """The files that pairs are mined from: corpora, their embeddings, and gold."""
    corpora = [text.path for text in texts if isinstance(text, FileText)]
    embeddings = [part for corpus in corpora for part in embedding_paths(corpus)]
    return [*corpora, *embeddings, *([] if gold is None else [place(gold)])]


def check_output(output: str | os.PathLike[str], inputs: Iterable[Place], *, force: bool = False) -> None:
    """Raises UsageError for an output whose suffix says nothing, and for one that would replace one of the inputs,
    itself or with the JSON beside it; BitextmineError for a place that cannot be written to, for Parquet without
    pyarrow, and, without `force`, where the JSON beside it is there and not of mined pairs."""
    if not isinstance(output, (str, os.PathLike)):
        raise UsageError(f"output: expected the name of a file, found {output!r}")
    if os.fspath(output) == "-":
        return
    kept = {same_place(path): path for path in inputs}
    for made in (os.fspath(output), f"{os.fspath(output)}.json"):
        if (path := kept.get(same_place(made))) is not None:
            raise UsageError(
                f"output {output} (-o) would replace {path}, which the pairs are mined from; name another file"
            )
    check_pairs_output(output)
    if not is_stream(output):
        beside = f"{os.fspath(output)}.json"
        check_writable(beside)
        if not force:
            check_ours(beside, Made.PAIRS, "name another output (-o)")


@dataclass(frozen=True)
class Mined:
    """Mined pairs read back: lines counted from 0, int64 (p,) each, and scores float64 (p,)."""

    src_index: NDArray[np.int64]
    tgt_index: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.score)


def read_mined(path: str | os.PathLike[str], errors: str = "strict") -> Mined:
    """Read what ``mine --ids`` wrote: score, source line, target line (both from 1), anything after that ignored. Where
    a header names them score, src_line and tgt_line, as that of ``score`` does, they may stand anywhere.

    Of Parquet, JSON Lines and TMX the columns of these names count.

    Raises BitextmineError, naming the line, for a file of another shape.
    """
    if format_of(path) != Format.TSV:
        return _read_mined_columns(path)
    src: list[int] = []
    tgt: list[int] = []
    score: list[float] = []
    places = [0, 1, 2]
    for number, line in enumerate(iter_lines(path, errors), start=1):
        if number == 1 and (layout := find_layout([line.split("\t")], Columns(), str(path))).names:
            places = [
                layout.places.get(role, len(layout.names)) for role in ("score", "src_line", "tgt_line")
            ]
            continue
        cells = line.split("\t", max(places) + 1)
        try:
            value, s, t = float(cells[places[0]]), int(cells[places[1]]), int(cells[places[2]])
        except (ValueError, IndexError):
            raise BitextmineError(
                f"{path}: line {number}: expected score, source line and target line between tabs, found "
                f"{line[:60]!r}; make the file with 'bitextmine mine --ids --threshold none'"
            ) from None
        if not 1 <= min(s, t) <= max(s, t) < 1 << 62 or value != value:
            raise BitextmineError(
                f"{path}: line {number}: expected a number and line numbers from 1, found {line[:60]!r}"
            )
        score.append(value)
        src.append(s - 1)
        tgt.append(t - 1)
    return Mined(
        np.array(src, dtype=np.int64), np.array(tgt, dtype=np.int64), np.array(score, dtype=np.float64)
    )


def _read_mined_columns(path: str | os.PathLike[str]) -> Mined:
    table = open_table(path)
    roles = ("score", "src_line", "tgt_line")
    missing = [role for role in roles if role not in table.layout.places]
    if missing and table.names:
        raise BitextmineError(
            f"{path}: no column {' or '.join(missing)}; make the file with 'bitextmine mine --ids --threshold none'"
        )
    parts: list[list[NDArray[np.float64]]] = [[np.empty(0)] * len(roles)]
    for block in table.rows.blocks():
        rows = np.arange(len(block))
        score, *lines = (block.numbers(table.layout.places[role], rows) for role in roles)
        bad = np.isnan(score) | ~np.all([(line >= 1) & (line == np.floor(line)) for line in lines], axis=0)
        if bad.any():
            raise BitextmineError(
                f"{path}: row {block.start + int(np.argmax(bad))}: expected a number and line numbers from 1"
            )
        parts.append([score, *lines])
    score, src, tgt = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Mined(src.astype(np.int64) - 1, tgt.astype(np.int64) - 1, score)
