"""The options of embeddings; nothing heavy is imported here, as ``--help`` is made of them."""

import os
import pathlib
from dataclasses import dataclass
from typing import Annotated, Any

from bitextmine.declarations import Kind, Opt, Options, Path
from bitextmine.errors import UsageError
from bitextmine.files.storage import is_remote


def npy_file(value: Any) -> str | os.PathLike[str]:
    """Return the path of an .npy file of this machine."""
    if not isinstance(value, str | os.PathLike) or pathlib.Path(value).suffix != ".npy":
        raise UsageError(f"expected a file name that ends in .npy, found {value!r}")
    if is_remote(value):
        raise UsageError(f"expected a local path, not a URL: {value}")
    return value


Cache = Annotated[
    Path | None,
    Opt(
        "--cache",
        "Folder for embeddings, for example when the corpora are read-only.",
        metavar="FOLDER",
        envvar="BITEXTMINE_CACHE",
        default="beside each corpus, or $BITEXTMINE_CACHE",
    ),
]
Force = Annotated[
    bool, Opt("--force", "Embed again even if up to date, and overwrite files of other programs.")
]


@dataclass(frozen=True)
class EmbedOptions(Options):
    """The path of an embedding, and when it is made again.

    Attributes:
        overwrite: as `force`, but what is up to date is not made again.
        chunk_lines: lines encoded together (default: what suits the encoder).
        keep_pieces: keep the tokenised lines with the corpus, for `embed.corpus_pieces`.
    """

    out: Annotated[
        Annotated[Any, Kind("FILE.npy", npy_file, "str | os.PathLike[str]")] | None,
        Opt("--out", "Output file, for a single corpus.", default="CORPUS.npy"),
    ] = None
    cache: Cache = None
    force: Force = False
    overwrite: bool = False
    chunk_lines: int | None = None
    keep_pieces: bool = False
