"""An encoder with a folder for texts and embeddings, which both protocols of retrieval use."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from bitextmine.arguments import a_path
from bitextmine.embeddings.places import embedding_paths
from bitextmine.embeddings.store import open_embedding
from bitextmine.errors import BitextmineError
from bitextmine.files.lines import LineHasher, iter_lines, line_digest, some_lines
from bitextmine.files.ours import Made, is_ours
from bitextmine.files.streams import open_output
from bitextmine.run import Run

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder


@dataclass(frozen=True)
class Bench:
    """An encoder, and a folder for texts and embeddings."""

    encoder: Encoder
    folder: Path
    run: Run

    def embed(self, name: str, lines: Iterable[str], lang: str) -> tuple[Path, NDArray]:
        """Write lines to a file and embed it.

        Returns:
            The path of the text, and its vectors (lines, d) float16.

        Raises:
            BitextmineError: another text has that name, without an embedding of ours beside it.
        """
        from bitextmine.embeddings.embed import embed_corpus

        text = self.folder / name
        ours = not text.exists() or is_ours(embedding_paths(text)[1], Made.EMBEDDING)
        with open_output(text) as out:
            written = LineHasher()
            for some in some_lines(lines, 4096):
                out.writelines(f"{line}\n".encode() for line in some)
                written.update(some)
            # A run killed between text and embedding leaves this very text.
            if not ours and line_digest(iter_lines(text, "replace")) != written.hexdigest():
                raise BitextmineError(
                    f"{text}: this file was not written by an evaluation; move it away, or name another --work"
                )
        npy = embed_corpus(text, self.encoder, self.run, lang=lang)
        return text, open_embedding(npy)[0]


@contextlib.contextmanager
def open_bench(
    model: str | os.PathLike[str] | Encoder, folder: str | os.PathLike[str] | None, run: Run
) -> Iterator[Bench]:
    """Yield a bench in a folder that stays, or in a temporary one.

    Raises:
        BitextmineError: the folder cannot be made, or the model cannot be loaded.
    """
    from bitextmine.encoder import as_encoder

    with contextlib.ExitStack() as stack:
        if folder is None:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bitextmine-")))
        else:
            path = Path(a_path("work", folder))
            try:
                path.mkdir(parents=True, exist_ok=True)
            except OSError as e:
                raise BitextmineError(f"{folder}: cannot make this folder: {e.strerror or e}") from None
        yield Bench(as_encoder(model, run.device), path, run)
