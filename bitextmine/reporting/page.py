"""The report as one HTML file: no script, no network, nothing beside it.

The template escapes every value in one place, `_shown`, so text of a file cannot become markup.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from importlib import resources

import jinja2
import numpy as np
from markupsafe import Markup, escape

from bitextmine.console import counted
from bitextmine.languages.codes import is_code
from bitextmine.reporting.charts import histogram_chart, length_chart, number, thresholds
from bitextmine.reporting.flags import FLAGS, LENGTH_FACTOR
from bitextmine.reporting.provenance import Provenance
from bitextmine.reporting.survey import SEED, Flagged, Survey
from bitextmine.signature import signature

# A text ends at whichever comes first; the second keeps the file small whatever is in the text.
_CELL_CHARACTERS, _CELL_BYTES = 240, 900
_LONGEST_VALUE = 2000  # characters of anything else

_JOINERS = "\u200c\u200d"  # part of the spelling of some scripts and emoji
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_PERCENTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def render(survey: Survey, origin: Provenance, options: Sequence[str] = ()) -> str:
    """Return the report as HTML, below 300 KB whatever is in the file.

    Args:
        survey: the content of the file.
        origin: its provenance.
        options: the options of the command that makes the page, to be shown.
    """
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "attribute": lambda text: Markup("".join(_characters(str(text)[:_LONGEST_VALUE], "{}"))),
        "beginning": _beginning,
        "count": lambda n: f"{n:,}",
        "counted": counted,
        "number": number,
        "share": lambda part, whole=1: _share(part, whole),
        "shares": _shares,
    }
    template = environment.from_string(
        resources.files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    )
    layout = survey.table.layout
    sides = (("src", layout.src_lang), ("tgt", layout.tgt_lang))
    langs = [origin.language(side) or (named if is_code(named) else "") for side, named in sides]
    name = "-" if origin.name == "<stdin>" else origin.name
    mined = origin.mine_command()
    return template.render(
        s=survey,
        origin=origin,
        langs=langs,
        chart=histogram_chart(survey.scores, survey.threshold) if survey.scores.total else None,
        thresholds=thresholds(survey.scores, survey.threshold) if survey.scores.total else [],
        lengths=length_chart(survey.lengths, survey.usual_ratio) if survey.rows else None,
        length_table=_length_table(survey) if survey.rows else [],
        length_factor=LENGTH_FACTOR,
        flags=[(flag, survey.flagged.get(flag.key, Flagged(0, None, []))) for flag in FLAGS],
        notes=_notes(survey, origin),
        lines=survey.malformed.rows + int(survey.table.rows.header_line),
        mark=signature(
            task="report", rows=survey.rows, threshold=survey.threshold, sample=len(survey.lengths), seed=SEED
        ),
        mined=mined,
        command=shlex.join(["bitextmine", "report", name, *options]),
    )


def _shown(value: object) -> Markup:
    """Escape a value, unless it is markup, and name the characters that are invisible or turn the direction."""
    if isinstance(value, Markup):
        return value
    text = str(value)
    cut = "" if len(text) <= _LONGEST_VALUE else "…"
    return Markup("".join(_characters(text[:_LONGEST_VALUE], "<i class=c>{}</i>")) + cut)


def _characters(text: str, named: str) -> Iterable[str]:
    for c in text:
        if c in "&<>\"'":
            yield str(escape(c))
        elif c in _JOINERS or c.isprintable():
            yield c
        elif unicodedata.category(c) in _HIDDEN:
            yield named.format(f"U+{ord(c):04X}")
        else:  # spaces of other widths
            yield c


def _beginning(text: str, length: int) -> Markup:
    """Return the beginning of a text whose full length, in characters, is given."""
    if not text.strip():
        return Markup("<i class=c>{}</i>").format("blank" if text else "empty")
    parts: list[str] = []
    size = 0
    for part in _characters(text[:_CELL_CHARACTERS], "<i class=c>{}</i>"):
        size += len(part.encode("utf-8", "replace"))
        if size > _CELL_BYTES:
            break
        parts.append(part)
    cut = f"… <small>({length:,} characters)</small>" if len(parts) < length else ""
    return Markup("".join(parts) + cut)


def _share(part: float, whole: float) -> str:
    if not whole:
        return "-"
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "< 0.1%"
    return f"{percent:.1f}%" if part == whole or percent < 99.95 else "> 99.9%"


def _shares(shares: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {_share(part, 1)}" for name, part in list(shares)[:4] if part >= 0.001)


def _length_table(survey: Survey) -> list[list[str]]:
    src, tgt = survey.lengths.T
    ratio = tgt / np.maximum(src, 1)
    columns = ((src, ",.0f"), (tgt, ",.0f"), (ratio, ".2f"))
    return [[f"{100 * q:g}", *(f"{np.quantile(c, q):{form}}" for c, form in columns)] for q in _PERCENTILES]


def _notes(survey: Survey, origin: Provenance) -> list[str]:
    """Return the things to know before reading on."""
    notes = []
    pairs, bad = origin.content.get("pairs"), survey.malformed
    if not survey.rows:
        notes.append(f"There are no pairs in this file{', as its manifest says' if pairs == 0 else ''}.")
    if isinstance(pairs, int) and pairs != survey.rows:
        said = counted(pairs, "pair") if abs(pairs) < 1e15 else "another number of pairs"
        notes.append(
            f"The manifest speaks of {said}, the file has {survey.rows:,}: it was changed after it was made."
        )
    if bad.count:
        notes.append(
            f"{counted(bad.count, 'row')} left out that cannot be read as pairs; the first: {bad.first}."
        )
    if survey.odd_scores:
        odd = ", ".join(
            f"{n:,} {kind} (the first in line {first:,})"
            for kind, (n, first) in sorted(survey.odd_scores.items())
        )
        total = sum(n for n, _ in survey.odd_scores.values())
        notes.append(
            f"{counted(total, 'pair')} without a usable score: {odd}. They count everywhere except for scores."
        )
    if survey.rows and survey.table.layout.score is None:
        notes.append("No column of scores: this report says nothing about scores.")
    if origin.problem:
        notes.append(origin.problem)
    return notes
