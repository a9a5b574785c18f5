"""Encoders made by other toolkits: a module with `load` and `weight_files` for each."""

from pathlib import Path

from bitextmine.encoder.config import KIND
from bitextmine.encoder.folder import CONFIG
from bitextmine.files.json_toml import read_json


def foreign_kind(folder: Path) -> str | None:
    """Return the name of the module for the folder of another toolkit, None for any other folder."""
    config = folder / CONFIG
    ours = config.is_file() and read_json(config).get("kind") == KIND
    if (folder / "modules.json").is_file() and not ours:  # sentence-transformers can hold an encoder of ours
        return "sentence_transformers"
    return "laser" if any(folder.glob("*.spm")) else None
