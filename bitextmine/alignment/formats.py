"""Write alignments: link formats of aligners, and the formats of any file of sentence pairs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bitextmine.alignment.aligner import probability
from bitextmine.alignment.inputs import DocumentPair
from bitextmine.alignment.options import LINK_FORMATS, choose_format
from bitextmine.console import counted
from bitextmine.files.formats.blocks import DECIMALS, Added, Block, Outline, one_cell
from bitextmine.files.formats.names import FORMATS
from bitextmine.files.formats.table import open_pairs
from bitextmine.files.output import Destination, keep_apart
from bitextmine.files.source import Source
from bitextmine.languages.clean import clean
from bitextmine.languages.codes import join_sentences

if TYPE_CHECKING:
    import pandas


# The mean probability of unrelated documents' links is far below.
_UNRELATED = 0.3


class LinkedText(NamedTuple):
    """A link: its score, the numbers of its lines (from 1) and their texts; one side of a line left out is empty."""

    score: float
    src_lines: list[int]
    tgt_lines: list[int]
    src_texts: list[str]
    tgt_texts: list[str]

    @property
    def src(self) -> str:
        """Return the source sentences, joined by spaces."""
        return _joined(self.src_texts)

    @property
    def tgt(self) -> str:
        """Return the target sentences, joined by spaces."""
        return _joined(self.tgt_texts)


@dataclass(frozen=True)
class AlignedDocument:
    """Two documents with their links, in order: take its ``len()``, iterate over it (`LinkedText`), ``write`` it.

    Attributes:
        name: the name of the document.
        links: every line that is not blank is in one of them. Scores are log odds that the sides are translations of
            each other, as those of `mine`; a line left out has `LOWEST`.
        langs: their languages, "" if unknown.
        signature: how it was made.
        origins: of the lines of both sides; empty if they were not asked for.
        inputs: the files of the documents, which `write` does not replace.
    """

    name: str
    links: list[LinkedText]
    langs: tuple[str, str] = ("", "")
    signature: str = ""
    origins: tuple[Sequence[str], Sequence[str]] = ((), ())
    inputs: tuple[Source, ...] = ()

    @classmethod
    def of(cls, pair: DocumentPair, links: Iterable[Sequence[Any]]) -> AlignedDocument:
        """Attach the lines of two documents to links, each a `Link` or a list of its parts."""
        name, src, tgt = pair
        linked = []
        for x, y, score in links:
            texts = [src.lines[i] for i in x], [tgt.lines[j] for j in y]
            linked.append(LinkedText(score, [i + 1 for i in x], [j + 1 for j in y], *texts))
        return cls(name, linked, origins=(src.origins, tgt.origins))

    @property
    def mean_score(self) -> float:
        """Return the mean probability of the sentences; one that is left out counts 0."""
        sizes = [len(link.src_lines) + len(link.tgt_lines) for link in self]
        likely = sum(n * probability(link.score) for n, link in zip(sizes, self, strict=True))
        return likely / max(1, sum(sizes))

    @property
    def doubtful(self) -> bool:
        """Return True if the documents hardly look like translations of each other."""
        return self.mean_score < _UNRELATED

    def __len__(self) -> int:
        return len(self.links)

    def __iter__(self) -> Iterator[LinkedText]:
        return iter(self.links)

    def __getitem__(self, index: int) -> LinkedText:
        return self.links[index]

    def __repr__(self) -> str:
        return f"<AlignedDocument: {counted(len(self), 'link')}, {self.signature}>"

    def places(self, link: LinkedText) -> list[str]:
        """Return the origins of both sides of a link: of the first sentence, and of the last in its document."""
        cells = []
        for lines, origins in zip((link.src_lines, link.tgt_lines), self.origins, strict=True):
            first, last = (origins[lines[i] - 1] if lines else "" for i in (0, -1))
            name, _, number = last.rpartition(" ")
            several = first != last and first.rpartition(" ")[0] == name
            cells.append(one_cell(f"{first}-{number}" if several else first))
        return cells

    def to_frame(self) -> pandas.DataFrame:
        """Return the links as a pandas frame: score, src_lines and tgt_lines (tuples, from 1), src, tgt."""
        import pandas

        rows = [
            (link.score, tuple(link.src_lines), tuple(link.tgt_lines), link.src, link.tgt) for link in self
        ]
        return pandas.DataFrame(rows, columns=["score", "src_lines", "tgt_lines", "src", "tgt"])

    def write(
        self, output: str | os.PathLike[str] = "-", ids: bool = False, format: str | None = None
    ) -> None:
        """Write the links to a file, complete or not at all.

        Args:
            output: the file, or ``-`` for standard output.
            ids: add line numbers (tsv alone).
            format: a name in `options.FORMATS` (default: by the suffix, else tsv).

        Raises:
            UsageError: `format` does not fit the suffix; the file is one of the documents.
            BitextmineError: the file cannot be written.
        """
        destination = Destination.of(output)
        for source in self.inputs:
            keep_apart(source, {"output": destination})
        format = choose_format(format, destination)
        if format in FORMATS:
            FORMATS[format].check_languages(self.langs, "src_lang and tgt_lang")
        with open_links(destination, format, Content(ids), self.langs) as write:
            write(self)


@dataclass(frozen=True)
class Content:
    """The cells to write: line numbers in tsv, the names of documents if they have some, origins; texts as `clean`."""

    ids: bool = False
    named: bool = False
    origin: bool = False
    normalize: bool = False

    def texts(self, document: AlignedDocument, link: LinkedText) -> list[str]:
        """Return the texts of a link as they are written, and their origins if wanted."""
        texts = [clean(text) if self.normalize else text for text in (link.src, link.tgt)]
        return [*texts, *(document.places(link) if self.origin else [])]


@contextlib.contextmanager
def open_links(
    output: Destination, format: str, content: Content, langs: tuple[str, str]
) -> Iterator[Callable[[AlignedDocument], object]]:
    """Yield a function that writes document pairs to a file, which is complete or missing at the end."""
    if format in LINK_FORMATS:
        chunk = _LINK_CHUNKS[format]
        with output.open() as out:
            yield lambda document: out.write(chunk(document, content).encode("utf-8", "replace"))
        return
    first = ["document"] if content.named else []
    names = [*first, "src", "tgt", *(["src_origin", "tgt_origin"] if content.origin else [])]
    width = len(first)
    outline = Outline(names, width, width + 1, langs, added=("score",), header=True, floats=("score",))
    with open_pairs(output, outline, FORMATS[format]) as writer:

        def write(document: AlignedDocument) -> None:
            pairs = [link for link in document if link.src_lines and link.tgt_lines]
            name = [document.name] if content.named else []
            rows = [[*name, *content.texts(document, pair)] for pair in pairs]
            scores = np.array([pair.score for pair in pairs], dtype=np.float64)
            writer.write(Block(names, rows), None, [Added("score", scores)])

        yield write


def _joined(texts: Sequence[str]) -> str:
    return join_sentences(text.strip() for text in texts)


def _tsv(document: AlignedDocument, content: Content) -> str:
    out = []
    name = [document.name] if content.ids and content.named else []
    for link in document:
        numbers = (link.src_lines, link.tgt_lines) if content.ids else ()
        lines = [",".join(map(str, side)) for side in numbers]
        cells = [f"{link.score:.{DECIMALS}f}", *name, *lines, *content.texts(document, link)]
        out.append("\t".join(map(one_cell, cells)) + "\n")
    return "".join(out)


def _vecalign(document: AlignedDocument, content: Content) -> str:
    """Return the links as Vecalign and Bleualign write them: sentences from 0 and a cost.

    The cost is the improbability of a link, and 0 for a sentence left out.
    """
    lines = [
        f"{[i - 1 for i in src]}:{[j - 1 for j in tgt]}:{1 - probability(score) if src and tgt else 0:.6f}\n"
        for score, src, tgt, *_ in document
    ]
    return "".join(lines) + ("\n" if content.named else "")


_LINK_CHUNKS = {"tsv": _tsv, "vecalign": _vecalign}
