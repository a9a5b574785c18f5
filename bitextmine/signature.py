"""Signatures: one line that states how a number or a file was made, as in sacreBLEU (Post, 2018)."""

import re
from urllib.parse import quote, unquote

from bitextmine.errors import BitextmineError
from bitextmine.version import __version__

KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
# Characters that stay readable in a value: all but the separator, the escape character, blanks and control characters.
SAFE = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in "|%")


def signature(**parts: object) -> str:
    """Return a signature: ``signature(k=4, margin="ratio")`` is ``k:4|margin:ratio|version:0.1.0``.

    Parts keep their order; the tool's version comes last, unless given. None becomes ``none``, booleans ``yes`` and
    ``no``, floats their shortest exact form. Other characters than `SAFE` are percent-encoded: a signature is one word.
    """
    parts.setdefault("version", __version__)
    for key in parts:
        if not KEY.fullmatch(key):
            raise ValueError(f"a signature key is a word, not {key!r}")
    return "|".join(f"{key}:{_value(value)}" for key, value in parts.items())


def _value(value: object) -> str:
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if value is None or isinstance(value, bool):
        return "none" if value is None else "yes" if value else "no"
    return quote(str(value), safe=SAFE, errors="surrogatepass")


def parse_signature(text: str) -> dict[str, str]:
    """Return the parts of a signature, in order, each value as text; raises BitextmineError for other text."""
    parts: dict[str, str] = {}
    for part in text.strip().split("|"):
        key, colon, value = part.partition(":")
        if not colon or not KEY.fullmatch(key) or key in parts:
            raise BitextmineError(
                f"not a signature: {part!r} in {text!r}; it looks like k:4|margin:ratio|version:0.1.0"
            )
        try:
            parts[key] = unquote(value, errors="surrogatepass")
        except UnicodeDecodeError:
            raise BitextmineError(
                f"not a signature: {part!r}: its percent-encoded bytes are not UTF-8"
            ) from None
    return parts
