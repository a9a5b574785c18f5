"""A model folder: config.json, model.safetensors, tokenizer.model, and for a model with n-grams ngrams.txt."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.hub import fetch, hub_name
from bitextmine.encoder.ngrams import LONGEST
from bitextmine.encoder.tokenizer import Tokenizer
from bitextmine.encoder.weights import write_weights
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import replacing
from bitextmine.files.json_toml import read_json, write_json
from bitextmine.shipped import ALIASES, SHIPPED, shipped_folder

if TYPE_CHECKING:
    pass

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.model"
NGRAMS = "ngrams.txt"  # one per line
SCORER = "scorer.safetensors"  # of `mine`, fitted to this encoder; optional
QUALITY = "quality.safetensors"  # of `score`, fitted to this encoder; optional
SUMS = "SHA256SUMS"  # of the files of SUMMED, as sha256sum writes them; optional
SUMMED = (WEIGHTS, TOKENIZER, NGRAMS, SCORER, QUALITY)

# Encoders inside the package, and other names for them.
PACKAGED = {**dict.fromkeys(ALIASES, SHIPPED[-1]), **{name: name for name in SHIPPED}}


def packaged(name: str) -> Path:
    """Return the folder of an encoder that came with the package."""
    return shipped_folder(name)


def resolve(model: str | os.PathLike[str]) -> Path:
    """Return the folder of a packaged encoder's name, a path or a name on the hub; raises BitextmineError for others.

    A packaged name wins over a folder of that name (./default is the folder), so that names mean the same everywhere.
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
    names = ", ".join(SHIPPED)
    problem = "not a folder" if path.exists() else "no such model folder"
    raise BitextmineError(f"{text}: {problem}, and not one of the packaged encoders ({names})")


def folder_hash(folder: Path, *, check: bool = False) -> str:
    """Return 16 hex digits of a SHA-256 over the files: folders of equal hash give equal vectors.

    Raises BitextmineError if a file is missing or, with check, does not have its checksum in SHA256SUMS.
    """
    names = (CONFIG, WEIGHTS, TOKENIZER, *([NGRAMS] if (folder / NGRAMS).exists() else []))
    return hash_files({name: folder / name for name in names}, _read_sums(folder) if check else {})


def verify_folder(folder: Path) -> str:
    """Compare the files of a model folder with SHA256SUMS; return the result, which names the files not covered.

    Raises BitextmineError for a file that is damaged, or missing.
    """
    stated = _read_sums(folder)
    if not stated:
        return "no checksum to compare with"
    for name in stated.keys() & {*SUMMED}:
        if not (folder / name).exists():
            raise BitextmineError(
                f"{folder / name}: no such file, but {SUMS} lists it; get it again, or remove its line"
            )
        hash_files({name: folder / name}, stated)
    absent = [name for name in SUMMED if name not in stated and (folder / name).exists()]
    return f"checksums match; {SUMS} does not cover {', '.join(absent)}" if absent else "checksums match"


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS of a model folder."""
    names = [name for name in SUMMED if (folder / name).exists()]
    _put_sums(folder, {name: file_digest(folder / name).hex() for name in names})


@contextlib.contextmanager
def summed(path: Path) -> Iterator[None]:
    """Keep SHA256SUMS beside ``path`` true while that file is written, if there is one and it covers such files.

    A run that is killed in between leaves the file not covered, never with a wrong checksum.
    """
    kept = _read_sums(path.parent) if path.name in SUMMED else {}
    if kept.pop(path.name, None):
        _put_sums(path.parent, kept)
    yield
    if kept:
        _put_sums(path.parent, {**kept, path.name: file_digest(path).hex()})


def _read_sums(folder: Path) -> dict[str, str]:
    if not (folder / SUMS).is_file():
        return {}
    lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _put_sums(folder: Path, sums: Mapping[str, str]) -> None:
    with replacing(folder / SUMS) as file:
        file.write("".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode())


def hash_files(files: Mapping[str, Path], stated: Mapping[str, str] | None = None) -> str:
    """Return 16 hex digits of a SHA-256 over files and their names; raise BitextmineError if one has another digest."""
    digest = hashlib.sha256()
    for name, path in files.items():
        part = file_digest(path)
        if (wanted := (stated or {}).get(name, part.hex())) != part.hex():
            raise BitextmineError(
                f"{path}: damaged: its SHA-256 is {part.hex()[:8]}..., but {SUMS} says "
                f"{wanted[:8]}...; get the file again, or remove {SUMS} if you changed the file"
            )
        digest.update(name.encode() + b"\0" + part)
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
    for name in (WEIGHTS, TOKENIZER, NGRAMS, SCORER, QUALITY, SUMS, CONFIG):
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

    weights and dtype are as for `write_weights`; ngrams are in the order of their vectors (ValueError for another
    number than config's); tokenizer is the SentencePiece model to copy.
    """
    if len(ngrams) != config.ngrams:
        raise ValueError(f"{len(ngrams)} n-grams for a model of {config.ngrams}")
    folder.mkdir(parents=True, exist_ok=True)
    # Scorers fitted to the earlier model go as well.
    for name in (CONFIG, SCORER, QUALITY, SUMS):
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
    write_sums(folder)


def _missing(path: Path) -> BitextmineError:
    return BitextmineError(f"{path}: no such file: a model folder holds {CONFIG}, {WEIGHTS} and {TOKENIZER}")
