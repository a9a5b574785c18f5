"""What all the sections of a page draw on, and pairs as they show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from bitextmine.languages.codes import is_code
from bitextmine.reporting.charts import number
from bitextmine.reporting.markup import Html, beginning, html, join, plain
from bitextmine.reporting.provenance import Provenance
from bitextmine.reporting.survey import Pair, Survey

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """survey: what is in the file; origin: where it comes from; options: of the command that made the page;
    threshold_by: where the threshold comes from, in a few words. src, tgt: the languages, where they are known.
    """

    survey: Survey
    origin: Provenance
    options: Sequence[str] = ()
    threshold_by: str = ""
    src: str = field(init=False, default="")
    tgt: str = field(init=False, default="")

    def __post_init__(self) -> None:
        layout = self.survey.layout
        for side, named in (
            ("src", layout.src_lang if layout else ""),
            ("tgt", layout.tgt_lang if layout else ""),
        ):
            language = self.origin.language(side) or (named if is_code(named) else "")
            object.__setattr__(self, side, language)

    def text(self, text: str, length: int, language: str) -> Html:
        """A text of a pair; length: that of the whole text, in characters."""
        lang = html(' lang="{}"', plain(language.replace("_", "-"))) if language else ""
        return html('<p dir="auto"{}>{}</p>', lang, beginning(text, length))

    def pair(self, pair: Pair) -> Html:
        """Both texts."""
        return join(
            [self.text(pair.src, pair.src_length, self.src), self.text(pair.tgt, pair.tgt_length, self.tgt)]
        )

    def examples(self, caption: str, groups: Sequence[tuple[str, Sequence[Pair]]]) -> Html:
        """Pairs in groups, each under a heading of its own (unless that is empty)."""
        bodies = []
        for title, pairs in groups:
            head = html('<tr><th scope="rowgroup" colspan="2">{}</th></tr>', title) if title else ""
            rows = [
                html("<tr><td>{}<small>line {}</small></td><td>{}</td></tr>", _score(p), p.row, self.pair(p))
                for p in pairs
            ]
            bodies.append(html("<tbody>{}{}</tbody>", head, join(rows)))
        return html(
            '<table class="pairs"><caption>{}</caption><thead><tr><th scope="col">Score</th>'
            '<th scope="col">Source and target</th></tr></thead>{}</table>',
            caption,
            join(bodies),
        )


def _score(pair: Pair) -> str:
    return "no score" if math.isnan(pair.score) else number(pair.score)
