"""From a corpus to its embedding in shared storage."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.manifest import manifest_path
from bitextmine.embeddings.shared import manifest_there
from bitextmine.encoder.encoder import Encoder
from bitextmine.errors import UsageError
from bitextmine.files.lines import iter_lines, line_digest
from bitextmine.files.storage import Remote
from bitextmine.files.streams import read_once

__all__ = ["embed_to"]

log = logging.getLogger(__name__)


def _send(npy: Path, there: Remote) -> None:
    """Puts a copy of a finished embedding there, the manifest last."""
    there.send(npy)
    with there.with_suffix(".json").writing() as file:
        file.write(manifest_path(npy).read_bytes())


def embed_to(
    there: Remote,
    corpus: str | os.PathLike[str],
    encoder: Encoder,
    cache: str | os.PathLike[str] | None,
    **how: Any,
) -> None:
    """Embeds a corpus in a cache folder and sends what came of it to ``there``, whose name ends in .npy; how: what
    `embed_corpus` takes. Where an embedding of this text and model lies already, nothing is done, unless ``force``.

    Raises UsageError without a folder, and for a corpus from a pipe; BitextmineError as `embed_corpus` does, and for
    storage that cannot be written to: the vectors are in the cache then, and the next run only sends them.
    """
    if cache is None:
        raise UsageError(
            f"--out {there}: vectors are made in a folder of this machine and sent then; name it with --cache"
        )
    if read_once(corpus):
        raise UsageError(f"--out {there}: what comes from a pipe cannot go there; put the corpus into a file")
    there.check_writable()
    found = None if how.get("force") else manifest_there(there)
    if (
        found is not None
        and found.model_hash == encoder.hash
        and found.text_sha256 == line_digest(iter_lines(corpus, how.get("errors", "strict")))
    ):
        log.info("%s: up to date", there)
        return
    npy = embed_corpus(corpus, encoder, cache=cache, **how)
    _send(npy, there)
    log.info("%s: sent", there)
