"""The columns of a file of sentence pairs: one set of rules for every command.

Options come first, then a header line, then the shape of the first rows. Where that does not settle it, nothing is
guessed: the error names the options that do.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.languages.codes import is_short_code, language, same_code

log = logging.getLogger(__name__)

HEAD = 200  # rows that are looked at

# What a header may call them; the first one that is there counts.
_NAMES = {
    "score": ("score", "margin", "cosine"),
    "src": ("src", "source"),
    "tgt": ("tgt", "target"),
    "src_line": ("src_line",),
    "tgt_line": ("tgt_line",),
    "src_origin": ("src_origin",),
    "tgt_origin": ("tgt_origin",),
}
_TELLING = ("score", "src", "tgt")  # a line that names two of these is a header
_OPTIONS = {"score": "--score-col", "src": "--scol", "tgt": "--tcol"}
_COLUMN = re.compile("[a-z]+(?:_[a-z]+)*")  # names of the columns of `score`
MISSING = {"", "-", "na", "n/a", "nan", "none", "null"}
# Of a line: document or URL, paragraph and sentence; of several, also the last of them.
_ORIGIN = re.compile(r". \d+\.\d+(?:-\d+\.\d+)?$")
_MOST = 0.8  # of the cells must be numbers in a column of numbers: a file may hold a bad one


@dataclass(frozen=True)
class Columns:
    """How to read a file of pairs.

    Attributes:
        score, src, tgt: columns named by the user, by position from 1 or by name in the header; None: find out.
        header: the first line names the columns; None: find out.
        last: names of the last columns, neither text nor score, of a file without a header.
        errors: invalid UTF-8 in lines: ``strict`` raises InvalidUtf8, ``replace`` puts U+FFFD, None makes the row bad.
        ragged: lines need only have the columns of the texts.
        langs: the languages that the user states for source and target, or empty; see `by_language`.
    """

    score: str | None = None
    src: str | None = None
    tgt: str | None = None
    header: bool | None = None
    last: tuple[str, ...] = ()
    errors: str | None = None
    ragged: bool = False
    langs: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Layout:
    """The places of the columns.

    Attributes:
        width: cells of a row.
        names: the header, or empty.
        places: columns from 0 of "score", "src", "tgt", "src_line" and "tgt_line", as far as they are there.
        src_lang, tgt_lang: languages that the header names.
        unknown: the reason why source and target could not be found.
    """

    width: int
    names: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    src_lang: str = ""
    tgt_lang: str = ""
    unknown: str = ""

    @property
    def score(self) -> int | None:
        """Return the column of the score; None for pairs without scores."""
        return self.places.get("score")

    @property
    def src(self) -> int:
        """Return the column of the source; BitextmineError if it could not be found."""
        return self._text("src")

    @property
    def tgt(self) -> int:
        """Return the column of the target, likewise."""
        return self._text("tgt")

    def _text(self, role: str) -> int:
        if role not in self.places:
            raise BitextmineError(self.unknown)
        return self.places[role]

    def column_names(self, last: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a name for each column: the header, else its content (score, src ...), `last` or column_N."""
        if self.names:
            return self.names
        roles = {at: role for role, at in self.places.items()}
        names = [roles.get(at, f"column_{at + 1}") for at in range(self.width)]
        if last and len(last) <= self.width:
            names[self.width - len(last) :] = last
        return tuple(names)


def find_layout(
    head: Sequence[Sequence[str]],
    columns: Columns | None = None,
    name: str = "input",
    names: Sequence[str] = (),
) -> Layout:
    """Find the columns of a file.

    Without a header, these shapes are known; numbers may follow each of the last three:

        source, target
        source, target, score
        source, target
        score, source, target                                 as `mine` writes
        score, source line, target line, source, target       as `mine --ids` writes

    The last two may be followed by the origins of source and target, as `mine --origin` writes them.

    The width is that of the header, else that of most rows; rows of one cell, and rows without a column that was
    asked for, do not count.

    The head is the first rows as cells; the first of them may be a header, unless the format has `names` of columns.

    Raises:
        UsageError: columns are named, and there is no header.
        BitextmineError: a column is not there. Unknown source and target raise only when they are used (`Layout.src`).
    """
    columns = columns or Columns()
    given = {role: value for role in _TELLING if (value := getattr(columns, role)) is not None}
    by_name = [value for value in given.values() if not is_position(value)]
    header, body = True, head
    if not names:
        header = bool(columns.header)
        if columns.header is None:
            header = bool(by_name) or _is_header(head[0])
        if header:
            names, body = head[0], head[1:]
    if by_name and not header:
        raise UsageError(
            f"{name}: column {by_name[0]!r} is asked for by name, but the file is said to have no header "
            "(--no-header); give its position, from 1"
        )
    names = tuple(names)
    named, langs = _by_header(names)
    if all(langs) and by_language(columns, langs, name).src == langs[1]:
        named |= {"src": named["tgt"], "tgt": named["src"]}
        langs = langs[1], langs[0]
    lang_at = dict(zip((named.get("src"), named.get("tgt")), langs, strict=True))
    chosen = {role: _position(value, role, names, name) for role, value in given.items()}
    width = len(names) or _width(body, 1 + max(chosen.values(), default=0))
    for role, at in chosen.items():
        if at >= width:
            there = (
                f"the header names {width}: {', '.join(names)[:200]}" if names else f"most lines have {width}"
            )
            raise BitextmineError(f"{name}: there is no column {at + 1} ({_OPTIONS[role]}): {there}")
    # Where names tell which the texts are, a column of numbers is a score only if it is called so.
    complete = header and {"src", "tgt"} <= named.keys() | chosen.keys()
    places = {**({} if complete else _by_shape(body, width, len(columns.last))), **named}
    places = {role: at for role, at in places.items() if role in chosen or at not in chosen.values()}
    places.update(chosen)
    if "src" in places and places["src"] == places.get("tgt"):
        raise BitextmineError(f"{name}: source and target are the same column, {places['src'] + 1}; give two")
    unknown = ""
    if not {"src", "tgt"} <= places.keys():
        first = "\t".join(head[0] if head else names)
        unknown = (
            f"{name}: line 1: cannot tell which of its {width} column(s) are source and target in {first[:80]!r}; "
            "say which with --scol and --tcol, by position from 1 or by name in the header"
        )
    langs = lang_at.get(places.get("src"), ""), lang_at.get(places.get("tgt"), "")
    return Layout(width, names, places, *langs, unknown)


def by_language(columns: Columns, langs: Sequence[str], name: str) -> Columns:
    """Return the columns of the languages that the user states, of those in a file, unless columns are named.

    Names of which not all are known languages are taken for names of columns. BitextmineError: the file is in other
    languages.
    """
    if not any(columns.langs) or columns.src or columns.tgt or not all(map(language, langs)):
        return columns
    sides: list[str | None] = []
    for stated in columns.langs:
        same = [lang for lang in langs if stated and same_code(lang) == same_code(stated)]
        if stated and not same:
            raise BitextmineError(
                f"{name}: its languages are {', '.join(langs)}, not {' and '.join(filter(None, columns.langs))}; "
                "correct --src and --tgt, or leave them out"
            )
        if len(same) > 1 and stated not in same:
            log.warning("%s: '%s' is %s here; only %s is read", name, stated, " and ".join(same), same[0])
        sides.append(stated if stated in langs else same[0] if same else None)
    if None in sides and len(langs) == 2:
        sides = [side or next(lang for lang in langs if lang not in sides) for side in sides]
    return replace(columns, src=sides[0], tgt=sides[1])


def is_position(value: str) -> bool:
    """Return True if a column is given by position, not by name."""
    return value.isascii() and value.isdecimal()


def as_number(value: Any) -> float:
    """Return a value, such as a cell, as a number; NaN for none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def _width(rows: Sequence[Sequence[str]], least: int) -> int:
    """Return the width of most rows of at least `least` and two cells; without such rows, of most."""
    sizes = [len(row) for row in rows]
    wide = [size for size in sizes if size >= max(least, 2)]
    return Counter(wide or sizes).most_common(1)[0][0] if sizes else 0


def _position(value: str, role: str, names: Sequence[str], name: str) -> int:
    if value in names:
        return names.index(value)
    if is_position(value):
        if not value.strip("0"):
            raise BitextmineError(f"{name}: {_OPTIONS[role]} {value}: columns count from 1")
        return int(value[:10]) - 1  # more digits than any file has columns
    raise BitextmineError(
        f"{name}: no column is called '{value}'; there are {', '.join(names)[:200]} in its first line; if that is no "
        "header, give positions, from 1"
    )


def _is_header(cells: Sequence[str]) -> bool:
    """Return True if a first line names two of score, source and target, or two languages (alone, known ones)."""
    roles, langs = _by_header(cells)
    if langs[0] and len(cells) == 2:
        return langs[0] != langs[1] and all(map(language, langs))
    return sum(role in roles for role in _TELLING) >= 2


def _by_header(names: Sequence[str]) -> tuple[dict[str, int], tuple[str, str]]:
    """Return the columns that a header names, and the languages if it names source and target by them."""
    lower = [name.strip().lower() for name in names]
    roles = {}
    for role, words in _NAMES.items():
        at = next((lower.index(word) for word in words if word in lower), None)
        if at is not None:
            roles[role] = at
    if {"src", "tgt"} & roles.keys():
        return roles, ("", "")
    # Of three, "id" is a number and not Indonesian.
    first = int(lower[:1] in (["id"], ["score"]) and len(names) > 2)
    langs = [name.strip() for name in names[first : first + 2]]
    others = [name for name in names[first + 2 :] if not _COLUMN.fullmatch(name) or _is_language(name)]
    if len(langs) < 2 or others or not all(map(is_short_code, langs)):
        return roles, ("", "")
    roles["src"], roles["tgt"] = first, first + 1
    return roles, (langs[0], langs[1])


def _is_language(name: str) -> bool:
    return is_short_code(name) and name != "id" and language(name) is not None


def _by_shape(rows: Sequence[Sequence[str]], width: int, last: int) -> dict[str, int]:
    """Return the columns of the usual files, by the number of cells and the columns of numbers."""
    rows = [row for row in rows if len(row) == width]
    width -= last
    if width == 2:
        return {"src": 0, "tgt": 1}
    if not rows or width < 3:
        return {}

    def number(at: int) -> bool:
        """Return True for a column of numbers or nothing, with a number somewhere."""
        numbers = sum(not math.isnan(as_number(row[at])) for row in rows)
        missing = sum(row[at].strip().lower() in MISSING for row in rows)
        return numbers > 0 and numbers + missing >= _MOST * len(rows)

    def whole(at: int) -> bool:
        return sum(is_position(row[at].strip()) for row in rows) >= _MOST * len(rows)

    mined = {"score": 0, "src": 1, "tgt": 2}
    with_ids = {"score": 0, "src_line": 1, "tgt_line": 2, "src": 3, "tgt": 4}
    if width == 3:
        return mined if number(0) else {"src": 0, "tgt": 1, "score": 2} if number(2) else {}
    numbers = [number(at) for at in range(min(width, 6))]
    for shape in (mined, with_ids):
        at = len(shape)  # of the origin of both texts, or of a line that `align` left alone
        origins = [[cell for cell in row[at : at + 2] if cell] for row in rows]
        if numbers[0] and width > at + 1 and all(part and all(map(_ORIGIN.search, part)) for part in origins):
            return {**shape, "src_origin": at, "tgt_origin": at + 1}
    match numbers:
        case [True, True, True, False, False, *more] if whole(1) and whole(2) and all(more):
            return with_ids
        case [True, False, False, True, *_]:
            return mined
        case [False, False, True, *_]:
            return {"src": 0, "tgt": 1}
    return with_ids if width == 5 and whole(1) and whole(2) else {}
