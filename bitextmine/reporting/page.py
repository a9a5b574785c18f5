"""The report as one HTML file: no script, no network, nothing beside it.

The template escapes every value in one place, `_shown`, so text of a file cannot become markup.
"""

import math
import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Annotated, Any, Literal

import jinja2
import msgspec
import numpy as np
from markupsafe import Markup, escape

from bitextmine.arguments import a_path
from bitextmine.console import counted, nice_step
from bitextmine.errors import BitextmineError
from bitextmine.files.formats.layout import Columns
from bitextmine.files.json_toml import read_json
from bitextmine.files.output import Destination, keep_apart
from bitextmine.files.source import Source
from bitextmine.files.storage import to_path
from bitextmine.languages.codes import is_code
from bitextmine.mining.options import parse_threshold
from bitextmine.reporting import survey as limits
from bitextmine.reporting.survey import SEED, Scores, Survey, survey
from bitextmine.signature import parse_signature, signature

# A text ends at whichever comes first; the second keeps the file small whatever is in the text.
_CELL_CHARACTERS, _CELL_BYTES = 240, 900
_LONGEST_VALUE = 2000  # characters of anything else
MOST = 50  # notes and parts of a signature that a page shows

_JOINERS = "\u200c\u200d"  # part of the spelling of some scripts and emoji
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def write_report(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    threshold: str | float | None = "auto",
    errors: str = "strict",
) -> int:
    """Write an HTML page about a file of pairs and return the number of pairs.

    The file is read once. A file without a pair gives a page that says so.

    Args:
        path: the pairs, in any format that the suffix tells; ``-`` is stdin.
        output: the page; ``-`` is stdout.
        columns: the columns, for files that ``mine`` did not write.
        threshold: a number, ``none``, or ``auto`` for the one in the manifest.
        errors: invalid UTF-8: ``strict`` raises, ``replace`` puts U+FFFD.

    Raises:
        UsageError: the page would replace the pairs, or an argument names no file.
        BitextmineError: the file cannot be read, or its columns cannot be told.
    """
    path = a_path("report", path)
    source = path if isinstance(path, Source) else Source(os.fspath(path), errors)
    destination = Destination.of(a_path("output", output))
    keep_apart(source, {"-o": destination})
    destination.check()
    rule = parse_threshold(threshold)
    origin = load_provenance(source)
    cut = rule if isinstance(rule, float) else origin.threshold if rule == "auto" else None
    surveyed = survey(source, columns=columns, threshold=cut)
    if isinstance(rule, float):
        origin.threshold_by = "given"
    with destination.open() as out:
        out.write(render(surveyed, origin).encode())
    return surveyed.rows


class _Cut(msgspec.Struct):
    value: float | None = None


class _Manifest(msgspec.Struct):
    kind: Literal["bitext"]
    signature: str
    pairs: Annotated[int, msgspec.Meta(ge=0)] | None = None
    threshold: _Cut | None = None
    notes: list[str] = []  # msgspec copies it


@dataclass
class Provenance:
    """The origin of a file of pairs: the manifest beside it.

    Attributes:
        pairs: how many the manifest states; None if it does not.
        parts: of its signature.
        threshold: the score where mining cut the file; None: not cut, or not known.
        threshold_by: the rule that chose it.
        problem: the reason why a manifest was not used.
    """

    name: str
    manifest: str = ""
    pairs: int | None = None
    signature: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    threshold: float | None = None
    threshold_by: str = "from the manifest"
    notes: Sequence[str] = ()
    problem: str = ""


def load_provenance(source: Source) -> Provenance:
    """Read the manifest FILE.json beside a mined file, if there is one that describes pairs."""
    name = str(source) if source.is_standard else source.path.name
    beside = to_path(f"{source.text}.json")
    if source.is_standard or not beside.is_file():
        return Provenance(name)
    try:
        content = msgspec.convert(read_json(beside), _Manifest)
        parts = parse_signature(content.signature)
    except (BitextmineError, msgspec.ValidationError) as error:
        return Provenance(name, problem=f"The manifest beside the file was not used: {error}.")
    origin = Provenance(
        name, beside.name, content.pairs, content.signature, parts, notes=content.notes[:MOST]
    )
    if content.threshold is not None:
        origin.threshold = content.threshold.value
    if rule := parts.get("threshold_by"):
        origin.threshold_by = f"set by mining ({rule})"
    return origin


def render(survey: Survey, origin: Provenance) -> str:
    """Return the report as HTML, below 300 KB whatever is in the file."""
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
        "share": _share,
    }
    template = environment.from_string(
        resources.files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    )
    layout = survey.table.layout
    sides = (("src", layout.src_lang), ("tgt", layout.tgt_lang))
    langs = [next(filter(is_code, (origin.parts.get(side, ""), named)), "") for side, named in sides]
    return template.render(
        s=survey,
        origin=origin,
        langs=langs,
        chart=histogram_chart(survey.scores, survey.threshold) if len(survey.scores.values) else None,
        limits=limits,
        parts=list(origin.parts.items())[:MOST],
        lines=survey.malformed.rows + int(survey.table.header_line),
        mark=signature(
            task="report",
            rows=survey.rows,
            threshold=survey.threshold,
            sample=len(survey.sample.items),
            seed=SEED,
        ),
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


# Steps are round numbers, so there are between two fifths of these and all of them.
_BARS = 80
_SCALE = 1e6  # scores are printed with six decimals


def number(value: float) -> str:
    """Format a score: four decimals, more or an exponent where those would say nothing."""
    if value != 0 and (abs(value) < 0.001 or abs(value) >= 1e6):
        return f"{value:.4g}"
    return f"{value:.4f}"


def histogram_chart(scores: Scores, threshold: float | None) -> dict[str, Any]:
    """Return 32 to 80 bars over nearly all scores (at least one); the threshold, if it is near, is an edge."""
    low, high = scores.quantile(0.001), scores.quantile(0.999)
    lowest, highest = scores.quantile(0), scores.quantile(1)
    if highest - lowest <= 1.5 * (high - low):
        low, high = lowest, highest
    width = high - low
    if width <= 0:
        width = max(abs(low) * 0.1, _BARS / _SCALE)
        low, high = low - width / 2, high + width / 2
    cut = threshold if threshold is not None and low - width / 2 <= threshold <= high + width / 2 else None
    if cut is not None:
        low, high = min(low, cut), max(high, cut)
    step = nice_step(max((high - low) / _BARS, 1 / _SCALE))
    start = cut if cut is not None else 0.0
    first, last = math.floor((low - start) / step + 1e-9), math.floor((high - start) / step + 1e-9) + 1
    edges = np.array([round(start + i * step, 9) for i in range(first, last + 1)])
    counts = np.histogram(scores.values, edges)[0]
    below = len(scores.values) - scores.at_least(float(edges[0]))
    above = max(len(scores.values) - int(counts.sum()) - below, 0)
    top = max(int(counts.max()), 1)
    unit = 1000 / len(counts)
    bars = [
        {
            "below": cut is not None and a + b < 2 * cut,
            "x": f"{(i + 0.06) * unit:.2f}",
            "width": f"{0.88 * unit:.2f}",
            "height": max(400 * n / top, 2),
            "range": f"{number(a)} to {number(b)}",
            "count": n,
        }
        for i, (a, b, n) in enumerate(
            zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
        )
        if n
    ]
    low, high = float(edges[0]), float(edges[-1])
    return {
        "bars": bars,
        "cut": cut,
        "cut_place": 0.0 if cut is None else (cut - low) / (high - low),
        "outside": [f"{n:,} {word}" for n, word in ((below, "below"), (above, "above")) if n],
        "x": _labels(low, high, 10),
        "y": _labels(0, top, 4, least=1),
    }


def _labels(low: float, high: float, about: int, least: float = 0) -> list[dict[str, Any]]:
    """Return the labels of an axis: place in percent, text, and `minor` for those that a narrow page leaves out."""
    step = max(nice_step((high - low) / about), least)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [i * step for i in range(first, last + 1)]
    return [
        {
            "place": f"{100 * (v - low) / (high - low):.2f}".rstrip("0").rstrip("."),
            "text": f"{v:,.{decimals}f}" if decimals <= 6 and abs(v) < 1e9 else f"{v:.3g}",
            "minor": bool(i % 2),
        }
        for i, v in enumerate(values)
    ]
