"""An encoder's files on the workers, sent by their content, so that no node need see the folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bitextmine.encoder.folder import resolve
from bitextmine.encoder.hub import FILES
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.executor import Kept, Shared, Workers
from bitextmine.files.atomic import staging_folder

if TYPE_CHECKING:
    from bitextmine.encoder.encoder import Encoder


@dataclass(frozen=True)
class SentModel:
    """An encoder as tasks carry it: the digest of its files, their names, and their contents, by name."""

    key: str
    names: tuple[str, ...]
    contents: Shared


def send_model(workers: Workers, model: str | os.PathLike[str] | Encoder) -> SentModel:
    """Send the files of an encoder to the workers; each node that needs them fetches them once.

    Raises:
        UsageError: the encoder was not read from a folder.
        BitextmineError: there is no room for it.
    """
    if isinstance(model, (str, os.PathLike)):
        folder = resolve(model)
    elif model.folder is not None:
        folder = model.folder
    else:
        raise UsageError(f"model {model.name!r}: on a cluster, give the encoder's name or folder")
    files = {path for pattern in FILES for path in folder.glob(pattern) if path.is_file()}
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}
    workers.check_fits(sum(map(len, contents.values())), f"the model {folder.name}")
    names = tuple(contents)
    return SentModel(_digest(folder, names), names, workers.put(contents))


def encoder_of(kept: Kept, model: SentModel, device: str) -> Encoder:
    """Return the encoder on a worker: the one of the last task, or read from its files."""
    from bitextmine.encoder import load_encoder

    if kept.get("encoder of") != (model.key, device):
        kept.pop("encoder", None)
        kept["encoder"] = load_encoder(_unpacked(model), device)
        kept["encoder of"] = (model.key, device)
    encoder: Encoder = kept["encoder"]
    return encoder


def _unpacked(model: SentModel) -> Path:
    """Return a folder of this machine with the files, shared by all workers of this user."""
    base = Path(tempfile.gettempdir(), f"bitextmine-models-{os.getuid()}")
    base.mkdir(mode=0o700, exist_ok=True)
    if base.lstat().st_uid != os.getuid():
        raise BitextmineError(f"{base}: belongs to another user; set TMPDIR on that node to another folder")
    folder = base / model.key
    if _digest(folder, model.names) != model.key:
        with staging_folder(folder) as staged:
            for name, content in model.contents.get().items():
                (staged / name).parent.mkdir(parents=True, exist_ok=True)
                (staged / name).write_bytes(content)
            if _digest(folder, model.names) != model.key:  # another worker may have been faster
                if folder.exists():
                    folder.rename(staged / "damaged")
                staged.rename(folder)
    return folder


def _digest(folder: Path, names: Iterable[str]) -> str:
    """Return the SHA-256 of files and their names; "" if one is missing."""
    digest = hashlib.sha256()
    try:
        for name in names:
            with open(folder / name, "rb") as file:
                digest.update(f"{name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    except OSError:
        return ""
    return digest.hexdigest()
