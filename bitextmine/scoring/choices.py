"""Columns of `score` and choices of `filter`; `bitextmine --help` reads them, so nothing heavy is imported here."""

from importlib import resources

from bitextmine.mining.choices import Dedup

MEANINGS = {
    "cosine": "cosine of the two sentence vectors",
    "margin": "this cosine compared with the cosines to the nearest neighbours",
    "length_ratio": "characters of the longer side divided by those of the shorter",
    "numbers": "agreement of the numbers, 0 to 1 (1: all agree, or there are none)",
    "copy": "share of words that both sides have, 0 to 1 (1: nothing is translated)",
    "lang": "probability of --src and --tgt against the likeliest other language, 0 to 1; the worse side",
    "quality": "probability of a complete and correct translation, from all evidence",
    "shorter": "characters of the shorter side",
    "longer": "characters of the longer side",
    "loops": "share of a side that repeats the words just before, 0 to 1; the worse side",
    "letters": "share of letters, 0 to 1; the worse side",
    "src_lang": "language identified in the source",
    "tgt_lang": "language identified in the target",
    "script": "script of both sides by ISO 15924, as Latn, or of each if they differ, as Latn-Cyrl",
    "key": "hash shared by pairs that differ only in case, digits and punctuation",
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
