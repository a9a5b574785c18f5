"""What both protocols of retrieval share: how sentences are ranked, and what they are embedded with, and where."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from bitextmine.arguments import a_path, memory_bytes, whole_number, yes_or_no
from bitextmine.embeddings.places import embedding_paths
from bitextmine.embeddings.store import open_embedding
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.lines import LineHasher, iter_lines, line_digest, some_lines
from bitextmine.files.ours import Made, is_ours
from bitextmine.files.streams import open_output

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["Bench", "RankingOptions", "open_bench"]


@dataclass(frozen=True)
class RankingOptions:
    """By what sentences are ranked.

    k: neighbours of the ratio margin; csls: of CSLS; candidates: nearest by cosine that these choose among; rescore: by
    the scorer of `mine --rescore` as well. Raises UsageError for what is no whole number from 1, and for a scorer
    without margins.
    """

    k: int = 4
    csls: int = 10
    candidates: int = 10
    rescore: bool = False

    def __post_init__(self) -> None:
        for name in ("k", "csls", "candidates"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        object.__setattr__(self, "rescore", yes_or_no("rescore", self.rescore))
        if self.rescore and self.k == 1:
            raise UsageError(
                "rescore with k=1 (--rescore -k 1): the scorer looks at margins, and one neighbour makes none; "
                "take a k of 2 or more"
            )


@dataclass(frozen=True)
class Bench:
    """An encoder, the folder for texts and embeddings, and what to search with. memory: bytes that each search may
    take, None for half of what is free."""

    encoder: Encoder
    folder: Path
    device: str
    batch_tokens: int | None = None
    memory: int | None = None

    def embed(self, name: str, lines: Iterable[str], lang: str) -> tuple[Path, NDArray]:
        """Writes lines to a file of that name; returns its path and their vectors, float16 (lines, d).

        Raises BitextmineError where another text has that name already, with no embedding of ours beside it.
        """
        from bitextmine.embeddings.embed import embed_corpus

        text = self.folder / name
        ours = not text.exists() or is_ours(embedding_paths(text)[1], Made.EMBEDDING)
        with open_output(text) as out:
            written = LineHasher()
            for some in some_lines(lines, 4096):
                out.writelines(f"{line}\n" for line in some)
                written.update(some)
            # The text of a run that was killed before it had an embedding is this one.
            if not ours and line_digest(iter_lines(text, "replace")) != written.hexdigest():
                raise BitextmineError(
                    f"{text}: it is there already, and no evaluation wrote it; move it away, or name another --work"
                )
        npy = embed_corpus(text, self.encoder, lang=lang, batch_tokens=self.batch_tokens, elsewhere="--work")
        return text, open_embedding(npy)[0]


@contextlib.contextmanager
def open_bench(
    model: str | os.PathLike[str] | Encoder,
    folder: str | os.PathLike[str] | None,
    device: str,
    batch_tokens: int | None,
    memory: int | str | None,
) -> Iterator[Bench]:
    """A bench with that encoder, or the one that `load_encoder` loads. folder: it stays; None: a temporary one.

    Raises BitextmineError for a folder that cannot be made.
    """
    from bitextmine.device import device_name
    from bitextmine.encoder import as_encoder

    memory = memory_bytes(memory)
    if folder is not None:
        a_path("work", folder)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise BitextmineError(f"{folder}: cannot make this folder: {e.strerror or e}") from None
    encoder = as_encoder(model, device)
    place = device_name(device)
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="bitextmine-") as name:
            yield Bench(encoder, Path(name), place, batch_tokens, memory)
        return
    yield Bench(encoder, Path(folder), place, batch_tokens, memory)
