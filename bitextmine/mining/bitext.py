"""Mined sentence pairs: their lines and scores, and the file they are written to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import aligned, counted
from bitextmine.display import Shown
from bitextmine.embeddings.store import embedding_paths
from bitextmine.errors import UsageError
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.blocks import Block, Outline, one_cell
from bitextmine.files.formats.names import output_format
from bitextmine.files.formats.table import check_pairs_output, open_pairs
from bitextmine.files.json_toml import json_bytes
from bitextmine.files.output import Destination, Made, check_ours
from bitextmine.files.source import Location
from bitextmine.languages.clean import clean
from bitextmine.search.checkpoint import remove_checkpoint

if TYPE_CHECKING:
    import pandas

    from bitextmine.mining.threshold import Estimate

_DECIMALS = 6
_BLOCK = 1 << 13


class MinedPair(NamedTuple):
    """A pair: its score, both line numbers (from 1), and both texts as they stand in the corpora."""

    score: float
    src_line: int
    tgt_line: int
    src: str
    tgt: str


@dataclass(frozen=True)
class Bitext(Shown):
    """The result of mining, best pair first: take its `len()`, iterate over it (`MinedPair`), `write` it.

    Attributes:
        src_index, tgt_index: int64 (p,), lines counted from 0, as NumPy counts (pairs, frame and files count from 1).
        score: float64 (p,), descending; equal scores are ordered by source line, then target line.
        details: the numbers of the run, ready for JSON.
        checkpoint: where the search may have left its answer for an interrupted run to resume.
        gold: the file of known pairs that the threshold was tuned on.
        estimate: the probabilities of all candidates, if they were estimated.
    """

    src_index: NDArray[np.int64]
    tgt_index: NDArray[np.int64]
    score: NDArray[np.float64]
    src: Corpus
    tgt: Corpus
    signature: str
    details: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checkpoint: Path | None = None
    gold: str | os.PathLike[str] | None = None
    estimate: Estimate | None = None

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return f"<Bitext: {counted(len(self), 'pair')}, {self.signature}>"

    @property
    def threshold(self) -> float | None:
        """Return the lowest score kept; None without a threshold."""
        value = self.details.get("threshold", {}).get("value")
        return None if value is None else float(value)

    def __iter__(self) -> Iterator[MinedPair]:
        return self._pairs(slice(None))

    def _pairs(self, part: slice) -> Iterator[MinedPair]:
        score, src, tgt = self.score[part], self.src_index[part], self.tgt_index[part]
        columns = (score.tolist(), (src + 1).tolist(), (tgt + 1).tolist())
        return map(MinedPair, *columns, self.src.take(src), self.tgt.take(tgt))

    def write(
        self,
        output: str | os.PathLike[str] = "-",
        ids: bool = False,
        *,
        origin: bool = False,
        normalize: bool = False,
        force: bool = False,
    ) -> None:
        """Write the pairs to a file, complete or not at all, with `to_dict` in OUTPUT.json beside it.

        Args:
            output: a file, or ``-`` for stdout. The suffix tells the format (`formats.names`); no header in TSV.
                The columns are score, src and tgt.
            ids: add the columns src_line and tgt_line after the score.
            origin: add src_origin and tgt_origin at the end: URL or document, paragraph and sentence, as `split` wrote
                them.
            normalize: write the sentences in normal form (`languages.clean`).
            force: write over an OUTPUT.json that describes something else.

        Raises:
            UsageError: the output would replace an input, or its suffix is unknown.
            BitextmineError: the file cannot be written.
        """
        langs = self.src.lang, self.tgt.lang
        destination = check_output(output, langs, inputs_of((self.src, self.tgt), self.gold), force=force)
        binary = output_format(destination).binary
        numbers = ("src_line", "tgt_line") if ids else ()
        sides = ((self.src, self.src_index), (self.tgt, self.tgt_index)) if origin else ()
        origins = [text.places(rows) for text, rows in sides]
        names = ("score", *numbers, "src", "tgt", *(("src_origin", "tgt_origin") if origin else ()))
        told = clean if normalize else str
        places = names.index("src"), names.index("tgt")
        outline = Outline(names, *places, langs=langs, floats=("score",), integers=("src_line", "tgt_line"))
        with open_pairs(destination, outline) as out:
            for start in range(0, len(self), _BLOCK):
                rows = [
                    [
                        pair.score if binary else round(pair.score, _DECIMALS),
                        *((pair.src_line, pair.tgt_line) if ids else ()),
                        one_cell(told(pair.src)),
                        one_cell(told(pair.tgt)),
                        *(next(origin) for origin in origins),
                    ]
                    for pair in self._pairs(slice(start, start + _BLOCK))
                ]
                out.write(Block(names, rows, start + 1), None, ())
        if not destination.is_stream:
            with _manifest(destination).open() as file:
                file.write(json_bytes(self.to_dict(), indent=2, sort_keys=False, allow_nan=True))

    def discard_checkpoint(self) -> None:
        """Remove the checkpoint of the search, once this result is safe."""
        if self.checkpoint is not None:
            with contextlib.suppress(OSError):  # if it cannot go, the next run looks into it, and removes it
                remove_checkpoint(self.checkpoint)

    def to_frame(self) -> pandas.DataFrame:
        """Return the pairs as a pandas frame: score, src_line and tgt_line (from 1), src, tgt."""
        import pandas

        return pandas.DataFrame(list(self), columns=list(MinedPair._fields))

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON beside the output."""
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
        """Return a summary for a person: pairs by score, notes, signature."""
        header = {
            "threshold": ("threshold", "{:g}"),
            "pairs": ("pairs", "{:,}"),
            "precision": ("est. precision", "{:.1%}"),
            "recall": ("est. recall", "{:.1%}"),
        }
        counts = self.details.get("counts", [])
        columns = [key for key in header if counts and key in counts[0]]
        rows = [[header[key][1].format(row[key]) for key in columns] for row in counts]
        table = [aligned([header[key][0] for key in columns], rows)] if rows else []
        return "\n".join([*table, counted(len(self), "pair"), *self.notes, self.signature])


def inputs_of(texts: Iterable[Corpus], gold: str | os.PathLike[str] | None = None) -> list[Location]:
    """Return the files that pairs are mined from: corpora, their embeddings, and gold."""
    corpora = [text.source for text in texts if text.source is not None]
    embeddings = [Location.of(part) for corpus in corpora for part in embedding_paths(corpus)]
    return [*corpora, *embeddings, *([] if gold is None else [Location.of(gold)])]


def _manifest(output: Destination) -> Destination:
    """Return the JSON beside an output; that of two files, m.{lang}, is m.json."""
    return Destination(f"{output.text.replace('.{lang}', '')}.json")


def check_output(
    output: str | os.PathLike[str], langs: tuple[str, str], inputs: Iterable[Location], *, force: bool = False
) -> Destination:
    """Return the output of pairs in two languages; raise an error, before the work, if it cannot be written.

    Raises:
        UsageError: its suffix is unknown, it (or the JSON beside it) would replace an input, or its format takes only
            languages that are known.
        BitextmineError: its folder cannot be written to, pyarrow is missing for Parquet, or, without `force`, the JSON
            beside it describes something else.
    """
    if not isinstance(output, (str, os.PathLike)):
        raise UsageError(f"output: expected the name of a file, found {output!r}")
    output = Destination.of(output)
    if output.text != "-":
        beside = _manifest(output)
        kept = {file.identity: file for file in inputs}
        for made in (*(Destination(output.text.replace("{lang}", lang)) for lang in langs), beside):
            if (file := kept.get(made.identity)) is not None:
                raise UsageError(
                    f"output {output} (-o) would replace {file}, which the pairs are mined from; name another file"
                )
        check_pairs_output(output)
        if not output.is_stream:
            beside.check()
            if not force:
                check_ours(beside.path, Made.PAIRS, "name another output (-o)")
    output_format(output).check_languages(langs, "the names of the corpora, or --src and --tgt")
    return output
