"""Alignments as text: the forms of `align --format`. Each makes a head, a chunk per document, and a tail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bitextmine.alignment.aligner import Alignment, Link
from bitextmine.files.cells import one_cell
from bitextmine.files.formats.jsonl import translation_keys
from bitextmine.files.formats.records import TRANSLATION
from bitextmine.files.formats.tmx import TMX_TAIL, tmx_head, tmx_unit

__all__ = ["Document", "Form", "make_form"]

DECIMALS = 4


@dataclass(frozen=True)
class Document:
    """Two documents that belong together: their lines, and the number (from 0) of the first ones in their files."""

    name: str
    src: Sequence[str]
    tgt: Sequence[str]
    src_first: int = 0
    tgt_first: int = 0


@dataclass(frozen=True)
class Form:
    """How alignments are written; chunk(document, alignment) is the text of one document."""

    chunk: Callable[[Document, Alignment], str]
    head: str = ""
    tail: str = ""


def make_form(
    form: str, *, ids: bool = False, named: bool = False, src_lang: str = "", tgt_lang: str = ""
) -> Form:
    """One of `forms.FORMATS`. ids: tsv gets line numbers, named: and the document's name, where there are several;
    src_lang, tgt_lang: codes for tmx and jsonl."""
    if form == "tmx":
        return Form(
            lambda document, alignment: _tmx(document, alignment, src_lang, tgt_lang, named),
            tmx_head(src_lang),
            TMX_TAIL,
        )
    if form == "jsonl":
        return Form(lambda document, alignment: _jsonl(document, alignment, src_lang, tgt_lang, named))
    if form == "vecalign" and named:  # numbers begin anew in each document
        return Form(lambda document, alignment: _vecalign(document, alignment) + "\n")
    return Form(_tsv(ids, named) if form == "tsv" else _PLAIN[form])


def _tsv(ids: bool, named: bool) -> Callable[[Document, Alignment], str]:
    def chunk(document: Document, alignment: Alignment) -> str:
        out = []
        for link in alignment:
            cells = [f"{link.score:.{DECIMALS}f}"]
            if ids and named:
                cells.append(one_cell(document.name))
            if ids:
                cells.append(",".join(str(i + document.src_first + 1) for i in link.src))
                cells.append(",".join(str(i + document.tgt_first + 1) for i in link.tgt))
            cells += map(one_cell, _sides(document, link))
            out.append("\t".join(cells) + "\n")
        return "".join(out)

    return chunk


def _ladder(document: Document, alignment: Alignment) -> str:
    """As hunalign's ladder: a rung has a position in each document (sentences from 0) and the score of what follows;
    the last rung is the end of both. Documents end with an empty line."""
    rungs = []
    x, y = document.src_first, document.tgt_first
    for link in alignment:
        x = link.src[0] + document.src_first if link.src else x
        y = link.tgt[0] + document.tgt_first if link.tgt else y
        rungs.append(f"{x}\t{y}\t{link.score:.{DECIMALS}f}\n")
        x = link.src[-1] + document.src_first + 1 if link.src else x
        y = link.tgt[-1] + document.tgt_first + 1 if link.tgt else y
    x, y = document.src_first + len(document.src), document.tgt_first + len(document.tgt)
    return "".join(rungs) + f"{x}\t{y}\t{0:.{DECIMALS}f}\n\n"


def _json(document: Document, alignment: Alignment) -> str:
    content = {
        "document": document.name,
        "mean_score": round(alignment.mean_score, DECIMALS),
        "doubtful": alignment.doubtful,
        "links": [
            {
                "score": round(link.score, DECIMALS),
                "src_lines": [i + document.src_first + 1 for i in link.src],
                "tgt_lines": [i + document.tgt_first + 1 for i in link.tgt],
                "src": [document.src[i] for i in link.src],
                "tgt": [document.tgt[i] for i in link.tgt],
            }
            for link in alignment
        ],
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def _vecalign(document: Document, alignment: Alignment) -> str:
    """As Vecalign and Bleualign write it, sentences from 0, with a cost: 1 - score, or 0 for what is left out."""
    out = []
    for link in alignment:
        src, tgt = (
            [i + first for i in lines]
            for lines, first in ((link.src, document.src_first), (link.tgt, document.tgt_first))
        )
        out.append(f"{src}:{tgt}:{max(0.0, 1 - link.score) if src and tgt else 0:.6f}\n")
    return "".join(out)


def _sides(document: Document, link: Link) -> tuple[str, str]:
    """The texts of a link, each on one line."""
    src, tgt = (
        " ".join(lines[i].strip() for i in numbers)
        for lines, numbers in ((document.src, link.src), (document.tgt, link.tgt))
    )
    return src, tgt


def _jsonl(document: Document, alignment: Alignment, src_lang: str, tgt_lang: str, named: bool) -> str:
    keys = translation_keys((src_lang, tgt_lang))
    out = []
    for link in alignment:
        if link.src and link.tgt:
            content: dict[str, object] = {TRANSLATION: dict(zip(keys, _sides(document, link), strict=True))}
            if named:
                content["document"] = document.name
            content["score"] = round(link.score, DECIMALS)
            out.append(json.dumps(content, ensure_ascii=False) + "\n")
    return "".join(out)


def _tmx(document: Document, alignment: Alignment, src_lang: str, tgt_lang: str, named: bool) -> str:
    name = [("document", document.name)] if named else []
    out = []
    for link in alignment:
        if not link.src or not link.tgt:
            continue
        sides = zip((src_lang, tgt_lang), _sides(document, link), strict=True)
        out.append(tmx_unit([*name, ("score", f"{link.score:.{DECIMALS}f}")], sides))
    return "".join(out)


_PLAIN = {"ladder": _ladder, "json": _json, "vecalign": _vecalign}
