"""The forms of `align --format`, by name, and what each is for; `bitextmine --help` reads them, so nothing heavy is
imported here. How each is written stands in `formats`."""

from __future__ import annotations

__all__ = ["FORMATS"]

FORMATS = {
    "tsv": "for score and filter",
    "ladder": "as hunalign",
    "json": "an object per document",
    "tmx": "for translation memories",
    "vecalign": "as Vecalign",
}
