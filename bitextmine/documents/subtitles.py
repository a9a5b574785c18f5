"""Subtitles as passages of text with their times: SubRip, WebVTT, SubStation Alpha (SRT, VTT, ASS, SSA).

pysubs2 reads the cues. Here they become text: without tags, numbers, settings and comments, the lines of a cue joined,
and cues joined where a sentence goes on; a speaker's dash begins a passage of its own.
"""

from __future__ import annotations

import codecs
import html
import logging
import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from bitextmine.documents.kinds import Damaged, NoDocument
from bitextmine.documents.sentences import begins_small, ending, sentences
from bitextmine.languages.clean import clean
from bitextmine.languages.codes import is_spaced, language, same_code

log = logging.getLogger(__name__)

_LARGEST = 1 << 25  # bytes: a film has 200 kB
_STAMP = r"(?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
_TIMING = re.compile(rf"({_STAMP})[ \t]*-->[ \t]*({_STAMP})")
# The first line of a file, or the second after the number of its first cue.
_HEAD = re.compile(rf"\ufeff?\s*+(?:WEBVTT(?!\S)|\[Script Info\]|(?:\d{{1,6}}[ \t]*\r?\n)?{_STAMP}[ \t]*-->)")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_INLINE_STAMP = re.compile(rf"<{_STAMP}>")
_RUBY = re.compile(r"<rt>[^<>]*+</rt>", re.IGNORECASE)
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:[bciusv]|font|lang|ruby|rt|span)(?:[ .][^<>]*+)?>", re.IGNORECASE)
_OVERRIDE = re.compile(r"\{\\[^{}]*+\}|\{[a-zA-Z]:[^{}]*+\}")  # also in SRT; {y:i} is from MicroDVD
_BRACES = re.compile(r"\{[^{}]*+\}")
_DRAWING = re.compile(r"\\p[1-9]")

_MARKS = {  # that of UTF-32 begins with that of UTF-16
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
# Windows code pages of subtitles that are not UTF-8, by language, then by script.
_CODE_PAGES = {
    "cp1250": "bs cs hr hu pl ro sk sl sq sr",
    "cp1254": "az tr",
    "cp1257": "et lt lv",
    "cp1258": "vi",
    "gb18030": "zh",
    "cp932": "ja",
    "cp949": "ko",
    "cp1251": "Cyrillic",
    "cp1253": "Greek",
    "cp1255": "Hebrew",
    "cp1256": "Arabic",
    "cp874": "Thai",
}
_CODE_PAGE = {name: page for page, names in _CODE_PAGES.items() for name in names.split()}

_SPEAKER = re.compile(r"(?:[-‐‑–—−]{1,2}|>>+:?)\s*+(?=[^\W\d_]|[\"'“‘«„¿¡(\[.…♪])")
# The dash of a second speaker in the same line.
_SECOND_SPEAKER = re.compile(r" (?:(?<=[.!?…\"”»] )(?=[-–—] ?[^\W\d_])|(?=>>))")
_ELLIPSES = ("...", "…")
_GOES_ON = (",", ";", ":", "-", "–", "—", "،", "、", "，", *_ELLIPSES)
_NOTES = "♪♫#"
_FEW_STOPS = 0.3  # of the cues end with a mark: fewer, and each cue stands alone
_SEVERAL = 6  # lines that show that all begin with a capital
_PAUSE, _LONG_PAUSE = 1.0, 5.0  # seconds, before a capital and before anything
_FLASH = 0.2  # seconds: a shorter cue that repeats the one before is a frame of an animation
_ROLLING = 0.5  # of the cues repeat a line of the one before: captions that roll up


class Cue(NamedTuple):
    """Lines of text shown from `start` to `end`, in seconds."""

    start: float
    end: float
    lines: list[str]


class _Piece(NamedTuple):
    """A line of a cue, or what one speaker says in it.

    Attributes:
        first: it is the first of its cue.
        opens: a mark of another speaker was before it.
    """

    start: float
    end: float
    text: str
    first: bool
    opens: bool


@dataclass(frozen=True)
class Passage:
    """Text of successive cues.

    Attributes:
        text: the text.
        firsts, lasts: where the text of each piece begins and ends in it, in characters.
        starts, ends: when, in seconds.
    """

    text: str
    firsts: Sequence[int]
    lasts: Sequence[int]
    starts: Sequence[float]
    ends: Sequence[float]

    def times(self, first: float, last: float) -> tuple[float, float]:
        """Return when the characters `first` .. `last` are shown, which a piece shows at a constant pace."""
        i = max(0, bisect_right(self.firsts, first) - 1)
        j = max(0, bisect_left(self.firsts, last) - 1)
        return self._time(i, first), self._time(j, last)

    def _time(self, piece: int, place: float) -> float:
        length = max(1, self.lasts[piece] - self.firsts[piece])
        share = min(1.0, (place - self.firsts[piece]) / length)
        return self.starts[piece] + share * (self.ends[piece] - self.starts[piece])

    def sentences(self, lang: str) -> Iterator[tuple[str, tuple[float, float]]]:
        """Yield the sentences in normal form (`languages.clean`), each with the time of its beginning and its end."""
        text = clean(self.text)
        scale = len(self.text) / max(1, len(text))
        last = 0
        for sentence in sentences(text, lang):
            first = text.index(sentence, last)
            last = first + len(sentence)
            yield sentence, self.times(first * scale, last * scale)


def is_subtitles(head: bytes | str) -> bool:
    """Return True if the beginning of a file is that of subtitles."""
    text = head if isinstance(head, str) else _marked_text(head) or head.decode("utf-8", "replace")
    return _HEAD.match(text) is not None


def read_subtitles(blocks: Iterable[bytes], lang: str, name: str) -> str:
    """Return the text of a file: UTF-8 or UTF-16 with a byte order mark, else in the Windows code page of `lang`.

    Raises:
        NoDocument: the file is too large for subtitles, or has none of these encodings.
    """
    raw = bytearray()
    for block in blocks:
        raw += block
        if len(raw) > _LARGEST:
            raise NoDocument(f"{name}: more than {_LARGEST:,} bytes, which no subtitles have")
    if text := _marked_text(raw):
        return text
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        page = _code_page(lang, raw)
    try:
        text = raw.decode(page)
    except UnicodeDecodeError:
        raise Damaged(f"{name}: neither UTF-8 nor {page}; convert it with iconv first") from None
    log.warning(
        "%s: warning: not UTF-8; read as %s%s", name, page, f", by its language, {lang}" if lang else ""
    )
    return text


def _marked_text(raw: bytes | bytearray) -> str:
    """Return text with a byte order mark of UTF-16 or UTF-32; "" for other text."""
    encoding = next((name for name, marks in _MARKS.items() if raw.startswith(marks)), None)
    return raw.decode(encoding, "replace") if encoding else ""


def _code_page(lang: str, raw: bytes | bytearray) -> str:
    if same_code(lang) == "zh" and re.search(r"[-_](?:TW|HK|MO|Hant)\b", lang, re.IGNORECASE):
        return "big5"
    row = language(lang)
    if row is None:
        return "cp1252"
    latin = (
        "Latin" in row.scripts
        and sum(byte >= 0x80 for byte in raw) < sum(chr(byte).isalpha() for byte in raw) / 2
    )
    names = (row.code, *(() if latin else sorted(row.scripts - {"Latin"})))
    return next((_CODE_PAGE[name] for name in names[:: 1 if latin else -1] if name in _CODE_PAGE), "cp1252")


def passages(text: str, name: str) -> list[Passage]:
    """Return the passages of subtitles.

    Raises:
        NoDocument: there are no cues.
        Damaged: a cue of SubStation Alpha is malformed.
    """
    cues = sorted(_cues(text, name), key=lambda cue: cue.start)
    if not cues:
        raise NoDocument(f"{name}: no cues: not SRT, WebVTT or ASS")
    pieces = [piece for cue in _once(cues) for piece in _pieces(cue)]
    joins = _joins(pieces)
    result: list[Passage] = []
    joining: list[_Piece] = []
    for piece, joined in zip(pieces, [False, *joins], strict=True):
        if joining and not joined:
            result.append(_passage(joining))
            joining = []
        joining.append(piece)
    return [*result, _passage(joining)] if joining else result


# --- cues ---


def _cues(text: str, name: str) -> Iterator[Cue]:
    import pysubs2

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = text.lstrip("\ufeff \t\n")
    form = (
        "ass"
        if "Dialogue:" in text and not _TIMING.search(text)
        else "vtt"
        if start.startswith("WEBVTT")
        else "srt"
    )
    # pysubs2 takes the square of the time for long styles and tags and for runs of blank lines.
    if form == "ass":
        text = "".join(f"{line}\n" for line in text.split("\n") if line.startswith("Dialogue:"))
    elif form == "vtt":
        text = _numbered(text)
    else:
        text = _BLANK_LINES.sub("\n\n", text) + "\n\n0\n"  # it takes a number at the end for that of a cue
    try:
        with warnings.catch_warnings(action="ignore"):  # of fields that do not matter here
            events = pysubs2.SSAFile.from_string(text, form, keep_html_tags=True)
    except ValueError as error:
        raise Damaged(f"{name}: {error}") from None
    for event in events:
        if form == "ass" and (event.effect == "fx" or _DRAWING.search("".join(_BRACES.findall(event.text)))):
            continue
        lines = _plain(event.text, _BRACES if form == "ass" else _OVERRIDE)
        if lines:
            yield Cue(event.start / 1000, max(event.start, event.end) / 1000, lines)


def _numbered(text: str) -> str:
    """Return WebVTT with its cues alone, a number before each, and no times inside of their text."""
    blocks = []
    for block in _BLANK_LINES.sub("\n\n", text).split("\n\n"):
        lines = block.strip("\n").split("\n")
        for at, line in enumerate(lines[:2]):
            if timing := _TIMING.search(line):
                shown = _INLINE_STAMP.sub("", "\n".join(lines[at + 1 :]))
                blocks.append(f"0\n{_stamp(timing[1])} --> {_stamp(timing[2])}\n{shown}\n\n")
                break
    return "".join([*blocks, "0\n"])


def _stamp(stamp: str) -> str:
    """Return a time with two digits and more, as pysubs2 wants it: Microsoft Teams writes 0:0:7.9."""
    clock, fraction = re.split("[.,]", stamp)
    return f"{':'.join(f'{int(part):02}' for part in clock.split(':'))}.{fraction:0<3}"


def _plain(text: str, overrides: re.Pattern[str]) -> list[str]:
    """Return the lines of a cue without tags; lines without a letter, a digit or a mark are left out."""
    text = overrides.sub("", text).replace("\\h", " ").replace("\\n", "\\N")
    text = _TAG.sub("", _BREAK.sub("\\\\N", _RUBY.sub("", text)))
    lines = (" ".join(html.unescape(line).split()) for line in text.split("\\N"))
    return [line for line in lines if line]


def _once(cues: Sequence[Cue]) -> list[Cue]:
    """Return cues without what is shown twice: in layers, frame by frame, or as lines that roll up."""
    repeats = [bool(_overlap(*both)) for both in pairwise(cues)]
    rolling = len(cues) > 2 and sum(repeats) > _ROLLING * len(repeats)
    kept: list[Cue] = []
    shown: set[tuple[float, str]] = set()
    for before, cue in zip([None, *cues[:-1]], cues, strict=True):
        key = cue.start, "\n".join(cue.lines)
        if key in shown:
            continue
        shown.add(key)
        if rolling and before is not None:
            cue = cue._replace(lines=cue.lines[_overlap(before, cue) :])
        elif kept and cue.lines == kept[-1].lines and cue.start - kept[-1].end < _FLASH > cue.end - cue.start:
            kept[-1] = kept[-1]._replace(end=max(cue.end, kept[-1].end))
            continue
        if cue.lines:
            kept.append(cue)
    return kept


def _overlap(before: Cue, cue: Cue) -> int:
    """Return how many lines at the beginning of a cue the one before ended with."""
    if cue.start - before.end > _PAUSE:
        return 0
    most = min(len(before.lines), len(cue.lines), 4)
    return next((n for n in range(most, 0, -1) if before.lines[-n:] == cue.lines[:n]), 0)


# --- passages ---


def _pieces(cue: Cue) -> Iterator[_Piece]:
    """Yield the pieces of a cue; its time is shared out by their lengths."""
    turns = [turn for line in cue.lines for turn in _turns(line)]
    pace = (cue.end - cue.start) / sum(len(text) for text, _ in turns)
    start = cue.start
    for at, (text, speaker) in enumerate(turns):
        end = start + len(text) * pace
        yield _Piece(start, end, text, at == 0, speaker)
        start = end


def _turns(line: str) -> Iterator[tuple[str, bool]]:
    """Yield what the speakers in a line say, and True where a dash before it, which is left out, shows another one."""
    several = _SPEAKER.match(line) or ">>" in line
    for part in _SECOND_SPEAKER.split(line) if several else [line]:
        mark = _SPEAKER.match(part)
        if mark and not (part[0] in "–—" and begins_small(part, mark.end())):
            yield part[mark.end() :], True
        else:
            yield part, False


def _joins(pieces: Sequence[_Piece]) -> list[bool]:
    """Return True for each piece after the first that belongs to the passage of the one before."""
    ends = [
        before
        for before, following in zip(pieces, [*pieces[1:], None], strict=True)
        if following is None or following.first
    ]
    stops = sum(ending(piece.text) > 0 for piece in ends) >= _FEW_STOPS * len(ends)
    begun = [
        following.text
        for before, following in pairwise(pieces)
        if following.first and not following.opens and _is_open(before.text)
    ]
    # Where lines are verses or titles, most of them begin with a capital.
    verses = len(begun) >= _SEVERAL and sum(map(_begins_large, begun)) > len(begun) / 2
    return [_is_joined(before, following, stops, verses) for before, following in pairwise(pieces)]


def _is_joined(before: _Piece, following: _Piece, stops: bool, verses: bool) -> bool:
    pause = following.start - before.end
    if following.opens or pause > _LONG_PAUSE or _stands_alone(before.text) or _stands_alone(following.text):
        return False
    if before.text[-1] in f"{_NOTES}])" or following.text[0] in f"{_NOTES}[":
        return False
    if not following.first:
        return True
    if not stops:
        return False
    if begins_small(following.text):
        return True
    if not _is_open(before.text):
        return " " in before.text or not ending(before.text)  # "No." is no abbreviation
    return pause <= _PAUSE and not (verses and _begins_large(following.text))


def _is_open(text: str) -> bool:
    """Return True for text that ends without a mark that ends or links a sentence."""
    return not ending(text) and not text.endswith(_GOES_ON)


def _begins_large(text: str) -> bool:
    return next((c.isupper() for c in text if c.isalpha()), False)


def _stands_alone(text: str) -> bool:
    """Return True for text in brackets, as the description of a sound."""
    return text[0] + text[-1] in ("[]", "()", "（）", "【】")


def _passage(pieces: Sequence[_Piece]) -> Passage:
    text = ""
    firsts, lasts = [], []
    for piece in pieces:
        more = piece.text
        if text.endswith(_ELLIPSES) and more.startswith(_ELLIPSES):
            more = more.lstrip(".… ") or more
        if text and is_spaced(text[-20:], more):
            text += " "
        firsts.append(len(text))
        text += more
        lasts.append(len(text))
    return Passage(text, firsts, lasts, [piece.start for piece in pieces], [piece.end for piece in pieces])
