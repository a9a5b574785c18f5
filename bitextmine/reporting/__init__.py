"""A file of scored sentence pairs as one HTML page: scores, lengths, languages, doubts, examples, origin."""

from __future__ import annotations

import os

from bitextmine.files.layout import Columns
from bitextmine.files.storage import place
from bitextmine.files.streams import check_writable, keep_apart, open_output
from bitextmine.mining.threshold import parse_threshold
from bitextmine.reporting.page import render
from bitextmine.reporting.provenance import load_provenance
from bitextmine.reporting.survey import survey

__all__ = ["Columns", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    threshold: str | float | None = "auto",
    manifest: str | os.PathLike[str] | None = None,
    errors: str = "strict",
) -> int:
    """Write an HTML page about a file of pairs and return the number of pairs.

    The file is read once. A file without a pair gives a page that says so.

    Args:
        path: the pairs, in any format that the suffix tells; ``-`` is stdin.
        output: the page; ``-`` is stdout.
        columns: the columns of score, source and target, for files unlike those of ``mine``.
        threshold: a number, ``none``, or ``auto`` for the one in the manifest.
        manifest: the manifest, instead of PATH.json.
        errors: invalid UTF-8: ``strict`` raises, ``replace`` puts U+FFFD.

    Raises:
        UsageError: the page would replace the pairs.
        BitextmineError: the file cannot be read, or its columns cannot be told.
    """
    keep_apart(path, {"-o": output})
    check_writable(output)
    rule = parse_threshold(threshold)
    origin = load_provenance(path, manifest)
    cut = rule if isinstance(rule, float) else origin.threshold if rule == "auto" else None
    found = survey(path, columns=columns, threshold=cut, errors=errors)
    if isinstance(rule, float):
        origin.threshold_by = "given"
    options = _options(columns or Columns(), output, rule, manifest, errors)
    text = render(found, origin, options)
    with open_output(output) as out:
        out.write(text.encode())
    return found.rows


def _options(
    columns: Columns,
    output: str | os.PathLike[str],
    threshold: str | float,
    manifest: str | os.PathLike[str] | None,
    errors: str,
) -> list[str]:
    """Return the options of the command that makes this page, without those at their defaults."""
    given = {
        "--score-col": columns.score,
        "--scol": columns.src,
        "--tcol": columns.tgt,
        "--threshold": None if threshold == "auto" else str(threshold),
        "--manifest": None if manifest is None else place(manifest).name,
        "--errors": None if errors == "strict" else errors,
        "-o": os.fspath(output) if os.fspath(output) == "-" else place(output).name,
    }
    words = [word for name, value in given.items() if value is not None for word in (name, value)]
    if columns.header is not None:
        words.append("--header" if columns.header else "--no-header")
    return words
