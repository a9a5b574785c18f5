"""How the pairs score: a histogram, how many reach each threshold, what mining counted before its cut."""

from __future__ import annotations

from bitextmine.console import counted
from bitextmine.reporting.charts import histogram, number, score_svg, share_bar, thresholds
from bitextmine.reporting.markup import Html, html, join, share, table
from bitextmine.reporting.view import View

__all__ = ["score_section"]


def score_section(view: View) -> Html:
    """Empty where there is nothing to say about scores."""
    s = view.survey
    if not s.scores.total:
        before = _before_the_cut(view)
        return html("<section><h2>Scores</h2>{}</section>", before) if before else before
    h = histogram(s.scores, s.threshold)
    low, high = number(s.scores.low), number(s.scores.high)
    words = (
        f"Histogram of {counted(s.scores.total, 'score')} from {low} to {high}, median "
        f"{number(s.scores.quantile(0.5))}"
    )
    remarks = []
    if h.cut is not None:
        words += f"; the threshold {number(h.cut)} is marked"
        below = s.scores.total - s.scores.at_least(h.cut)
        remarks.append(
            "The line marks the threshold; "
            + ("bars of pairs below it are pale." if below else "no pair in the file lies below it.")
        )
    elif s.threshold is not None:
        remarks.append(f"The threshold {number(s.threshold)} lies outside what is drawn.")
    outside = [f"{n:,} {word}" for n, word in ((h.below, "below"), (h.above, "above")) if n]
    if outside:
        remarks.append(f"Outside what is drawn: {' and '.join(outside)}.")
    bins = [
        [f"{number(float(a))} to {number(float(b))}", f"{int(n):,}"]
        for a, b, n in zip(h.edges[:-1], h.edges[1:], h.counts, strict=True)
        if n
    ]
    figure = html(
        "<figure><figcaption>How many pairs have which score. {}</figcaption>"
        "{}<details><summary>The chart as a table</summary>{}</details></figure>",
        " ".join(remarks),
        score_svg(h, words),
        table("Pairs by score", ["Score", "Pairs"], bins, kind="compact"),
    )
    return html("<section><h2>Scores</h2>{}{}{}</section>", figure, _thresholds(view), _before_the_cut(view))


def _thresholds(view: View) -> Html:
    s = view.survey
    values = thresholds(s.scores, s.threshold)
    rows = []
    for value in values:
        kept = s.scores.at_least(value)
        bar = html("{}{}", share(kept, s.rows), share_bar(kept / s.rows))
        rows.append([number(value), f"{kept:,}", bar])
    marked = values.index(s.threshold) if s.threshold in values else None
    exact = (
        ""
        if s.scores.decimals >= 4
        else " (scores are spread so far that counts are exact at coarse thresholds only)"
    )
    header = ["Threshold", "Pairs kept", "Share"]
    return table(f"Pairs kept at each threshold{exact}", header, rows, marked, "compact")


def _before_the_cut(view: View) -> Html:
    """What mining said about its candidates, if anything."""
    origin = view.origin
    said = join(html("<p>{}</p>", note) for note in origin.notes)
    counts = origin.counts()
    if not counts or origin.threshold is None:  # nothing was cut: the counts are those of the file
        return html("<h3>What mining said</h3>{}", said) if said else said
    columns = [("pairs", "Pairs", "{:,.0f}")]
    for key, title in (("false_positive_rate", "False positives"), ("precision", "Precision")):
        if any(key in row for row in counts):
            columns.append((key, title, "{:.1%}"))
    rows = [
        [number(r["threshold"]), *(f.format(r[k]) if k in r else "-" for k, _, f in columns)] for r in counts
    ]
    estimated = (
        "False positives: the share of lines without a translation that get a pair all the same. Both rates are "
        "estimated from the corpora themselves. "
        if len(columns) > 1
        else ""
    )
    near = [i for i, row in enumerate(counts) if abs(row["threshold"] - origin.threshold) < 5e-7]
    return html(
        "<h3>Before the cut</h3>{}<p>What mining counted among all its candidates, those that are not in "
        "this file included. {}</p>{}",
        said,
        estimated,
        table(
            "Candidates at each threshold",
            ["Threshold", *(title for _, title, _ in columns)],
            rows,
            near[0] if near else None,
            kind="compact",
        ),
    )
