"""Choices of `filter`; `bitextmine --help` reads them, so nothing heavy is imported here."""

from __future__ import annotations

from importlib import resources

from bitextmine.mining.choices import Dedup

DUPLICATES = tuple(level.value for level in Dedup)
JOINS = ("paragraph", "document")

_FOLDER = resources.files("bitextmine.scoring") / "presets"
PRESETS = tuple(
    sorted(file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml"))
)


def preset_text(name: str) -> str:
    """Return the TOML of a preset."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
