"""The report as one HTML file: no script, no network, nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence

from bitextmine.reporting.head import head
from bitextmine.reporting.markup import Html, html, join, plain
from bitextmine.reporting.origin_section import origin_section
from bitextmine.reporting.pair_sections import doubt_section, example_section
from bitextmine.reporting.provenance import Provenance
from bitextmine.reporting.score_section import score_section
from bitextmine.reporting.style import STYLE
from bitextmine.reporting.survey import Survey
from bitextmine.reporting.text_sections import language_section, length_section
from bitextmine.reporting.view import View

__all__ = ["page"]

_SECTIONS = (
    head,
    score_section,
    length_section,
    language_section,
    doubt_section,
    example_section,
    origin_section,
)


def page(survey: Survey, origin: Provenance, options: Sequence[str] = (), threshold_by: str = "") -> str:
    """The whole report as HTML, below 300 KB whatever is in the file.

    options: of the command that made it, to be shown; threshold_by: where the threshold comes from, in a few
    words.
    """
    view = View(survey, origin, options, threshold_by)
    return html(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n<title>{}: report</title>\n<style>{}</style>\n</head>\n'
        "<body>\n<main>\n{}\n</main>\n</body>\n</html>\n",
        plain(origin.name),
        Html(STYLE),
        join(filter(None, (section(view) for section in _SECTIONS)), "\n"),
    )
