"""The report as one HTML file: no script, no network, nothing beside it."""

from __future__ import annotations

import math
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from bitextmine.console import counted
from bitextmine.languages.codes import is_code
from bitextmine.report.charts import (
    histogram,
    length_grid,
    length_legend,
    length_svg,
    number,
    score_svg,
    share_bar,
    thresholds,
)
from bitextmine.report.language import LanguageSurvey
from bitextmine.report.provenance import Provenance
from bitextmine.report.reasons import LENGTH_FACTOR, REASONS
from bitextmine.report.style import STYLE
from bitextmine.report.survey import SEED, Flagged, Pair, Repeated, Survey
from bitextmine.signature import signature

__all__ = ["page", "visible"]

# A cell ends at whichever comes first; the second keeps the file small whatever is in the text.
_CELL_CHARACTERS = 240
_CELL_BYTES = 900

_KEPT_INVISIBLE = "\u200c\u200d"  # the joiners are part of how some scripts and emoji are spelled
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    """Text as HTML that shows what it holds: markup is escaped, and characters that are invisible or turn the
    writing direction are named by their numbers.
    """
    return "".join(_shown(text))


def _shown(text: str) -> Iterable[str]:
    for c in text:
        if c in "&<>\"'":
            yield escape(c)
        elif c in _KEPT_INVISIBLE or c.isprintable():
            yield c
        elif unicodedata.category(c) in _HIDDEN:
            yield f"<i class=c>U+{ord(c):04X}</i>"
        else:  # spaces of other widths
            yield c


def _cell_text(text: str, length: int) -> str:
    """The beginning of a text as HTML; `length` is that of the whole text, in characters."""
    if not text.strip():
        return f"<i class=c>{'empty' if not text else 'blank'}</i>"
    parts: list[str] = []
    size = used = 0
    for part in _shown(text[:_CELL_CHARACTERS]):
        size += len(part.encode("utf-8", "replace"))
        if size > _CELL_BYTES:
            break
        parts.append(part)
        used += 1
    cut = f"… <small>({length:,} characters)</small>" if used < length else ""
    return "".join(parts) + cut


# --- parts of a page ---------------------------------------------------------------------------------------


def _table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    marked: int | None = None,
    kind: str = "",
) -> str:
    """A table whose first cells are the headers of their rows; cells are HTML."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "".join(
        f"<tr{' class=marked' if i == marked else ' class=none' if row[1:2] == ['0'] else ''}>"
        + f'<th scope="row">{row[0]}</th>'
        + "".join(f"<td>{cell}</td>" for cell in row[1:])
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table class="{kind}"><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _share(part: float, whole: float) -> str:
    if not whole:
        return "-"
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "&lt; 0.1%"
    return f"{percent:.1f}%" if part == whole or percent < 99.95 else "&gt; 99.9%"


class _Page:
    def __init__(self, survey: Survey, origin: Provenance, options: Sequence[str], threshold_by: str) -> None:
        self.s = survey
        self.origin = origin
        self.options = options
        self.threshold_by = threshold_by
        layout = survey.layout
        self.src = origin.language("src") or _code(layout.src_lang if layout else "")
        self.tgt = origin.language("tgt") or _code(layout.tgt_lang if layout else "")

    # -- pairs

    def _text(self, text: str, length: int, language: str) -> str:
        lang = f' lang="{escape(language.replace("_", "-"))}"' if language else ""
        return f'<p dir="auto"{lang}>{_cell_text(text, length)}</p>'

    def _pair(self, pair: Pair) -> str:
        return self._text(pair.src, pair.src_length, self.src) + self._text(
            pair.tgt, pair.tgt_length, self.tgt
        )

    def _score(self, pair: Pair) -> str:
        score = "no score" if math.isnan(pair.score) else number(pair.score)
        return f"{score}<small>line {pair.row}</small>"

    def _examples(self, caption: str, groups: Sequence[tuple[str, Sequence[Pair]]]) -> str:
        """Pairs in groups, each under a heading of its own (unless that is empty)."""
        bodies = []
        for title, pairs in groups:
            head = f'<tr><th scope="rowgroup" colspan="2">{title}</th></tr>' if title else ""
            rows = "".join(f"<tr><td>{self._score(p)}</td><td>{self._pair(p)}</td></tr>" for p in pairs)
            bodies.append(f"<tbody>{head}{rows}</tbody>")
        return (
            f'<table class="pairs"><caption>{caption}</caption><thead><tr><th scope="col">Score</th>'
            f'<th scope="col">Source and target</th></tr></thead>{"".join(bodies)}</table>'
        )

    # -- sections

    def head(self) -> str:
        s = self.s
        languages = f", {escape(self.src)} to {escape(self.tgt)}" if self.src and self.tgt else ""
        facts = [("Pairs", f"{s.rows:,}", "")]
        if s.scores.total:
            if s.threshold is not None:
                kept = s.scores.at_least(s.threshold)
                facts.append(("Threshold", number(s.threshold), self.threshold_by))
                facts.append(("Reach it", _share(kept, s.rows), counted(kept, "pair")))
            middle = f"half lie from {number(s.scores.quantile(0.25))} to {number(s.scores.quantile(0.75))}"
            facts.append(("Median score", number(s.scores.quantile(0.5)), middle))
            doubt = min(s.any_flag.high or 0, s.high_rows)
            of = (
                f"{'about ' if s.any_flag.estimated else ''}{doubt:,} of the {s.high_rows:,} in the top tenth"
            )
            facts.append(("High scores to doubt", _share(doubt, s.high_rows), of))
        elif s.rows:
            facts.append(("Scores", "none", ""))
        cards = "".join(
            f"<div><dt>{name}</dt><dd>{value}{f'<small>{more}</small>' if more else ''}</dd></div>"
            for name, value, more in facts
        )
        return (
            f"<header><p>Report on mined sentence pairs</p><h1>{visible(self.origin.name)}</h1>"
            f"<p>{counted(s.rows, 'pair')}{languages}</p></header><dl class=facts>{cards}</dl>{self._notes()}"
        )

    def _notes(self) -> str:
        s, file = self.s, self.s.file
        notes = []
        if not s.rows:
            made = ", as its manifest says" if self.origin.content.get("pairs") == 0 else ""
            notes.append(f"There are no pairs in this file{made}.")
        pairs = self.origin.content.get("pairs")
        if isinstance(pairs, int) and pairs != s.rows:
            notes.append(
                f"The manifest speaks of {counted(pairs, 'pair')}, the file has {s.rows:,}: it was changed after it "
                "was made."
            )
        if file.short[0]:
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
        if self.origin.problem:
            notes.append(visible(self.origin.problem))
        if not notes:
            return ""
        return f'<ul class="notes">{"".join(f"<li>{note}</li>" for note in notes)}</ul>'

    def scores(self) -> str:
        s = self.s
        if not s.scores.total:
            before = self.before_the_cut()
            return f"<section><h2>Scores</h2>{before}</section>" if before else ""
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
        figure = (
            f"<figure><figcaption>How many pairs have which score. {' '.join(remarks)}</figcaption>"
            f"{score_svg(h, words)}<details><summary>The chart as a table</summary>"
            f"{_table('Pairs by score', ['Score', 'Pairs'], bins, kind='compact')}</details></figure>"
        )
        return f"<section><h2>Scores</h2>{figure}{self._thresholds()}{self.before_the_cut()}</section>"

    def _thresholds(self) -> str:
        s = self.s
        values = thresholds(s.scores, s.threshold)
        rows = []
        for value in values:
            kept = s.scores.at_least(value)
            rows.append([number(value), f"{kept:,}", _share(kept, s.rows) + share_bar(kept / s.rows)])
        marked = values.index(s.threshold) if s.threshold in values else None
        exact = (
            ""
            if s.scores.decimals >= 4
            else " (scores are spread so far that counts are exact at coarse thresholds only)"
        )
        return _table(
            f"Pairs kept at each threshold{exact}",
            ["Threshold", "Pairs kept", "Share"],
            rows,
            marked,
            "compact",
        )

    def before_the_cut(self) -> str:
        """What mining said about its candidates, if anything."""
        said = "".join(f"<p>{visible(note)}</p>" for note in self.origin.notes)
        counts = self.origin.counts()
        if not counts or self.origin.threshold is None:  # nothing was cut: the counts are those of the file
            return f"<h3>What mining said</h3>{said}" if said else ""
        columns = [("pairs", "Pairs", "{:,.0f}")]
        for key, title in (("false_positive_rate", "False positives"), ("precision", "Precision")):
            if any(key in row for row in counts):
                columns.append((key, title, "{:.1%}"))
        rows = [
            [number(r["threshold"]), *(f.format(r[k]) if k in r else "-" for k, _, f in columns)]
            for r in counts
        ]
        estimated = (
            "False positives: the share of lines without a translation that get a pair all the same. Both rates are "
            "estimated from the corpora themselves. "
            if len(columns) > 1
            else ""
        )
        values = [row["threshold"] for row in counts]
        cut = self.origin.threshold
        near = [i for i, value in enumerate(values) if cut is not None and abs(value - cut) < 5e-7]
        return (
            f"<h3>Before the cut</h3>{said}<p>What mining counted among all its candidates, those that are not in "
            f"this file included. {estimated}</p>"
            + _table(
                "Candidates at each threshold",
                ["Threshold", *(title for _, title, _ in columns)],
                rows,
                near[0] if near else None,
                kind="compact",
            )
        )

    def lengths(self) -> str:
        s = self.s
        if not len(s.lengths):
            return ""
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
        levels = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
        ratio = s.lengths[:, 1] / np.maximum(s.lengths[:, 0], 1)
        rows = [
            [
                f"{100 * q:g}",
                f"{np.quantile(s.lengths[:, 0], q):,.0f}",
                f"{np.quantile(s.lengths[:, 1], q):,.0f}",
                f"{np.quantile(ratio, q):.2f}",
            ]
            for q in levels
        ]
        return (
            f"<section><h2>Lengths</h2><figure><figcaption>Characters of the target (up) against characters of the "
            f"source (right), {of}. Full line: the usual ratio; dashed: {LENGTH_FACTOR:g} times longer or shorter "
            f"than that.{beyond}</figcaption>{length_svg(grid, s.usual_ratio, words)}{length_legend(grid)}"
            f"<details><summary>Lengths as a table</summary>"
            + _table(
                "Percentiles of the lengths, in characters, and of their ratio",
                ["Percentile", "Source", "Target", "Target / source"],
                rows,
                kind="compact",
            )
            + "</details></figure></section>"
        )

    def languages(self) -> str:
        if self.s.languages is None:
            return ""
        guessed = self.s.languages[0].guesses is not None
        rows = []
        for side, stated, found in zip(
            ("Source", "Target"), (self.src, self.tgt), self.s.languages, strict=True
        ):
            row = [side, escape(stated) or "not told", _shares(found.scripts)]
            if guessed:
                row.append(_shares(found.guesses or ()) or "too few texts")
            rows.append(row)
        header = ["Side", "Stated", "Scripts, by letters", *(["Guessed, by texts"] if guessed else [])]
        how = (
            f"Guessed by py3langid on {_guessed(self.s.languages)} of a random sample; it is often wrong on short "
            "texts."
            if guessed
            else "Languages were not guessed: no language identifier is installed "
            "(<code>pip install 'bitextmine[languages]'</code>)."
        )
        table = _table("What the texts are written in", header, rows, kind="words")
        return f"<section><h2>Languages</h2>{table}<p>{how}</p></section>"

    def doubts(self) -> str:
        s = self.s
        if not s.rows:
            return ""
        scored = s.high is not None
        rows = []
        for reason in REASONS:
            flag = s.flagged.get(reason.key, Flagged(0, None, []))
            about = "about " if flag.estimated and flag.rows else ""
            row = [
                f"{reason.title}<small>{reason.why}</small>",
                f"{about}{flag.rows:,}",
                _share(flag.rows, s.rows),
            ]
            if scored:
                high = flag.high or 0
                row += [f"{about if high else ''}{high:,}", _share(high, s.high_rows)]
            rows.append(row)
        header = ["Reason", "Pairs", "Share", *(["High", "Share of high"] if scored else [])]
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
        parts = [self._doubt(reason.key, reason.title) for reason in REASONS]
        title = f"{'High scores' if scored else 'Pairs'} to doubt"
        return (
            f"<section><h2>{title}</h2><p>A high score is no proof. These rules know no language and look "
            "at what often scores high and is of no use; a pair may have several reasons, and be right all the same. "
            f"{top}{missed}</p>{_table('Reasons for doubt', header, rows)}{''.join(parts)}</section>"
        )

    def _doubt(self, key: str, title: str) -> str:
        """Examples of one reason."""
        flag = self.s.flagged.get(key)
        examples = flag.examples if flag else []
        if examples:
            best = "the highest scores" if self.s.high is not None else "the first"
            return (
                f"<details><summary>{title}: examples</summary>"
                f"{self._examples(f'{title}: {best}', [('', examples)])}</details>"
            )
        repeated = self.s.repeated.get(key, [])
        if not repeated:
            return ""
        return f"<details><summary>{title}: the most frequent</summary>{self._repeats(key, title, repeated)}</details>"

    def _repeats(self, key: str, title: str, repeated: Sequence[Repeated]) -> str:
        rows = []
        for r in repeated:
            if key == "pair_repeated":
                cell = self._pair(r.pair)
            else:
                mine, theirs, word = (
                    ((r.pair.tgt, r.pair.tgt_length, self.tgt), self.src, "sources")
                    if key == "target_repeated"
                    else ((r.pair.src, r.pair.src_length, self.src), self.tgt, "targets")
                )
                others = "".join(self._text(t, len(t), theirs) for t in r.partners)
                cell = (
                    f"{self._text(*mine)}<div class=partners><small>some of its {word}</small>{others}</div>"
                )
            rows.append(f"<tr><td>{r.times:,} times<small>line {r.pair.row}</small></td><td>{cell}</td></tr>")
        what = {
            "pair_repeated": "The pairs that occur most often",
            "target_repeated": "The targets with the most different sources",
            "source_repeated": "The sources with the most different targets",
        }[key]
        return (
            f'<table class="pairs"><caption>{what}</caption><thead><tr><th scope="col">Found</th>'
            f'<th scope="col">Text</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
        )

    def examples(self) -> str:
        s = self.s
        if not s.levels:
            return ""
        parts = []
        above, below = s.near
        if s.threshold is not None and (above or below):
            groups = []
            if above:
                groups.append(("Just kept", above[::-1]))
            if below:
                groups.append(("Just dropped", below))
            parts.append(self._examples(f"Nearest to the threshold {number(s.threshold)}", groups))
        scored = s.scores.total > 0
        if scored:
            groups = [(self._level(name), pairs) for name, pairs in s.levels]
            parts.append(self._examples("From the best to the worst score", groups))
        else:
            parts.append(
                self._examples("A few pairs, in the order of the file", [("", p) for _, p in s.levels])
            )
        return f"<section><h2>Examples</h2>{''.join(parts)}</section>"

    def _level(self, name: str) -> str:
        if name in ("best", "worst"):
            return "The best" if name == "best" else "The worst"
        share = float(name.rstrip("%"))
        if share == 50:
            return "Around the median"
        return f"Around the top {100 - share:g}%" if share > 50 else f"Around the bottom {share:g}%"

    def provenance(self) -> str:
        s, origin = self.s, self.origin
        rows = []
        if origin.signature:
            rows.append(["Signature", f"<code>{visible(origin.signature)}</code>"])
            words = {"fpr": "false-positive rate"}
            for key, value in origin.parts.items():
                rows.append([visible(words.get(key, key.replace("_", " "))), visible(value)])
            rows += [[side, visible(facts)] for side, facts in _sides(origin)]
        if s.layout is not None:
            rows.append(["Columns", visible(s.layout.describe())])
        rows.append(["Lines read", f"{s.file.lines:,}"])
        rows.append(["SHA-256 of the lines", f"<code>{s.file.digest}</code>"])
        mark = signature(task="report", rows=s.rows, threshold=s.threshold, sample=s.sampled, seed=SEED)
        rows.append(["This report", f"<code>{visible(mark)}</code>"])
        known = (
            f"From the manifest {visible(origin.manifest)}."
            if origin.manifest
            else "There was no manifest beside the file (<code>mine -o FILE</code> writes one, <code>--manifest</code> "
            "names one), so it does not tell how it was made."
        )
        mined = origin.mine_command()
        commands = [c for c in (mined, self._report_command()) if c]
        where = (
            "Mining looks for its corpora in the current folder (<code>--dir</code>, <code>--name</code> and "
            "<code>--model</code> say otherwise) and gives the same file for the same corpora and model. "
            if mined
            else ""
        )
        return (
            f"<section><h2>Where it comes from</h2><p>{known}</p>"
            f"{_table('How the file was made', ['What', 'Which'], rows, kind='words origin')}"
            f"<h3>To repeat it</h3><pre><code>{chr(10).join(map(visible, commands))}</code></pre>"
            f"<p>{where}A report is the same, to the byte, in every run.</p></section>"
        )

    def _report_command(self) -> str:
        name = "-" if self.origin.name == "<stdin>" else self.origin.name
        return shlex.join(["bitextmine", "report", name, *self.options])


def _code(language: str) -> str:
    return language if is_code(language) else ""


def _shares(shares: Sequence[tuple[str, float]]) -> str:
    shown = [f"{escape(name)} {_share(share, 1)}" for name, share in shares[:4] if share >= 0.001]
    return ", ".join(shown)


def _guessed(surveys: tuple[LanguageSurvey, LanguageSurvey]) -> str:
    return f"{counted(surveys[0].texts, 'source')} and {counted(surveys[1].texts, 'target')}"


def _sides(origin: Provenance) -> list[tuple[str, str]]:
    """What became of the lines of each corpus, as the manifest says."""
    rows = origin.content.get("rows")
    found = []
    for side, title in (("src", "Source corpus"), ("tgt", "Target corpus")):
        facts = rows.get(side) if isinstance(rows, dict) else None
        if not isinstance(facts, dict):
            continue
        counts = [
            f"{value:,} {word}"
            for key, word in (
                ("lines", "lines"),
                ("mined_lines", "mined"),
                ("repeated", "repeated"),
                ("empty_or_unknown", "empty or unknown to the model"),
            )
            if isinstance(value := facts.get(key), int)
        ]
        found.append((title, f"{facts.get('corpus', '')}: {', '.join(counts)}"))
    return found


def page(survey: Survey, origin: Provenance, options: Sequence[str] = (), threshold_by: str = "") -> str:
    """The whole report as HTML, below 300 KB whatever is in the file.

    options: of the command that made it, to be shown; threshold_by: where the threshold comes from, in a few
    words.
    """
    p = _Page(survey, origin, options, threshold_by)
    sections = [p.head(), p.scores(), p.lengths(), p.languages(), p.doubts(), p.examples(), p.provenance()]
    title = visible(origin.name).replace("<i class=c>", "").replace("</i>", "")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<link rel="icon" href="data:,">\n<title>{title}: report</title>\n<style>{STYLE}</style>\n</head>\n'
        "<body>\n<main>\n" + "\n".join(filter(None, sections)) + "\n</main>\n</body>\n</html>\n"
    )
