"""A model folder: config.json, model.safetensors, tokenizer.model, and for a model with n-grams ngrams.txt.

huggingface_hub fetches those that are named ORG/NAME or ORG/NAME@REVISION into its own cache (HF_HOME, HF_ENDPOINT,
HF_HUB_OFFLINE and its login hold), and only the files that are read here: configuration, tokenizer and safetensors, no
pickles and no code.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.ngrams import LONGEST
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import write_weights
from bitextmine.errors import BitextmineError, MissingPackage
from bitextmine.files.atomic import replacing
from bitextmine.files.json_toml import read_json, write_json
from bitextmine.shipped import ALIASES, SHIPPED, shipped_folder

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.model"
NGRAMS = "ngrams.txt"  # one per line
SCORER = "scorer.safetensors"  # of `mine`, fitted to this encoder; optional
QUALITY = "quality.safetensors"  # of `score`, fitted to this encoder; optional

# Encoders inside the package, and other names for them.
PACKAGED = {**dict.fromkeys(ALIASES, SHIPPED[-1]), **{name: name for name in SHIPPED}}


def resolve(model: str | os.PathLike[str]) -> Path:
    """Return the folder of a packaged encoder's name, a path or a name on the hub; raises BitextmineError for others.

    A packaged name wins over a folder of that name (./default is the folder), so that names mean the same everywhere.
    """
    text = os.fspath(model)
    if text in PACKAGED:
        return shipped_folder(text)
    path = Path(text)
    if path.is_dir():
        return path
    on_hub = hub_name(text)
    if on_hub is not None:
        return _fetch(*on_hub)
    names = ", ".join(SHIPPED)
    problem = "not a folder" if path.exists() else "no such model folder"
    raise BitextmineError(f"{text}: {problem}, and not one of the built-in encoders ({names})")


def folder_hash(folder: Path) -> str:
    """Return 16 hex digits of a SHA-256 over the files: folders of equal hash give equal vectors.

    Raises BitextmineError if a file is missing.
    """
    names = (CONFIG, WEIGHTS, TOKENIZER, *([NGRAMS] if (folder / NGRAMS).exists() else []))
    return hash_files({name: folder / name for name in names})


def hash_files(files: Mapping[str, Path]) -> str:
    """Return 16 hex digits of a SHA-256 over files and their names."""
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(name.encode() + b"\0" + file_digest(path))
    return digest.hexdigest()[:16]


def file_digest(path: Path) -> bytes:
    """Return the SHA-256 of a file; BitextmineError if it is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        raise _missing(path) from None
    except OSError as e:
        raise BitextmineError(f"{path}: cannot be read: {e.strerror}") from e


def read_folder(folder: Path) -> tuple[EncoderConfig, Tokenizer]:
    """Read a model folder without its weights; raises BitextmineError that names a missing or damaged file."""
    path = folder / CONFIG
    if not path.is_file():
        raise _missing(path)
    config = EncoderConfig.from_json(read_json(path), str(path))
    ngrams = read_ngrams(folder, config.ngrams)
    tokenizer = Tokenizer(folder / TOKENIZER, config.transliterate)
    if tokenizer.vocab_size != config.vocab_size:
        raise BitextmineError(
            f"{folder / TOKENIZER}: {tokenizer.vocab_size} pieces, but {CONFIG} says vocab_size {config.vocab_size}"
        )
    if ngrams:
        try:
            tokenizer.add_ngrams(ngrams)
        except BitextmineError as e:
            raise BitextmineError(f"{folder / NGRAMS}: {e}") from e
    return config, tokenizer


def read_ngrams(folder: Path, count: int) -> list[str]:
    """Read the n-grams of a model folder; raises BitextmineError if there are not ``count``."""
    path = folder / NGRAMS
    if not count:
        return []
    try:
        if path.exists() and not path.is_file():
            raise BitextmineError(f"{path}: not a regular file")
        with path.open(encoding="utf-8") as file:
            text = file.read(count * (LONGEST + 1) + 1)
    except (OSError, UnicodeDecodeError) as e:
        raise BitextmineError(f"{path}: cannot be read, but {CONFIG} says ngrams {count}: {e}") from e
    ngrams = text.splitlines()
    if len(ngrams) != count or len(text) > count * (LONGEST + 1):
        raise BitextmineError(f"{path}: {len(ngrams)} n-grams, but {CONFIG} says ngrams {count}")
    return ngrams


def copy_folder(folder: Path, out: Path) -> None:
    """Copy the files of an encoder, and the scorers fitted to it; config.json last."""
    for name in (WEIGHTS, TOKENIZER, NGRAMS, SCORER, QUALITY, CONFIG):
        if (folder / name).is_file() and folder.resolve() != out.resolve():
            shutil.copyfile(folder / name, out / name)


def write_folder(
    folder: Path,
    config: EncoderConfig,
    weights: Mapping[str, np.ndarray],
    tokenizer: Path,
    *,
    ngrams: Sequence[str] = (),
    dtype: str = "int8",
) -> None:
    """Write a model folder, config.json after the weights, so that an unfinished folder does not load.

    weights and dtype are as for `write_weights`; ngrams are in the order of their vectors; tokenizer is the
    SentencePiece model to copy.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Scorers fitted to the earlier model go as well.
    for name in (CONFIG, SCORER, QUALITY):
        (folder / name).unlink(missing_ok=True)
    write_weights(weights, folder / WEIGHTS, dtype=dtype, ngrams=config.ngrams)
    if tokenizer.resolve() != (folder / TOKENIZER).resolve():
        with replacing(folder / TOKENIZER) as file:
            file.write(tokenizer.read_bytes())
    (folder / NGRAMS).unlink(missing_ok=True)
    if ngrams:
        with replacing(folder / NGRAMS) as file:
            file.write("".join(f"{ngram}\n" for ngram in ngrams).encode())
    write_json(folder / CONFIG, config.to_json())


def _missing(path: Path) -> BitextmineError:
    return BitextmineError(f"{path}: no such file: a model folder holds {CONFIG}, {WEIGHTS} and {TOKENIZER}")


# --- the hub ---

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


def _fetch(name: str, revision: str | None = None) -> Path:
    """Return a model's folder in huggingface_hub's cache, fetching it if needed; the folder's name is the commit.

    Raises BitextmineError if it cannot be fetched, or has nothing that is read here.
    """
    asked = name if revision is None else f"{name}@{revision}"
    try:
        import huggingface_hub
        import huggingface_hub.utils
    except ImportError:
        raise MissingPackage(
            f"{asked}: no such folder, and the hub's models need huggingface_hub", "transformers"
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
