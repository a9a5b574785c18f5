"""Score a stream of sentence pairs, here or on workers: the same rows come out, with columns added."""

from __future__ import annotations

import contextlib
import os
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.executor import Task
from bitextmine.files.cells import Added, one_cell
from bitextmine.files.formats.names import MOSES
from bitextmine.files.formats.protocol import SomeRows
from bitextmine.files.layout import Columns
from bitextmine.files.streams import display_name, keep_apart
from bitextmine.files.tables import Block, Malformed, Table, check_pairs_output, open_pairs, open_table
from bitextmine.languages.clean import clean
from bitextmine.languages.identify import is_installed
from bitextmine.run import Run
from bitextmine.scoring.columns.catalogue import COLUMNS, WINDOW, PairTexts, Request, column_names, identifier
from bitextmine.signature import signature

if TYPE_CHECKING:
    from bitextmine.distributed.encoding import SentModel
    from bitextmine.encoder import Encoder
    from bitextmine.executor import Kept, Workers

# Columns with these names are numbers in Parquet.
FLOATS = frozenset({"score", *(column.name for column in COLUMNS.values() if not column.is_text)})
INTEGERS = frozenset({"src_line", "tgt_line"})

_SAMPLE = 200  # pairs examined for swapped columns
_LOW = 0.5  # of the column lang: the pair is not in the stated languages
_ENOUGH = 10  # texts that tell a language
_RARE = 0.1  # of the texts in the stated language, where it is a mistake

Texts = tuple[list[str], list[str]]  # sources and targets of the good rows of a block


@dataclass(frozen=True)
class Scored:
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


@dataclass(frozen=True)
class ScoreOptions:
    """What to compute, and where the pairs are.

    Attributes:
        where: the columns of source and target; with ``header=False`` no header is written, either.
        columns: names of columns to add (None: the default ones).
        score_only: write the added cells alone, without a header unless the input has one.
        normalize: write the texts in normal form (`languages.clean`).
        strict: a malformed row is an error.
        src, tgt: the languages that the sides should be in.
        k, margin, window, src_index, tgt_index: the margin (`Request`).
    """

    where: Columns = field(default_factory=Columns)
    columns: str | Sequence[str] | None = None
    score_only: bool = False
    normalize: bool = False
    strict: bool = False
    src: str = ""
    tgt: str = ""
    model: str = "default"
    k: int = 4
    margin: str = "ratio"
    window: int = WINDOW
    src_index: str | os.PathLike[str] | None = None
    tgt_index: str | os.PathLike[str] | None = None

    def request(self, batch_tokens: int | None) -> tuple[Request, list[str]]:
        """Return the columns to compute, and notes on options without effect; raise UsageError for bad choices."""
        if (self.src_index is None) != (self.tgt_index is None):
            raise UsageError("a margin needs both indexes: give --src-index and --tgt-index")
        names = column_names(self.columns, bool(self.src and self.tgt))
        notes = []
        k = self.k
        if (
            self.src_index is None
            and isinstance(k, int)
            and isinstance(self.window, int)
            and k > self.window >= 1
        ):
            k = self.window
            notes.append(
                f"-k {self.k}: at most {k:,} pairs are searched for neighbours (--window), so k is {k:,}"
            )
        request = Request(names, self.src, self.tgt, self.margin, k, self.window, None, batch_tokens)
        if self.src_index is not None and self.tgt_index is not None:
            if request.uses("neighbours"):
                request = replace(request, indexes=(self.src_index, self.tgt_index))
            else:
                notes.append("--src-index and --tgt-index change nothing: none of the columns has neighbours")
        return request.checked(), notes


def score(
    path: str | os.PathLike[str] = "-",
    output: str | os.PathLike[str] = "-",
    options: ScoreOptions | None = None,
    run: Run | None = None,
) -> Scored:
    """Add columns to a stream of pairs: one row out per row in, in order, a window of pairs at a time.

    The suffixes tell the formats. Columns without a name get one: src and tgt; score, src_line and tgt_line if the rows
    look like those of `mine`; else column_N. A column that the header has already is replaced, at the end. A malformed
    row keeps its bytes and gets empty scores.

    Raises:
        UsageError: choices that do not go together.
        BitextmineError: unreadable or unwritable files, unknown columns, or nearly all rows malformed.
    """
    options, run = options or ScoreOptions(), run or Run()
    asked = options.columns if options.columns is None else column_names(options.columns, False)
    # Before the first row is read, unless only that can tell the languages.
    early = None if "lang" in (asked or ()) and not options.src else options.request(run.batch_tokens)
    keep_apart(path, {"-o": output})
    format = check_pairs_output(output, only_added=options.score_only)
    table = open_table(path, replace(options.where, langs=(options.src, options.tgt)))
    if not options.src and (stated := _stated_languages(table)):
        early = replace(options, src=stated[0], tgt=stated[1]).request(run.batch_tokens)
    request, notes = early or options.request(run.batch_tokens)
    names = request.names
    if options.src and not request.uses("languages", "better_with_languages"):
        notes.append("--src and --tgt change nothing: none of the columns depends on the languages")
    langs = table.langs(options.src, options.tgt)
    format.check_languages(langs)
    notes += _replaced(table, () if options.score_only else names)
    if format is MOSES:
        notes.append(
            f"{output} holds texts alone: the columns are lost; name a .tsv, .jsonl or .parquet for them"
        )
    encoder, quality = None, ""
    if request.uses("encoder"):
        from bitextmine.encoder import load_encoder

        encoder = load_encoder(options.model, run.device_here)
        if "quality" in names:
            from bitextmine.scoring.columns.quality import Quality

            quality = Quality(encoder).digest  # before anything is written
    malformed = Malformed(table)
    first = True
    with contextlib.ExitStack() as stack:
        blocks = ((block, _texts(block, table)) for block in table.rows.blocks(options.window))
        if run.executor.distributed:
            workers = stack.enter_context(run.executor.open())
            model = None if encoder is None else options.model
            computed = _remotely(workers, request, model, run.executor.device(run.device), blocks)
        else:
            computed = _computed(request, encoder, blocks)
        header = options.where.header is not False and (not options.score_only or table.rows.header_line)
        outline = table.outline(
            names, header=header, only_added=options.score_only, floats=FLOATS, integers=INTEGERS, langs=langs
        )
        out = stack.enter_context(open_pairs(output, outline))
        bar = stack.enter_context(run.progress(None, "score", "rows"))
        for block, values in computed:
            if first:
                notes += _doubts(
                    path, request, encoder, _texts(block, table), dict(zip(names, values, strict=True))
                )
                first = False
            malformed.add(block)
            if options.strict and malformed.first:
                raise BitextmineError(f"{malformed.first}; without --strict its scores would stay empty")
            added = [Added(name, _spread(column, block)) for name, column in zip(names, values, strict=True)]
            sides = table.layout.src, table.layout.tgt
            out.write(NormalBlock(block, sides) if options.normalize else block, None, added)
            bar.update(len(block))
        malformed.finish()
    made = _signature(request, None if encoder is None else encoder.hash, quality)
    return Scored(malformed.rows, malformed.count, malformed.first, names, made, tuple(notes))


def good_rows(block: Block) -> NDArray[np.int64]:
    """Return the rows of a block that can be read."""
    bad = block.bad()
    return np.array([row for row in range(len(block)) if row not in bad], dtype=np.int64)


class NormalBlock:
    """The rows of a block with their texts in normal form; malformed rows stay as they are."""

    def __init__(self, block: Block, sides: tuple[int, int]) -> None:
        self._block, self._sides = block, sides
        self.start, self.width = block.start, block.width

    def __len__(self) -> int:
        return len(self._block)

    def bad(self) -> dict[int, str]:
        """Return the bad rows."""
        return self._block.bad()

    def texts(self, column: int, rows: SomeRows) -> list[str]:
        """Return cells as texts."""
        found = self._block.texts(column, rows)
        return list(map(clean, found)) if column in self._sides else found

    def numbers(self, column: int, rows: SomeRows) -> NDArray[np.float64]:
        """Return cells as numbers."""
        return self._block.numbers(column, rows)

    def lines(self, without: Collection[int] = ()) -> list[bytes]:
        """Return rows as lines."""
        lines = [line.split(b"\t") for line in self._block.lines(without)]
        good = good_rows(self._block).tolist()
        for side in self._sides:
            place = side - sum(at < side for at in without)
            for row, text in zip(good, self.texts(side, good), strict=True):
                end = "\r" if lines[row][place].endswith(b"\r") else ""
                lines[row][place] = (one_cell(text) + end).encode("utf-8", "replace")
        return list(map(b"\t".join, lines))

    def values(self, floats: Collection[int], integers: Collection[int]) -> list[list[Any]]:
        """Return rows as values."""
        rows, good = self._block.values(floats, integers), good_rows(self._block).tolist()
        for side in self._sides:
            for row, text in zip(good, self.texts(side, good), strict=True):
                if isinstance(rows[row][side], str):
                    rows[row][side] = text
        return rows


def _texts(block: Block, table: Table) -> Texts:
    rows, layout = good_rows(block), table.layout
    return block.texts(layout.src, rows), block.texts(layout.tgt, rows)


def _spread(values: Any, block: Block) -> Any:
    """Return values of the good rows of a block, with NaN or empty text for the others."""
    if len(values) == len(block):
        return values
    rows = good_rows(block)
    if isinstance(values, np.ndarray):
        out = np.full(len(block), np.nan)
        out[rows] = values
        return out
    cells = dict(zip(rows.tolist(), values, strict=True))
    return [cells.get(row, "") for row in range(len(block))]


def _computed(
    request: Request, encoder: Encoder | None, blocks: Iterator[tuple[Block, Texts]]
) -> Iterator[tuple[Block, list[Any]]]:
    """Yield each block with the values of its columns."""
    tools = request.tools(encoder)
    for block, texts in blocks:
        pairs = PairTexts(*texts, tools)
        yield block, [pairs.column(name) for name in request.names]


def _remotely(
    workers: Workers, request: Request, model: str | None, device: str, blocks: Iterator[tuple[Block, Texts]]
) -> Iterator[tuple[Block, list[Any]]]:
    """Yield the same, computed by workers. Every node must see indexes under the same path."""
    from bitextmine.distributed.encoding import send_model

    workers.share([Path(index).absolute().parent for index in request.indexes or ()])
    sent = None if model is None else send_model(workers, model)

    def tasks() -> Iterator[Task]:
        before: deque[Texts] = deque()  # those that a block is compared with
        for number, (block, texts) in enumerate(blocks):
            while before and sum(len(src) for src, _ in list(before)[1:]) >= request.window - len(texts[0]):
                before.popleft()
            args = request, sent, device, list(before) if request.looks_back else [], texts
            yield Task(f"{__name__}:columns_of", args, f"scoring block {number + 1}", key=block)
            before.append(texts)

    with workers.stage("score"):
        for task, values in workers.map(tasks(), ahead=workers.slots):
            yield task.key, values


def columns_of(
    kept: Kept, request: Request, model: SentModel | None, device: str, back: Sequence[Texts], texts: Texts
) -> list[Any]:
    """Compute the columns of some pairs, on a worker.

    The blocks before them (`back`) are encoded as they were there: the composition of a batch decides the last bits.
    """
    if kept.get("request") != request:
        from bitextmine.distributed.encoding import encoder_of

        encoder = None if model is None else encoder_of(kept, model, device)
        kept["tools"], kept["request"] = request.tools(encoder), request
    tools = kept["tools"]
    if request.looks_back:
        from bitextmine.scoring.columns.neighbourhood import WindowNeighbourhood

        window = tools.neighbourhood = WindowNeighbourhood(request.k, request.window)
        for pair in back:
            window.remember(*pair, PairTexts(*pair, tools).vectors)
    pairs = PairTexts(*texts, tools)
    return [pairs.column(name) for name in request.names]


def _signature(request: Request, model: str | None, quality: str) -> str:
    made: dict[str, Any] = {"columns": ",".join(request.names), "model": model}
    if quality:
        made["quality"] = quality
    if request.uses("neighbours"):
        neighbours = f"window{request.window}" if request.indexes is None else "index"
        made |= {"k": request.k, "margin": request.margin, "neighbours": neighbours}
    if request.src_lang:
        made |= {"src": request.src_lang, "tgt": request.tgt_lang}
    return signature(**made)


def _stated_languages(table: Table) -> tuple[str, str] | None:
    """Return the languages in the file itself, if they can be identified; the default columns then have lang."""
    langs = table.layout.src_lang, table.layout.tgt_lang
    if not all(langs) or not is_installed():
        return None
    codes = [identifier().code(lang) for lang in langs]
    return langs if None not in codes and codes[0] != codes[1] else None


def _replaced(table: Table, names: Sequence[str]) -> list[str]:
    """Return a note on columns that are there already; raise BitextmineError if a text to score is one of them."""
    if not table.names:
        return []
    there = [name for name in names if name in table.layout.names]
    for place in (table.layout.src, table.layout.tgt):
        if table.names[place] in there:
            raise BitextmineError(
                f"{display_name(table.path)}: column {place + 1}, a text, is called '{table.names[place]}' like "
                "one of the scores; rename it in the header, or leave that score out of --columns"
            )
    return [f"replaced, as the header has them already: {', '.join(there)}"] if there else []


def _doubts(
    path: Any, request: Request, encoder: Encoder | None, texts: Texts, columns: dict[str, Any]
) -> list[str]:
    """Return notes if the encoder does not know the text, or if texts or indexes are of other languages than stated."""
    notes = []
    if encoder is not None:
        from bitextmine.encoder.familiar import knows, sampled, warn_unfamiliar

        langs = request.src_lang, request.tgt_lang
        unknown = [
            warn_unfamiliar(encoder, f"{display_name(path)}: {side}", lang, sampled(lines, len(lines)))
            for side, lang, lines in zip(("source", "target"), langs, texts, strict=True)
        ]
        if any(unknown) and "quality" in columns:
            notes.append(
                "warning: quality rejects most good pairs of languages that the encoder does not know; state these "
                "(--src, --tgt), or filter with --preset cheap, which needs no encoder"
                if all(knows(encoder, lang) for lang in langs)
                else "warning: without the encoder, quality compares only lengths, numbers, copies and languages, and "
                "is at most 0.5: a wrong translation that looks right passes"
            )
    src, tgt = (side[:_SAMPLE] for side in texts)
    if not src:
        return notes
    if request.indexes is not None and encoder is not None and is_installed():
        notes += _swapped_indexes(request.indexes, encoder, src, tgt)
    if "lang" in columns and np.median(columns["lang"][:_SAMPLE]) < _LOW:
        notes += _other_languages(request, src, tgt)
    return notes


def _swapped_indexes(
    indexes: tuple[Any, Any], encoder: Encoder, src: Sequence[str], tgt: Sequence[str]
) -> list[str]:
    """Return a note if the texts look like the languages of the indexes the other way round."""
    from bitextmine.scoring.columns.neighbourhood import index_language

    one, other = (identifier().code(index_language(path, encoder)) for path in indexes)
    if not one or not other or one == other:
        return []
    shares = identifier().share(src, one, other), identifier().share(tgt, other, one)
    if max(map(np.median, shares)) >= _LOW:
        return []
    return [
        f"warning: --src-index is in '{one}' and --tgt-index in '{other}', but the pairs look like the reverse; "
        "exchange them"
    ]


def _other_languages(request: Request, src: Sequence[str], tgt: Sequence[str]) -> list[str]:
    """Return a note if the sides look swapped, or one for each side that looks like another language than stated."""
    other = np.minimum(identifier().share(src, request.tgt_lang), identifier().share(tgt, request.src_lang))
    share = float((other > _LOW).mean())
    if share > _LOW:
        return [
            f"warning: source and target look swapped: of the first {len(src):,} pairs {100 * share:.0f}% fit "
            f"--src {request.tgt_lang} --tgt {request.src_lang}; exchange these, or name the columns with --scol and "
            "--tcol"
        ]
    notes = []
    for option, lang, lines in (("--src", request.src_lang, src), ("--tgt", request.tgt_lang, tgt)):
        guesses = Counter(identifier().guess(lines))
        found, count = guesses.most_common(1)[0]
        if (
            len(lines) >= _ENOUGH
            and count > _LOW * len(lines)
            and guesses[identifier().code(lang) or lang] < _RARE * len(lines)
        ):
            notes.append(
                f"warning: {option} is {lang}, but {count:,} of the first {len(lines):,} texts look like '{found}'"
            )
    return notes
