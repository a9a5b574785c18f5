"""What the texts are like: their lengths, scripts and languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitextmine.console import counted
from bitextmine.reporting.charts import length_grid, length_legend, length_svg
from bitextmine.reporting.language import LanguageSurvey
from bitextmine.reporting.markup import Html, html, share, table
from bitextmine.reporting.reasons import LENGTH_FACTOR
from bitextmine.reporting.view import View

__all__ = ["language_section", "length_section"]

_PERCENTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def length_section(view: View) -> Html:
    """Lengths of source and target against each other; empty without pairs."""
    s = view.survey
    if not len(s.lengths):
        return Html()
    grid = length_grid(s.lengths)
    of = (
        f"a random sample of {s.sampled:,} of the {s.rows:,} pairs"
        if s.sampled < s.rows
        else f"all {s.rows:,} pairs"
        if s.rows > 1
        else "the one pair"
    )
    src, tgt = (np.quantile(s.lengths[:, i], 0.5) for i in (0, 1))
    words = (
        f"Length of target against length of source for {of}, in characters; medians {src:,.0f} and {tgt:,.0f}; "
        f"targets are usually {s.usual_ratio:.2f} times as long"
    )
    beyond = f" {counted(grid.beyond, 'pair')} longer than the axes." if grid.beyond else ""
    ratio = s.lengths[:, 1] / np.maximum(s.lengths[:, 0], 1)
    rows = [
        [
            f"{100 * q:g}",
            f"{np.quantile(s.lengths[:, 0], q):,.0f}",
            f"{np.quantile(s.lengths[:, 1], q):,.0f}",
            f"{np.quantile(ratio, q):.2f}",
        ]
        for q in _PERCENTILES
    ]
    return html(
        "<section><h2>Lengths</h2><figure><figcaption>Characters of the target (up) against characters of the "
        "source (right), {}. Full line: the usual ratio; dashed: {} times longer or shorter than that.{}</figcaption>"
        "{}{}<details><summary>Lengths as a table</summary>{}</details></figure></section>",
        of,
        f"{LENGTH_FACTOR:g}",
        beyond,
        length_svg(grid, s.usual_ratio, words),
        length_legend(grid),
        table(
            "Percentiles of the lengths, in characters, and of their ratio",
            ["Percentile", "Source", "Target", "Target / source"],
            rows,
            kind="compact",
        ),
    )


def language_section(view: View) -> Html:
    """Scripts, and languages as guessed; empty without pairs."""
    found = view.survey.languages
    if found is None:
        return Html()
    guessed = found[0].guesses is not None
    rows = []
    for side, stated, survey in zip(("Source", "Target"), (view.src, view.tgt), found, strict=True):
        row = [side, stated or "not told", _shares(survey.scripts)]
        if guessed:
            row.append(_shares(survey.guesses or ()) or "too few texts")
        rows.append(row)
    header = ["Side", "Stated", "Scripts, by letters", *(["Guessed, by texts"] if guessed else [])]
    how = (
        html(
            "Guessed by py3langid on {} of a random sample; it is often wrong on short texts.",
            _guessed(found),
        )
        if guessed
        else html(
            "Languages were not guessed: no language identifier is installed "
            "(<code>pip install 'bitextmine[languages]'</code>)."
        )
    )
    return html(
        "<section><h2>Languages</h2>{}<p>{}</p></section>",
        table("What the texts are written in", header, rows, kind="words"),
        how,
    )


def _shares(shares: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {share(part, 1)}" for name, part in shares[:4] if part >= 0.001)


def _guessed(surveys: tuple[LanguageSurvey, LanguageSurvey]) -> str:
    return f"{counted(surveys[0].texts, 'source')} and {counted(surveys[1].texts, 'target')}"
