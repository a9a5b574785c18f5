"""Columns of `score` and choices of `filter`; `bitextmine --help` reads them, so nothing heavy is imported here."""

from __future__ import annotations

from importlib import resources

from bitextmine.mining.choices import Dedup

MEANINGS = {
    "cosine": "of the two sentence vectors",
    "margin": "that, against the cosines to the nearest neighbours",
    "length_ratio": "characters of the longer side over those of the shorter",
    "numbers": "agreement of the numbers, from 0 to 1 (1: all of them, or none there)",
    "copy": "words that both sides have, from 0 to 1 (1: nothing is translated)",
    "lang": "both sides look like --src and --tgt: above 0.5",
    "quality": "probability that all of a side is translated, and rightly: from these, pieces and texts",
    "shorter": "characters of the shorter side",
    "longer": "characters of the longer side",
    "loops": "share of a side that repeats the words before, from 0 to 1, the higher",
    "letters": "share of letters, in the side that has fewer",
    "src_lang": "what language the source looks like",
    "tgt_lang": "what language the target looks like",
    "key": "the same for pairs that differ in case, digits and punctuation alone",
}
DUPLICATES = tuple(level.value for level in Dedup)
JOINS = ("paragraph", "document")

_FOLDER = resources.files("bitextmine.scoring") / "presets"
PRESETS = tuple(
    sorted(file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml"))
)


def default_columns(languages: bool) -> tuple[str, ...]:
    """Return the columns that `score` adds by default; the presets of `filter` rest on these."""
    basic = ("cosine", "margin", "length_ratio", "numbers", "copy")
    return (*basic, "lang", "quality") if languages else (*basic, "quality")


def preset_text(name: str) -> str:
    """Return the TOML of a preset."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
