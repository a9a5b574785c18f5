"""Encoders by their name on the Hugging Face hub: ORG/NAME, or ORG/NAME@REVISION.

huggingface_hub fetches them into its own cache (HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and its login hold), and only
the files that are read here: configuration, tokenizer and safetensors, no pickles and no code.
"""

import os
import re
import sys
from pathlib import Path

from bitextmine.errors import BitextmineError

_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w][\w./-]*))?")

# Modules of sentence-transformers lie in folders such as 1_Pooling; tokenizer.model and ngrams.txt are of our own.
_NAMES = (
    *("config.json", "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model", "ngrams.txt"),
    *("scorer.safetensors", "quality.safetensors"),
    *("model.safetensors", "model.safetensors.index.json", "model-[0-9]*.safetensors"),
)
FILES = [*_NAMES, *(f"[0-9]*_*/{name}" for name in _NAMES), "*.spm", "laser*.safetensors"]


def hub_name(model: str | os.PathLike[str]) -> tuple[str, str | None] | None:
    """Return ORG/NAME and the revision (None: the newest), or None if this cannot be such a name.

    A folder wins, as does a path that leads into one: with a folder ``models`` here, ``models/missing`` is a path.
    """
    named = _NAME.fullmatch(model) if isinstance(model, str) else None
    if named is None or Path(model).exists():
        return None
    if named[2] is None and Path(named[1]).parent.is_dir():
        return None
    return named[1], named[2]


def fetch(name: str, revision: str | None = None) -> Path:
    """Return a model's folder in huggingface_hub's cache, fetching it if needed; the folder's name is the commit.

    Raises BitextmineError if it cannot be fetched, or has nothing that is read here.
    """
    asked = name if revision is None else f"{name}@{revision}"
    try:
        import huggingface_hub
    except ImportError:
        raise BitextmineError(
            f"{asked}: no such folder; to fetch a model of that name from the hub: pip install "
            "'bitextmine[transformers]'"
        ) from None
    if sys.stderr is None or not sys.stderr.isatty():
        huggingface_hub.utils.disable_progress_bars()
    fetching = {"revision": revision, "allow_patterns": FILES, "library_name": "bitextmine"}
    try:
        folder = Path(huggingface_hub.snapshot_download(name, **fetching))
    except Exception as e:  # of all kinds, from the network to the disk
        reason = str(e).strip().partition("\n")[0] or type(e).__name__
        raise BitextmineError(
            f"{asked}: no such folder, and the hub does not give such a model: {reason}. A private one, or one with "
            "terms to accept, needs 'hf auth login'; without a network, name a folder downloaded elsewhere"
        ) from None
    if not any(any(folder.glob(pattern)) for pattern in ("modules.json", "config.json", "*.spm")):
        raise BitextmineError(
            f"{asked}: has no modules.json, config.json or *.spm: no encoder of sentence-transformers, bitextmine or "
            "LASER"
        )
    return folder
