"""HTML that nothing from a file can get into: the one place where text becomes markup.

A page is put together by `html`, whose template is written in the source and whose values are escaped, unless they are
`Html` themselves. What is read from pairs, headers and manifests is plain `str` all the way, so that it cannot reach
the page but through here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Html", "beginning", "html", "join", "plain", "share", "table", "visible"]

# A cell ends at whichever comes first; the second keeps the file small whatever is in the text.
_CELL_CHARACTERS = 240
_CELL_BYTES = 900

_KEPT_INVISIBLE = "\u200c\u200d"  # the joiners are part of how some scripts and emoji are spelled
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def html(template: str, *values: object) -> Html:
    """The template with its `{}` filled in turn: `Html` as it is, everything else as `visible` shows it."""
    return Html(template.format(*(v if isinstance(v, Html) else visible(str(v)) for v in values)))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Parts one after the other; what is not `Html` is escaped."""
    return Html(between.join(part if isinstance(part, Html) else visible(part) for part in parts))


def visible(text: str) -> Html:
    """Text as HTML that shows what it holds: markup is escaped, and characters that are invisible or turn the
    writing direction are named by their numbers.
    """
    return Html("".join(_shown(text)))


def plain(text: str) -> Html:
    """The same where no tag may stand: in attributes and titles."""
    return Html("".join(_shown(text, "{}")))


def _shown(text: str, named: str = "<i class=c>{}</i>") -> Iterable[str]:
    for c in text:
        if c in "&<>\"'":
            yield escape(c)
        elif c in _KEPT_INVISIBLE or c.isprintable():
            yield c
        elif unicodedata.category(c) in _HIDDEN:
            yield named.format(f"U+{ord(c):04X}")
        else:  # spaces of other widths
            yield c


def beginning(text: str, length: int) -> Html:
    """The beginning of a text; `length` is that of the whole text, in characters."""
    if not text.strip():
        return html("<i class=c>{}</i>", "empty" if not text else "blank")
    parts: list[str] = []
    size = used = 0
    for part in _shown(text[:_CELL_CHARACTERS]):
        size += len(part.encode("utf-8", "replace"))
        if size > _CELL_BYTES:
            break
        parts.append(part)
        used += 1
    cut = html("… <small>({} characters)</small>", f"{length:,}") if used < length else ""
    return html("{}{}", Html("".join(parts)), cut)


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    marked: int | None = None,
    kind: str = "",
) -> Html:
    """A table whose first cells are the headers of their rows. marked: the row that stands out; kind: its class."""
    head = join(html('<th scope="col">{}</th>', cell) for cell in header)
    body = []
    for i, row in enumerate(rows):
        of = " class=marked" if i == marked else " class=none" if row[1:2] == ["0"] else ""
        cells = join(html("<td>{}</td>", cell) for cell in row[1:])
        body.append(html('<tr{}><th scope="row">{}</th>{}</tr>', of, row[0], cells))
    return html(
        '<div class="scroll"><table class="{}"><caption>{}</caption><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>",
        plain(kind),
        caption,
        head,
        join(body),
    )


def share(part: float, whole: float) -> str:
    """How much of the whole a part is, for people."""
    if not whole:
        return "-"
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "< 0.1%"
    return f"{percent:.1f}%" if part == whole or percent < 99.95 else "> 99.9%"
