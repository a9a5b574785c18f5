"""Encode a corpus on workers: shards of lines go out, rows come back in files, in order."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.distributed.models import SentModel, encoder_of, send_model
from bitextmine.distributed.shards import shard_rows
from bitextmine.embeddings.embed import EncodedLines, Lines
from bitextmine.embeddings.npy import DTYPE, npy_header, open_vectors, shards_path, vectors_digest
from bitextmine.errors import BitextmineError
from bitextmine.executor import Executor, Kept, Task, Workers
from bitextmine.files.atomic import replacing
from bitextmine.files.journal import journal_folder, remove_folder
from bitextmine.files.jsonfile import read_json, write_json

if TYPE_CHECKING:
    from bitextmine.embeddings.writer import EmbeddingWriter
    from bitextmine.encoder.encoder import Encoder

_HERE = "bitextmine.distributed.encoding"


class ClusterEncoding:
    """Encodes lines on workers, for `embeddings.embed.embed_corpus`, to the bytes of an encoder on one machine.

    A worker writes the rows of a shard into a file of the folder CORPUS.npy.shards; the driver appends the files to the
    embedding, in order, and removes them. A driver that was killed finds the finished ones. Twice as many files as the
    workers have tasks lie there at most. The cluster is connected to when there is something to encode, until the end
    of the ``with`` block.
    """

    chunk_lines: int
    slow: bool

    def __init__(
        self, executor: Executor, model: str | os.PathLike[str] | Encoder, device: str = "auto"
    ) -> None:
        self._executor, self._device = executor, executor.device(device)
        self._model: str | os.PathLike[str] | Encoder = model
        self._stack = contextlib.ExitStack()
        self._connection: Workers | None = None
        self._sent: SentModel | None = None
        self._facts: dict[str, Any] = {}

    @property
    def _workers(self) -> Workers:
        if self._connection is None:
            self._connection = self._stack.enter_context(self._executor.open())
        return self._connection

    def __enter__(self) -> ClusterEncoding:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection = None
        self._stack.close()

    def prepare(self, folder: Path, batch_tokens: int | None) -> dict[str, Any]:
        """Prepare workers that see `folder`; return the settings that their vectors depend on."""
        self._workers.share([folder])
        if self._sent is None:
            self._sent = send_model(self._workers, self._model)
        task = Task(f"{_HERE}:encoder_facts", (self._sent, self._device, batch_tokens), "loading the model")
        self._facts = self._workers.run(task)
        self.chunk_lines, self.slow = self._facts["chunk_lines"], self._facts["slow"]
        settings: dict[str, Any] = self._facts["settings"]
        return settings

    def encode(
        self, lines: Iterator[Lines], rows: int, writer: EmbeddingWriter, batch_tokens: int | None
    ) -> Iterator[EncodedLines]:
        """Yield the lines with their vectors, in order.

        Args:
            lines: chunks of the corpus.
            rows: the number of lines of the whole corpus.
            writer: writes the vectors.
            batch_tokens: see `Run`.
        """
        size = self._workers.shard_rows or shard_rows(rows, least=self.chunk_lines)
        folder = shards_path(writer.npy_path.absolute())
        tasks = self._tasks(lines, size, folder, batch_tokens)
        finished: list[tuple[int, Path]] = []
        with (
            journal_folder(folder, "shards", writer.identity),
            self._workers.stage(f"embed {writer.npy_path.name}"),
        ):
            for task, facts in self._workers.map(tasks, ahead=self._workers.slots):
                shard: _Shard = task.key
                try:
                    vectors = _read_shard(shard.path, facts)
                except BitextmineError:
                    vectors = _read_shard(shard.path, self._workers.run(task))
                at = 0
                for part, cut in zip(shard.lines, facts["cut"], strict=True):
                    yield EncodedLines(part, vectors[at : at + part.count_fresh], cut)
                    at += part.count_fresh
                finished.append((shard.stop, shard.path))
                while finished and finished[0][0] <= writer.safe_rows:
                    _remove(finished.pop(0)[1])
            writer.sync()
            remove_folder(folder, "shards")

    def _tasks(
        self, lines: Iterator[Lines], size: int, folder: Path, batch_tokens: int | None
    ) -> Iterator[Task]:
        checked = False
        assert self._sent is not None
        how = Encode(self._sent, self._device, batch_tokens, self._facts)
        for _, group in itertools.groupby(lines, lambda part: part.start // size):
            parts = list(group)
            shard = _Shard(folder, parts)
            texts = [_packed(part.fresh) for part in parts]
            if not checked:
                self._workers.check_fits(sum(map(len, texts)), "the text of a shard")
                checked = True
            yield Task(
                f"{_HERE}:encode_shard",
                (how, texts, str(shard.path), shard.key),
                f"encoding lines {shard.start + 1} to {shard.stop}",
                key=shard,
            )


@dataclass(frozen=True)
class Encode:
    """How workers encode.

    Attributes:
        facts: those of the first worker (`encoder_facts`); other ones would mean other bytes, and are an error.
    """

    model: SentModel
    device: str
    batch_tokens: int | None
    facts: dict[str, Any]


class _Shard:
    """Chunks of lines that one worker encodes, and the file for their rows."""

    def __init__(self, folder: Path, lines: Sequence[Lines]) -> None:
        self.lines = [part.without_text() for part in lines]  # the text is in the call
        self.start, self.stop = lines[0].start, lines[-1].start + lines[-1].count
        self.path = folder / f"{self.start}-{self.stop}.npy"
        self.key = f"{self.start}-{self.stop}"


def encoder_facts(kept: Kept, model: SentModel, device: str, batch_tokens: int | None) -> dict[str, Any]:
    """Return the properties of the worker's encoder that decide the batches, and the last bits of a vector."""
    encoder = encoder_of(kept, model, device)
    return {
        "chunk_lines": encoder.network.chunk_lines,
        "slow": encoder.network.slow,
        "settings": encoder.network.settings(batch_tokens),
    }


def encode_shard(kept: Kept, how: Encode, texts: Sequence[bytes], path: str, key: str) -> dict[str, Any]:
    """Encode chunks of lines on a worker, and write their rows to a file; a finished file is not made again.

    Args:
        kept: the worker's state.
        how: the encoder and its settings.
        texts: the chunks.
        path: the file.
        key: SHA-256 of the corpus up to the end of the shard.

    Returns:
        The key, the digest of the rows, and the number of lines that were cut in each chunk.
    """
    found = _finished(Path(path), key)
    if found is not None:
        return found
    encoder = encoder_of(kept, how.model, how.device)
    here = encoder_facts(kept, how.model, how.device, how.batch_tokens)
    if here != how.facts:
        raise BitextmineError(
            f"the workers encode in different ways ({json.dumps(how.facts['settings'])} and "
            f"{json.dumps(here['settings'])}), and rows would depend on who made them; use nodes of one kind"
        )
    parts, cuts = [], []
    with ThreadPoolExecutor(1) as ahead:
        waiting = ahead.submit(encoder.tokenize, _unpacked(texts[0]))
        for number in range(len(texts)):
            pieces, cut, inverse = waiting.result()
            if number + 1 < len(texts):
                waiting = ahead.submit(encoder.tokenize, _unpacked(texts[number + 1]))
            vectors = encoder.encode_pieces(pieces, batch_tokens=how.batch_tokens)
            vectors = vectors if inverse is None else vectors[inverse]
            with np.errstate(over="ignore"):  # the driver finds what is infinite
                parts.append(np.ascontiguousarray(vectors, dtype=DTYPE))
            cuts.append(cut)
    rows = np.concatenate(parts)
    digest = hashlib.blake2b(rows.data.cast("B") if rows.size else b"", digest_size=32).hexdigest()
    try:
        with replacing(path) as file:
            file.write(npy_header(*rows.shape))
            file.write(rows.data.cast("B") if rows.size else b"")
    except OSError as e:
        raise BitextmineError(f"{path}: cannot write: {e.strerror or e}") from None
    made = {"key": key, "digest": digest, "cut": cuts}
    write_json(Path(path).with_suffix(".json"), made)
    return made


def _finished(path: Path, key: str) -> dict[str, Any] | None:
    """Return the result for a file that a worker of a killed run has finished."""
    beside = path.with_suffix(".json")
    if not path.exists() or not beside.exists():
        return None
    with contextlib.suppress(BitextmineError, OSError):
        made = read_json(beside)
        if made.get("key") == key and vectors_digest(path) == made.get("digest"):
            return made
    return None


def _read_shard(path: Path, facts: dict[str, Any]) -> np.ndarray:
    """Return the rows in a file; raise BitextmineError if it is missing or another one."""
    if vectors_digest(path) != facts["digest"]:
        raise BitextmineError(f"{path}: not what the worker wrote")
    return open_vectors(path)


def _remove(path: Path) -> None:
    for each in (path.with_suffix(".json"), path):
        with contextlib.suppress(OSError):
            each.unlink()


def _packed(lines: Sequence[str]) -> bytes:
    """Return lines as they are sent; none holds a line feed."""
    return json.dumps(len(lines)).encode() + b"\n" + "\n".join(lines).encode("utf-8", "surrogatepass")


def _unpacked(data: bytes) -> list[str]:
    count, _, text = data.partition(b"\n")
    return text.decode("utf-8", "surrogatepass").split("\n") if int(count) else []
