"""The top of a page: the figures that say most, and what a person must know before reading on."""

from __future__ import annotations

from bitextmine.console import counted
from bitextmine.reporting.charts import number
from bitextmine.reporting.markup import Html, html, join, share
from bitextmine.reporting.view import View

__all__ = ["head"]


def head(view: View) -> Html:
    """Title, figures and notes."""
    s = view.survey
    languages = f", {view.src} to {view.tgt}" if view.src and view.tgt else ""
    facts = [("Pairs", f"{s.rows:,}", "")]
    if s.scores.total:
        if s.threshold is not None:
            kept = s.scores.at_least(s.threshold)
            facts.append(("Threshold", number(s.threshold), view.threshold_by))
            facts.append(("Reach it", share(kept, s.rows), counted(kept, "pair")))
        middle = f"half lie from {number(s.scores.quantile(0.25))} to {number(s.scores.quantile(0.75))}"
        facts.append(("Median score", number(s.scores.quantile(0.5)), middle))
        doubt = min(s.any_flag.high or 0, s.high_rows)
        of = f"{'about ' if s.any_flag.estimated else ''}{doubt:,} of the {s.high_rows:,} in the top tenth"
        facts.append(("High scores to doubt", share(doubt, s.high_rows), of))
    elif s.rows:
        facts.append(("Scores", "none", ""))
    cards = [
        html(
            "<div><dt>{}</dt><dd>{}{}</dd></div>",
            name,
            value,
            html("<small>{}</small>", more) if more else "",
        )
        for name, value, more in facts
    ]
    return html(
        "<header><p>Report on mined sentence pairs</p><h1>{}</h1><p>{}{}</p></header><dl class=facts>{}</dl>{}",
        view.origin.name,
        counted(s.rows, "pair"),
        languages,
        join(cards),
        _notes(view),
    )


def _notes(view: View) -> Html:
    s, file = view.survey, view.survey.file
    notes = []
    pairs = view.origin.content.get("pairs")
    if not s.rows:
        made = ", as its manifest says" if pairs == 0 else ""
        notes.append(f"There are no pairs in this file{made}.")
    if isinstance(pairs, int) and pairs != s.rows:
        notes.append(
            f"The manifest speaks of {counted(pairs, 'pair')}, the file has {s.rows:,}: it was changed after it "
            "was made."
        )
    if file.short[0] and not file.is_text:
        notes.append(
            f"{counted(file.short[0], 'row')} left out that are no pairs; the first: {file.first_bad}."
        )
    elif file.short[0]:
        notes.append(
            f"{counted(file.short[0], 'line')} with too few columns left out; the first is line "
            f"{file.short[1]:,}."
        )
    if file.wide[0]:
        notes.append(
            f"{counted(file.wide[0], 'line')} with more columns than the others; the first is line "
            f"{file.wide[1]:,}. What is in the further columns was not read."
        )
    if file.odd_scores:
        odd = ", ".join(
            f"{n:,} {kind} (the first in line {first:,})"
            for kind, (n, first) in sorted(file.odd_scores.items())
        )
        total = sum(n for n, _ in file.odd_scores.values())
        notes.append(
            f"{counted(total, 'pair')} without a usable score: {odd}. They count everywhere but in what is said "
            "about scores."
        )
    if s.rows and s.layout is not None and s.layout.score is None:
        notes.append("No column of scores: what is said about scores is missing from this report.")
    if view.origin.problem:
        notes.append(view.origin.problem)
    if not notes:
        return Html()
    return html('<ul class="notes">{}</ul>', join(html("<li>{}</li>", note) for note in notes))
