"""Write alignments: link formats of aligners, and the formats of any file of sentence pairs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bitextmine.alignment.aligner import Alignment
from bitextmine.alignment.choices import LINK_FORMATS
from bitextmine.alignment.inputs import Task
from bitextmine.files.cells import DECIMALS, Added, one_cell
from bitextmine.files.formats.names import FORMATS
from bitextmine.files.formats.protocol import Outline
from bitextmine.files.formats.records import RecordBlock
from bitextmine.files.streams import open_output
from bitextmine.files.tables import open_pairs


@dataclass(frozen=True)
class AlignedDocument:
    """A document pair with its links, as output formats and the journal need it.

    Attributes:
        links: score, source lines, target lines (counted from 0 in their files), source texts, target texts.
        starts, ends: the first line of each document, and the line after its last one.
        doubtful: the documents hardly fit better than random sentences.
    """

    name: str
    links: list[tuple[float, list[int], list[int], list[str], list[str]]]
    starts: list[int]
    ends: list[int]
    mean_score: float
    doubtful: bool

    @classmethod
    def of(cls, task: Task, src: Sequence[str], tgt: Sequence[str], alignment: Alignment) -> AlignedDocument:
        """Attach the lines of two documents to their alignment."""
        starts = [task.src.first, task.tgt.first]
        ends = [starts[0] + len(src), starts[1] + len(tgt)]
        links = [
            (
                link.score,
                [i + starts[0] for i in link.src],
                [i + starts[1] for i in link.tgt],
                [src[i] for i in link.src],
                [tgt[i] for i in link.tgt],
            )
            for link in alignment
        ]
        return cls(task.name, links, starts, ends, alignment.mean_score, alignment.doubtful)

    def pairs(self) -> tuple[list[list[str]], list[float]]:
        """Return [source, target] and the score of each two-sided link."""
        both = [(score, [_joined(src), _joined(tgt)]) for score, _, _, src, tgt in self.links if src and tgt]
        return [texts for _, texts in both], [score for score, _ in both]


@contextlib.contextmanager
def open_links(
    output: str, format: str, *, ids: bool, named: bool, langs: tuple[str, str]
) -> Iterator[Callable[[AlignedDocument], object]]:
    """Yield a function that writes document pairs to a file, which is complete or missing at the end.

    With `ids`, tsv gets line numbers, and the names of documents if they are `named`.
    """
    if format in LINK_FORMATS:
        chunk = _LINK_CHUNKS[format]
        with open_output(output) as out:
            yield lambda document: out.write(chunk(document, ids, named).encode("utf-8", "replace"))
        return
    names = [*(["document"] if named else []), "src", "tgt"]
    outline = Outline(
        names, len(names) - 2, len(names) - 1, langs, added=("score",), header=True, floats=("score",)
    )
    with open_pairs(output, outline, FORMATS[format]) as writer:

        def write(document: AlignedDocument) -> None:
            texts, scores = document.pairs()
            rows = [[*([document.name] if named else []), *pair] for pair in texts]
            writer.write(RecordBlock(names, rows), None, [Added("score", np.array(scores, dtype=np.float64))])

        yield write


def _joined(texts: Sequence[str]) -> str:
    return " ".join(text.strip() for text in texts)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(str(i + 1) for i in numbers)


def _tsv(document: AlignedDocument, ids: bool, named: bool) -> str:
    out = []
    for score, src_lines, tgt_lines, src, tgt in document.links:
        name = [one_cell(document.name)] if ids and named else []
        lines = [_listed(src_lines), _listed(tgt_lines)] if ids else []
        texts = one_cell(_joined(src)), one_cell(_joined(tgt))
        out.append("\t".join([f"{score:.{DECIMALS}f}", *name, *lines, *texts]) + "\n")
    return "".join(out)


def _ladder(document: AlignedDocument, ids: bool, named: bool) -> str:
    """Return hunalign's ladder, with an empty line at the end of each document.

    A rung has a position in each document (sentences from 0) and the score of the link that follows; the last rung is
    the end of both.
    """
    rungs = []
    x, y = document.starts
    for score, src, tgt, *_ in document.links:
        x, y = src[0] if src else x, tgt[0] if tgt else y
        rungs.append(f"{x}\t{y}\t{score:.{DECIMALS}f}\n")
        x, y = src[-1] + 1 if src else x, tgt[-1] + 1 if tgt else y
    return "".join(rungs) + "{}\t{}\t{:.{}f}\n\n".format(*document.ends, 0, DECIMALS)


def _json(document: AlignedDocument, ids: bool, named: bool) -> str:
    content = {
        "document": document.name,
        "mean_score": round(document.mean_score, DECIMALS),
        "doubtful": document.doubtful,
        "links": [
            {
                "score": round(score, DECIMALS),
                "src_lines": [i + 1 for i in src_lines],
                "tgt_lines": [i + 1 for i in tgt_lines],
                "src": src,
                "tgt": tgt,
            }
            for score, src_lines, tgt_lines, src, tgt in document.links
        ],
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def _vecalign(document: AlignedDocument, ids: bool, named: bool) -> str:
    """Return the links as Vecalign and Bleualign write them: sentences from 0 and a cost, 1 - score (deletion: 0)."""
    lines = [
        f"{src}:{tgt}:{max(0.0, 1 - score) if src and tgt else 0:.6f}\n"
        for score, src, tgt, *_ in document.links
    ]
    return "".join(lines) + ("\n" if named else "")


_LINK_CHUNKS = {"tsv": _tsv, "ladder": _ladder, "json": _json, "vecalign": _vecalign}
