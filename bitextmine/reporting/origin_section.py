"""Where the file comes from: its signature, its corpora, and the commands that repeat it."""

from __future__ import annotations

import shlex

from bitextmine.reporting.markup import Html, html, join, table
from bitextmine.reporting.provenance import Provenance
from bitextmine.reporting.survey import SEED
from bitextmine.reporting.view import View
from bitextmine.signature import signature

__all__ = ["origin_section"]


def origin_section(view: View) -> Html:
    """What the manifest tells, what was read, how to do it again."""
    s, origin = view.survey, view.origin
    rows: list[list[str]] = []
    if origin.signature:
        rows.append(["Signature", html("<code>{}</code>", origin.signature)])
        words = {"fpr": "false-positive rate"}
        for key, value in origin.parts.items():
            rows.append([words.get(key, key.replace("_", " ")), value])
        rows += [[side, facts] for side, facts in _sides(origin)]
    if s.layout is not None:
        rows.append(["Columns", s.layout.describe()])
    rows.append(["Lines read", f"{s.file.lines:,}"])
    rows.append([s.file.digest_of, html("<code>{}</code>", s.file.digest)])
    mark = signature(task="report", rows=s.rows, threshold=s.threshold, sample=s.sampled, seed=SEED)
    rows.append(["This report", html("<code>{}</code>", mark)])
    known = (
        html("From the manifest {}.", origin.manifest)
        if origin.manifest
        else html(
            "There was no manifest beside the file (<code>mine -o FILE</code> writes one, <code>--manifest</code> "
            "names one), so it does not tell how it was made."
        )
    )
    mined = origin.mine_command()
    commands = [c for c in (mined, _report_command(view)) if c]
    where = (
        html(
            "Mining looks for its corpora in the current folder (<code>--dir</code>, <code>--name</code> and "
            "<code>--model</code> say otherwise) and gives the same file for the same corpora and model. "
        )
        if mined
        else ""
    )
    return html(
        "<section><h2>Where it comes from</h2><p>{}</p>{}<h3>To repeat it</h3><pre><code>{}</code></pre>"
        "<p>{}A report is the same, to the byte, in every run.</p></section>",
        known,
        table("How the file was made", ["What", "Which"], rows, kind="words origin"),
        join(commands, "\n"),
        where,
    )


def _report_command(view: View) -> str:
    name = "-" if view.origin.name == "<stdin>" else view.origin.name
    return shlex.join(["bitextmine", "report", name, *view.options])


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
