"""Vectors of some lines of a corpus, as a second, slower encoder makes them: each line is encoded once, and kept.

Lines in capitals are encoded in sentence case: large encoders have seen few of them, and take their words apart.

Rows are appended to a file as they come, in float16, shortest lines first, so that batches hold lines of like length.
The `Journal` beside the file names the lines of each block and its checksum. A run that was interrupted continues after
the last block, and one that asks for further lines appends them.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.console import Progress, counted, silent
from bitextmine.embeddings.store import DTYPE, VectorFile, check_fresh, embedding_path, halves, short_hash
from bitextmine.encoder.encoder import PRECOMPUTED, Encoder, refuse
from bitextmine.errors import BitextmineError, explained
from bitextmine.files.atomic import cannot_write, write_at
from bitextmine.files.corpus import Corpus, Spool
from bitextmine.files.journal import Journal, read_head
from bitextmine.run import Run

JOB = "lines"
Elsewhere = Callable[[Iterable[list[str]], int | None], Iterator[NDArray[Any]]]
# Lines between two records of a slow encoder: some seconds of work.
_SLOW_BLOCK = 1_024


class SelectedVectors(contextlib.AbstractContextManager["SelectedVectors"]):
    """The vectors of some lines of a corpus; open it in a ``with`` statement.

    Their file lies beside the corpus, or in the folder `cache`; lines in memory have none. `elsewhere` yields the
    vectors of blocks of lines, given batch_tokens, in place of the encoder.

    Raises:
        BitextmineError: on opening, if another process writes the file, or it holds vectors of another size.
    """

    def __init__(
        self,
        text: Corpus,
        encoder: Encoder,
        run: Run,
        cache: str | os.PathLike[str] | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.text, self.encoder, self._run, self._elsewhere = text, encoder, run, elsewhere
        self._place = np.full(len(text), -1, dtype=np.int64)  # of the row of each line
        self._rows = 0
        self._spool: Spool | _RowFile | None = None
        self._whole: VectorFile | None = None
        self._path: Path | None = None
        if text.source is not None:
            whole = embedding_path(text, encoder.hash, cache)
            own = f"{text.source.stem}.{short_hash(encoder.hash)}.lines"  # such as corpus.fr.4f2a91c0.lines
            self._path = Path(own) if cache is None else whole.with_suffix(".lines")
            if check_fresh(whole, text.sha256, encoder.hash) is None:
                self._whole = VectorFile(whole)

    def __enter__(self) -> SelectedVectors:
        if self._whole is not None:
            return self
        if self.encoder.name == PRECOMPUTED:
            refuse(self.text.name)
        if self._path is None:
            self._spool = Spool()
            return self
        self._spool = _RowFile(self._path, self._identity(), self.encoder.dim)
        for lines in self._spool.blocks:
            self._place[lines] = self._rows + np.arange(len(lines))
            self._rows += len(lines)
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._spool, _RowFile):
            self._spool.close()

    def _identity(self) -> dict[str, Any]:
        settings = self.encoder.network.settings(self._run.batch_tokens)
        return {"text_sha256": self.text.sha256, "model_hash": self.encoder.hash, **settings}

    def missing(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of some lines, each once and increasing, that have no vector yet."""
        lines = np.unique(lines)
        return lines[:0] if self._whole is not None else lines[self._place[lines] < 0]

    def encode(self, lines: NDArray[np.int64], progress: Progress = silent) -> None:
        """Encode lines that have no vector yet; `progress` gets the numbers of lines.

        Raises:
            BitextmineError: the encoder fails, or makes vectors that are not finite or of another size; the lines
                before are kept.
        """
        network, missing = self.encoder.network, self.missing(lines)
        lengths = np.fromiter(map(len, self.text.take(missing)), dtype=np.int64, count=len(missing))
        missing = missing[np.argsort(lengths, kind="stable")]
        size = min(network.chunk_lines, _SLOW_BLOCK) if network.slow else network.chunk_lines
        blocks = [missing[start : start + size] for start in range(0, len(missing), size)]
        texts = (list(map(_sentence_case, self.text.take(block))) for block in blocks)
        made = (self._elsewhere or self._here)(texts, self._run.batch_tokens)
        for number, block in enumerate(blocks):
            done = f"{number * size:,} of {counted(len(missing), 'line')}"
            self._append(block, self._checked(block, made, done))
            progress(len(block))

    def _here(self, texts: Iterable[list[str]], batch_tokens: int | None) -> Iterator[NDArray[Any]]:
        return (self.encoder.encode(lines, batch_tokens=batch_tokens) for lines in texts)

    def take(self, lines: NDArray[np.int64]) -> NDArray[np.float16]:
        """Return the vectors (n, dim) of encoded lines (n,), in any order; ValueError for one that is not encoded."""
        if self._whole is not None:
            known, inverse = np.unique(lines, return_inverse=True)
            return self._whole[known][inverse]
        place = self._place[lines]
        if len(place) and place.min() < 0:
            raise ValueError("a line is not encoded")
        out = np.empty((len(lines), self.encoder.dim), DTYPE)
        width, spool = out.shape[1] * DTYPE.itemsize, self._spool
        assert spool is not None
        for row, at in zip(out, (place * width).tolist(), strict=True):
            row[:] = np.frombuffer(spool.read(at, at + width), DTYPE)
        return out

    def _checked(
        self, block: NDArray[np.int64], made: Iterator[NDArray[Any]], done: str
    ) -> NDArray[np.float16]:
        """Return the next vectors, those of a block, in float16."""
        encoder = self.encoder
        where = f"the second encoder {encoder.name}: {self.text.name}: after {done}"
        try:
            vectors = next(made)
        except BitextmineError as e:
            raise BitextmineError(f"{where}: {e}") from e
        except Exception as e:  # of any kind: an encoder of another toolkit, a GPU
            raise BitextmineError(f"{where}: {type(e).__name__}: {e}") from e
        if vectors.shape != (len(block), encoder.dim):
            raise BitextmineError(
                f"{where}: expected vectors of {encoder.dim} numbers for {counted(len(block), 'line')}, found an array "
                f"of shape {vectors.shape}"
            )
        rows, bad = halves(vectors)
        if bad is not None:
            raise BitextmineError(
                f"{where}: the vector of line {int(block[bad]) + 1:,} has NaN, infinite or too large numbers; the "
                "model is damaged, or its vectors are not normalised"
            )
        return rows

    def _append(self, block: NDArray[np.int64], rows: NDArray[np.float16]) -> None:
        assert self._spool is not None
        if isinstance(self._spool, _RowFile):
            self._spool.add(block, rows)
        else:
            self._spool.append(rows.data.cast("B"))
        self._place[block] = self._rows + np.arange(len(block))
        self._rows += len(block)


def _sentence_case(line: str) -> str:
    """Return a line in lower case after its first letter if it has several words, all in capitals."""
    return line.capitalize() if line.isupper() and " " in line.strip() else line


class _RowFile:
    """Rows in a file, with their journal; `blocks` are the lines of each block that is there already."""

    def __init__(self, path: Path, identity: dict[str, Any], dim: int) -> None:
        self._path, self._width = path, dim * DTYPE.itemsize
        journal = Path(f"{path}.journal")
        if path.exists() and path.stat().st_size and read_head(journal) is None:
            raise BitextmineError(
                f"{path}: this name is needed for vectors, and the file there is of another program; "
                "move it away"
            )
        self._journal = Journal(journal, JOB, identity).__enter__()
        self._fd, self._end = -1, 0
        try:
            with explained(f"{path}: cannot write"):
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self.blocks = list(self._whole_blocks(dim))
            os.ftruncate(self._fd, self._end)
        except BaseException:
            self.close()
            raise

    def _whole_blocks(self, dim: int) -> Iterator[NDArray[np.int64]]:
        """Yield the lines of the blocks up to the first whose rows are not there."""
        for number, record in enumerate(self._journal):
            if record["dim"] != dim:
                raise BitextmineError(
                    f"{self._path}: holds vectors of {record['dim']} numbers, but the encoder makes {dim}; remove it, "
                    "or name the encoder that made it"
                )
            lines = np.array(record["lines"], dtype=np.int64)
            rows = self.read(self._end, self._end + len(lines) * self._width)
            if zlib.crc32(rows) != record["crc32"]:
                self._journal.truncate(number)
                return
            self._end += len(rows)
            yield lines

    def add(self, lines: NDArray[np.int64], rows: NDArray[np.float16]) -> None:
        """Append a block; it is recorded when its rows are on disk."""
        data = rows.data.cast("B")
        try:
            write_at(self._fd, data, self._end)
            os.fsync(self._fd)
            record = {"dim": rows.shape[1], "crc32": zlib.crc32(data), "lines": lines.tolist()}
            self._journal.append(record, sync=True)
        except OSError as e:
            raise cannot_write(e, self._path) from None
        self._end += len(data)

    def read(self, start: int, stop: int) -> bytes:
        return os.pread(self._fd, stop - start, start)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        self._journal.close()
