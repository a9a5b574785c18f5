"""A model folder: config.json, model.safetensors, tokenizer.model, and for a model with n-grams ngrams.txt."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.hub import fetch, hub_name
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import write_weights
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing
from bitextmine.files.jsonfile import read_json, write_json

if TYPE_CHECKING:
    from bitextmine.encoder.model import SentenceModel

__all__ = [
    "CONFIG",
    "NGRAMS",
    "SCORER",
    "TOKENIZER",
    "WEIGHTS",
    "folder_hash",
    "packaged",
    "read_folder",
    "resolve",
    "save_folder",
]

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.model"
NGRAMS = "ngrams.txt"  # one per line
SCORER = "scorer.safetensors"  # of `mine`, fitted to this encoder; not every folder has one

# Encoders inside the package: the names that --model takes, and what each stands for.
PACKAGED = {"default": "europe5", "europe5-fast": "europe5-fast", "europe5": "europe5"}


def packaged(name: str) -> Path:
    """The folder of an encoder that came with the package."""
    return Path(str(resources.files("bitextmine.encoder"))) / "packaged" / PACKAGED[name]


def resolve(model: str | os.PathLike[str]) -> Path:
    """A packaged encoder's name, a folder or a name of the hub (`hub`) -> the folder; raises BitextmineError if it is
    none of these.

    Of a packaged encoder's name a folder wins only when it is written as a path (./default): names must mean the same
    in every folder.
    """
    text = os.fspath(model)
    if text in PACKAGED:
        return packaged(text)
    path = Path(text)
    if path.is_dir():
        return path
    on_hub = hub_name(text)
    if on_hub is not None:
        return fetch(*on_hub)
    names = ", ".join(sorted(PACKAGED))
    what = "not a folder" if path.exists() else "no such model folder"
    raise BitextmineError(f"{text}: {what}, and not one of the packaged encoders ({names})")


def folder_hash(folder: Path) -> str:
    """16 hex digits of a SHA-256 over the files: two folders of one hash give the same vectors."""
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS, TOKENIZER, *([NGRAMS] if (folder / NGRAMS).exists() else [])):
        path = folder / name
        try:
            with path.open("rb") as file:
                part = hashlib.file_digest(file, "sha256").digest()
        except FileNotFoundError:
            raise BitextmineError(
                f"{path}: no such file: a model folder holds {CONFIG}, {WEIGHTS} and {TOKENIZER}"
            ) from None
        except OSError as e:
            raise BitextmineError(f"{path}: cannot be read: {e.strerror}") from e
        digest.update(name.encode() + b"\0" + part)
    return digest.hexdigest()[:16]


def read_folder(folder: Path) -> tuple[EncoderConfig, Tokenizer]:
    """Reads a model folder but for its weights; raises BitextmineError that names the file that is missing or
    wrong."""
    path = folder / CONFIG
    if not path.is_file():
        raise BitextmineError(
            f"{path}: no such file: a model folder holds {CONFIG}, {WEIGHTS} and {TOKENIZER}"
        )
    config = EncoderConfig.from_json(read_json(path), str(path))
    ngrams = read_ngrams(folder, config.ngrams)
    tokenizer = Tokenizer(folder / TOKENIZER)
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
    """The n-grams of a model folder; raises BitextmineError, naming the file, when there are not ``count``."""
    path = folder / NGRAMS
    if not count:
        return []
    try:
        ngrams = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise BitextmineError(f"{path}: no such file, but {CONFIG} says ngrams {count}") from None
    except (OSError, UnicodeDecodeError) as e:
        raise BitextmineError(f"{path}: cannot be read: {e}") from e
    if len(ngrams) != count:
        raise BitextmineError(f"{path}: {len(ngrams)} n-grams, but {CONFIG} says ngrams {count}")
    return ngrams


def save_folder(
    folder: Path,
    model: SentenceModel,
    tokenizer: Path,
    *,
    ngrams: Sequence[str] = (),
    dtype: str = "int8",
    card: str | None = None,
) -> None:
    """Writes a model folder, config.json last, so that a folder cut short is not taken for a whole one.

    ``ngrams`` are those of the model, in the order of its vectors; ValueError where there are not as many.
    """
    state = {k: v.detach().cpu().numpy() for k, v in model.state_dict().items()}
    write_folder(folder, model.config, state, tokenizer, ngrams=ngrams, dtype=dtype, card=card)


def write_folder(
    folder: Path,
    config: EncoderConfig,
    weights: Mapping[str, np.ndarray],
    tokenizer: Path,
    *,
    ngrams: Sequence[str] = (),
    dtype: str = "int8",
    card: str | None = None,
) -> None:
    """As `save_folder`, of float weights without a model, as `write_weights` takes them."""
    if len(ngrams) != config.ngrams:
        raise ValueError(f"{len(ngrams)} n-grams for a model of {config.ngrams}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).unlink(missing_ok=True)
    (folder / SCORER).unlink(missing_ok=True)  # fitted to what was there before
    write_weights(weights, folder / WEIGHTS, dtype=dtype, ngrams=config.ngrams)
    if tokenizer.resolve() != (folder / TOKENIZER).resolve():
        with replacing(folder / TOKENIZER) as file:
            file.write(tokenizer.read_bytes())
    (folder / NGRAMS).unlink(missing_ok=True)
    if ngrams:
        with replacing(folder / NGRAMS) as file:
            file.write("".join(f"{ngram}\n" for ngram in ngrams).encode())
    if card is not None:
        with replacing(folder / "README.md") as file:
            file.write(card.encode())
    write_json(folder / CONFIG, config.to_json())
