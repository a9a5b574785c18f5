"""Web pages: their main text as paragraphs, from files of HTML and from crawls; needs the extra ``web``."""

import codecs
import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

from bitextmine.documents.kinds import NoDocument
from bitextmine.errors import MissingPackage
from bitextmine.files.source import Source

HTML_TYPES = ("text/html", "application/xhtml+xml")
_BREAK = re.compile(r"[\n\t]+")
# resiliparse takes time that grows with the square of the depth, of the options of a list, of the attributes of a tag,
# and of tags within a line that have no end. None of these but the first is text, so that many are left out.
_DEEPEST = 1000
_MOST = 5000  # options, attributes, tags without an end
_OPTION = re.compile(r"</?opt(?:ion|group)\b[^<>]*+>?+[^<]*+", re.IGNORECASE)
_INLINE = re.compile(
    r"<(/?)(?:a|b|big|code|em|font|i|nobr|rp|rt|s|small|strike|strong|tt|u)\b[^<>]*+>?+", re.IGNORECASE
)
_LARGE_TAG = re.compile(rf"(</?[a-z][a-z0-9]*+)([^<>]{{{2 * _MOST},}}+)", re.IGNORECASE)
_NESTING = re.compile(rb"<(/?)(?:div|section|article|ul|ol|dl|blockquote|center|main|form)\b", re.IGNORECASE)
_LIST = re.compile(r"<(/?)ul\b", re.IGNORECASE)
_LINK = re.compile(r"<a\b[^<]*(?:<(?!/?a\b)[^<]*)*", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>?")
_UNKNOWN = "application/octet-stream"  # also said of short text beyond ASCII
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WESTERN = ("cp1252", "iso-8859-1", "latin-1", "ascii")
_MOSTLY = 0.05  # of the characters beyond ASCII: fewer damaged ones than this, and it is UTF-8 all the same
# Marks that machine translation leaves in the tags of a page: Google Translate in the browser and its proxy, Microsoft
# Translator, and metadata that say so. Plugins as WPML and GTranslate mark only the choice of languages.
_UP_TO = rb"\b[^<>]{0,1000}?"  # a mark in the same tag
_TRANSLATED = re.compile(
    rb"<(?:html%b(?:\btranslated-(?:ltr|rtl)\b|-x-mtfrom-)|font%b\bvertical-align:\s*+inherit|"
    rb"[a-z]++%b\s_msttexthash\s*+=|base%b\.translate\.goog\b|meta%b(?:machine[- ]?translat|translated-by-machine))"
    % ((_UP_TO,) * 5),
    re.IGNORECASE,
)
# One of these is in each mark, and in few pages without one; a search for a fixed text takes a tenth of the time.
_HINTS = (
    *(b"translated-", b"-x-mtfrom-", b"_msttexthash", b".translate.goog"),
    *(b"vertical-align:inherit", b"vertical-align: inherit"),
    *(b"machine translat", b"machine-translat", b"machinetranslat"),
)
_SAMPLE = 1 << 18  # bytes that tell if it is a page


def library(name: str, extra: str = "web") -> Any:
    """Import a module that comes with an extra; MissingPackage if it is not installed."""
    try:
        return sys.modules.get(name) or importlib.import_module(name)
    except ImportError:
        raise MissingPackage(f"these documents need the package {name.partition('.')[0]}", extra) from None


def page(raw: bytes, charset: str | None = None, machine: bool = False) -> list[str]:
    """Return the paragraphs of the main text of a web page; `charset` is what its server says.

    Raises:
        NoDocument: it is no HTML, its elements are nested too deep, or, unless `machine`, it was machine-translated.
    """
    kind = library("resiliparse.parse.encoding").detect_mime(raw[:_SAMPLE])
    binary = b"\0" in raw[:_SAMPLE] and not raw.startswith(_UTF_16)
    if binary or kind not in (*HTML_TYPES, "text/plain", "text/xml", "application/xml", _UNKNOWN):
        raise NoDocument(f"not HTML ({kind})")
    if raw.count(b"<") > _DEEPEST < _depth(raw):
        raise NoDocument(f"elements nested more than {_DEEPEST:,} deep")
    if not machine and _is_machine_translated(raw):
        raise NoDocument(
            "machine translation, by marks in its HTML; keep such pages with --machine-translated"
        )
    extract = library("resiliparse.extract.html2text").extract_plain_text
    html = _with_lists(_lighter(decoded(raw, charset)))
    text = extract(html, main_content=True, alt_texts=False, list_bullets=False)
    return [line for line in map(str.strip, _BREAK.split(text)) if line]


def _with_lists(html: str) -> str:
    """Make `<ol>` of each `<ul>` with less text inside links than outside: resiliparse takes most `<ul>` for menus."""
    parts: list[str] = []
    done = start = depth = 0
    for tag in _LIST.finditer(html):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth == 1 and not tag[1]:
            start = tag.start()
        elif depth == 0 and start >= done:
            items = html[start : tag.end()]
            if _letters("".join(_LINK.findall(items))) < _letters(_LINK.sub("", items)):
                parts += html[done:start], _LIST.sub(r"<\1ol", items)
                done = tag.end()
            start = tag.end()
    return "".join(parts) + html[done:]


def _letters(html: str) -> int:
    return len("".join(_TAG.sub("", html).split()))


def page_file(source: Source, seen: Callable[[int], object] | None, machine: bool) -> list[str]:
    """Return the paragraphs of a file of HTML; NoDocument as for `page`, or if it is too large."""
    raw = bytearray()
    for block in source.blocks(seen):
        raw += block
        if len(raw) > source.max_line:
            raise too_large(source.max_line)
    return page(bytes(raw), machine=machine)


def _lighter(html: str) -> str:
    """Return a page without its options and its tags within lines if there are too many; large tags bare."""
    if html.count("<") > _MOST:
        if len(_OPTION.findall(html)) > _MOST:
            html = _OPTION.sub("", html)
        inline = _INLINE.findall(html)
        if inline.count("") - inline.count("/") > _MOST:
            html = _INLINE.sub("", html)
    return _LARGE_TAG.sub(lambda tag: tag[1] if len(tag[2].split()) > _MOST else tag[0], html)


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for tag in _NESTING.finditer(raw):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _is_machine_translated(raw: bytes) -> bool:
    low = raw.lower()
    return any(hint in low for hint in _HINTS) and _TRANSLATED.search(low) is not None


def decoded(raw: bytes, charset: str | None) -> str:
    """Decode a page: as UTF-8 if it is UTF-8, then as declared, then as its bytes look."""
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", "replace")
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    damaged = text.count("\ufffd")
    if not damaged:
        return text
    encodings = library("resiliparse.parse.encoding")
    looks = encodings.detect_encoding(raw) or "cp1252"
    declared = encodings.map_encoding_to_html5(charset, fallback_utf8=False) if charset else None
    declared = declared or encodings.detect_encoding(raw, from_html_meta=True)
    if looks == "utf-8" or damaged < _MOSTLY * sum(not c.isascii() for c in text):
        return text
    # Latin-1 takes any bytes: it is what servers say of everything.
    for encoding in (declared, looks) if declared not in _WESTERN else (looks,):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeDecodeError, TypeError):
            continue
    return str(encodings.bytes_to_str(raw, looks))


def too_large(most: int) -> NoDocument:
    """Return the error for a page of more than `most` bytes."""
    return NoDocument(f"a page of more than {most:,} bytes; allow larger ones with --max-line")
