"""Pairs to look at: reasons to doubt some, and examples from the best to the worst score."""

from __future__ import annotations

from collections.abc import Sequence

from bitextmine.console import counted
from bitextmine.reporting.charts import number
from bitextmine.reporting.markup import Html, html, join, share, table
from bitextmine.reporting.reasons import REASONS, Reason
from bitextmine.reporting.survey import Flagged, Repeated
from bitextmine.reporting.view import View

__all__ = ["doubt_section", "example_section"]


def doubt_section(view: View) -> Html:
    """How many pairs each reason fits, with examples; empty without pairs."""
    s = view.survey
    if not s.rows:
        return Html()
    rows = []
    for reason in REASONS:
        flag = s.flagged.get(reason.key, Flagged(0, None, []))
        about = "about " if flag.estimated and flag.rows else ""
        row = [
            html("{}<small>{}</small>", reason.title, reason.why),
            f"{about}{flag.rows:,}",
            share(flag.rows, s.rows),
        ]
        if s.high is not None:
            high = flag.high or 0
            row += [f"{about if high else ''}{high:,}", share(high, s.high_rows)]
        rows.append(row)
    header = ["Reason", "Pairs", "Share", *(["High", "Share of high"] if s.high is not None else [])]
    top = (
        f"High are the {counted(s.high_rows, 'pair')} that score {number(s.high)} or more, the top tenth. A reason "
        "that is more frequent among them than among all pairs is one that the score does not see."
        if s.high is not None
        else ""
    )
    missed = (
        f" There are more different texts than are counted; counts of repeats may be {s.repeats_missed:,} too low."
        if s.repeats_missed
        else ""
    )
    return html(
        "<section><h2>{} to doubt</h2><p>A high score is no proof. These rules are simple and look "
        "at what often scores high and is of no use; a pair may have several reasons, and be right all the same. "
        "{}{}</p>{}{}</section>",
        "High scores" if s.high is not None else "Pairs",
        top,
        missed,
        table("Reasons for doubt", header, rows),
        join(_doubt(view, reason) for reason in REASONS),
    )


def _doubt(view: View, reason: Reason) -> Html:
    """Examples of one reason."""
    flag = view.survey.flagged.get(reason.key)
    examples = flag.examples if flag else []
    if examples:
        best = "the highest scores" if view.survey.high is not None else "the first"
        return html(
            "<details><summary>{}: examples</summary>{}</details>",
            reason.title,
            view.examples(f"{reason.title}: {best}", [("", examples)]),
        )
    repeated = view.survey.repeated.get(reason.key, [])
    if not repeated:
        return Html()
    return html(
        "<details><summary>{}: the most frequent</summary>{}</details>",
        reason.title,
        _repeats(view, reason.key, repeated),
    )


def _repeats(view: View, key: str, repeated: Sequence[Repeated]) -> Html:
    rows = []
    for r in repeated:
        if key == "pair_repeated":
            cell = view.pair(r.pair)
        else:
            mine, theirs, word = (
                ((r.pair.tgt, r.pair.tgt_length, view.tgt), view.src, "sources")
                if key == "target_repeated"
                else ((r.pair.src, r.pair.src_length, view.src), view.tgt, "targets")
            )
            cell = html(
                "{}<div class=partners><small>some of its {}</small>{}</div>",
                view.text(*mine),
                word,
                join(view.text(t, len(t), theirs) for t in r.partners),
            )
        rows.append(
            html(
                "<tr><td>{} times<small>line {}</small></td><td>{}</td></tr>",
                f"{r.times:,}",
                r.pair.row,
                cell,
            )
        )
    what = {
        "pair_repeated": "The pairs that occur most often",
        "target_repeated": "The targets with the most different sources",
        "source_repeated": "The sources with the most different targets",
    }[key]
    return html(
        '<table class="pairs"><caption>{}</caption><thead><tr><th scope="col">Found</th>'
        '<th scope="col">Text</th></tr></thead><tbody>{}</tbody></table>',
        what,
        join(rows),
    )


def example_section(view: View) -> Html:
    """Pairs near the threshold, and from the best to the worst score; empty without pairs."""
    s = view.survey
    if not s.levels:
        return Html()
    parts = []
    above, below = s.near
    if s.threshold is not None and (above or below):
        groups = []
        if above:
            groups.append(("Just kept", above[::-1]))
        if below:
            groups.append(("Just dropped", below))
        parts.append(view.examples(f"Nearest to the threshold {number(s.threshold)}", groups))
    if s.scores.total:
        groups = [(_level(name), pairs) for name, pairs in s.levels]
        parts.append(view.examples("From the best to the worst score", groups))
    else:
        parts.append(view.examples("A few pairs, in the order of the file", [("", p) for _, p in s.levels]))
    return html("<section><h2>Examples</h2>{}</section>", join(parts))


def _level(name: str) -> str:
    if name in ("best", "worst"):
        return "The best" if name == "best" else "The worst"
    part = float(name.rstrip("%"))
    if part == 50:
        return "Around the median"
    return f"Around the top {100 - part:g}%" if part > 50 else f"Around the bottom {part:g}%"
