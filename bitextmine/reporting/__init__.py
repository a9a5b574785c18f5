"""A file of scored sentence pairs as a page to look at: scores, lengths, languages, doubts, examples, origin."""

from __future__ import annotations

import os

from bitextmine.files.layout import Columns
from bitextmine.files.storage import place
from bitextmine.files.streams import check_writable, keep_apart, open_output
from bitextmine.mining.threshold import parse_threshold
from bitextmine.reporting.page import page
from bitextmine.reporting.provenance import load_provenance
from bitextmine.reporting.survey import survey

__all__ = ["Columns", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    png: str | os.PathLike[str] | None = None,
    columns: Columns | None = None,
    threshold: str | float | None = "auto",
    manifest: str | os.PathLike[str] | None = None,
    errors: str = "strict",
) -> int:
    """Read a file of pairs once (tab-separated, ``-`` is stdin; or JSON Lines, TMX, Parquet by its suffix) and write
    what is in it. Returns how many there are.

    output: the page, one HTML file; png: the plots alone, as a picture (needs matplotlib). columns: where
    score, source and target are, for files that do not look like those of ``mine``. threshold: a number, "none",
    or "auto": the one in the manifest. manifest: a file, instead of PATH.json.

    A file without a pair gives a page that says so. Raises UsageError for a page in the place of its pairs or of its
    picture, BitextmineError for a file that cannot be read or whose columns cannot be told, and when matplotlib is
    needed and missing.
    """
    keep_apart(path, {"-o": output, "--png": png})
    for made in (output, png):
        if made is not None:
            check_writable(made)
    if png is not None:
        from bitextmine.reporting.plots import need_matplotlib

        need_matplotlib()  # before the work, not after it
    rule = parse_threshold(threshold)
    origin = load_provenance(path, manifest)
    cut = rule if isinstance(rule, float) else origin.threshold if rule == "auto" else None
    found = survey(path, columns=columns, threshold=cut, errors=errors)
    if output is not None:
        by = "given" if isinstance(rule, float) else _rule(origin.parts.get("threshold_by", ""))
        options = _options(columns or Columns(), output, rule, manifest, errors)
        text = page(found, origin, options, by)
        with open_output(output) as out:
            out.write(text)
    if png is not None:
        from bitextmine.reporting.plots import draw

        with open_output(png, "binary") as picture:
            draw(found, origin.name, picture)
    return found.rows


def _options(
    columns: Columns,
    output: str | os.PathLike[str],
    threshold: str | float,
    manifest: str | os.PathLike[str] | None,
    errors: str,
) -> list[str]:
    """The options of the command line that makes this page, but for those that are at their defaults."""
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


def _rule(name: str) -> str:
    """How mining came by its threshold, for people."""
    if name.startswith("fpr-"):
        return f"set by mining for a false-positive rate of {name[4:]}"
    return {"gold": "tuned by mining on gold pairs", "given": "given to mining"}.get(
        name, "from the manifest"
    )
