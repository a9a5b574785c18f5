"""The forms of `align --format`, by name, and what each is for; `bitextmine --help` reads them, so nothing heavy is
imported here. How each is written stands in `formats`."""

from __future__ import annotations

__all__ = ["FORMATS", "SUFFIXES"]

FORMATS = {
    "tsv": "for score and filter",
    "ladder": "as hunalign",
    "json": "an object per document",
    "jsonl": "an object per pair",
    "tmx": "for translation memories",
    "vecalign": "as Vecalign",
}

# What may be in a file of some suffix; the first is meant where nobody says.
SUFFIXES = {
    "": ("tsv", "ladder", "vecalign", "json", "jsonl", "tmx"),
    ".tsv": ("tsv", "ladder", "vecalign"),
    ".txt": ("tsv", "ladder", "vecalign"),
    ".json": ("json",),
    ".jsonl": ("jsonl", "json"),
    ".ndjson": ("jsonl", "json"),
    ".tmx": ("tmx",),
    ".parquet": (),
    ".pq": (),
}
