"""Align many documents in parallel, in order, resuming from a journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from bitextmine.alignment.aligner import Aligner, Alignment, sentences
from bitextmine.alignment.costs import Tick
from bitextmine.alignment.formats import AlignedDocument
from bitextmine.alignment.inputs import Reader, Task
from bitextmine.files.journal import Journal
from bitextmine.files.lines import line_digest
from bitextmine.run import Run

Document = tuple[Task, Sequence[str], Sequence[str]]  # with its source and target lines

# Documents are encoded together up to these numbers.
_BATCH_SENTENCES = 20_000
_BATCH_DOCUMENTS = 32


def align_tasks(
    tasks: Sequence[Task], reader: Reader, aligner: Aligner, run: Run, journal: Journal | None = None
) -> Iterator[AlignedDocument]:
    """Yield one result per task in order, reusing and extending the journal.

    A record of the journal counts as long as the digest of its documents is the same.
    """
    many = len(tasks) > 1
    with (
        ThreadPoolExecutor(run.thread_count) as pool,
        run.progress(len(tasks) if many else None, "aligning", "documents" if many else "sentences") as bar,
    ):
        done = 0
        for batch in _batches(tasks, reader):
            digests = [line_digest([str(len(src)), *src, *tgt]) for _, src, tgt in batch]
            kept = 0 if journal is None else _kept(journal, done, digests)
            for place in range(done, done + kept):
                assert journal is not None
                yield AlignedDocument.from_json(journal[place]["aligned"])
            if many:
                bar.update(kept)
            else:
                bar.total = len(batch[0][1]) + len(batch[0][2])
            fresh = _align(batch[kept:], aligner, pool, None if many else bar.update)
            for document, digest, alignment in zip(batch[kept:], digests[kept:], fresh, strict=True):
                aligned = AlignedDocument.of(*document, alignment)
                if journal is not None:
                    journal.append({"digest": digest, "aligned": aligned.to_json()})
                bar.update(1 if many else 0)
                yield aligned
            done += len(batch)


def _kept(journal: Journal, done: int, digests: Sequence[str]) -> int:
    """Return how many documents of a batch the journal has, and drop its records that no longer fit."""
    records = [journal[done + place] for place in range(min(len(digests), max(0, len(journal) - done)))]
    pairs = zip(records, digests, strict=False)
    kept = next((i for i, (record, digest) in enumerate(pairs) if record["digest"] != digest), len(records))
    if kept < len(digests):
        journal.truncate(done + kept)
    return kept


def _batches(tasks: Sequence[Task], reader: Reader) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for task in tasks:
        src, tgt = reader.read(task.src, 0), reader.read(task.tgt, 1)
        batch.append((task, src, tgt))
        size += len(src) + len(tgt)
        if size >= _BATCH_SENTENCES or len(batch) == _BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _align(
    batch: Sequence[Document], aligner: Aligner, pool: ThreadPoolExecutor, tick: Tick
) -> Iterator[Alignment]:
    lines = [sentences(side) for _, *sides in batch for side in sides]
    texts = [side for _, *sides in batch for side in sides]
    windows = aligner.windows([[text[i] for i in rows] for text, rows in zip(texts, lines, strict=True)])
    places = list(zip(lines[::2], lines[1::2], strict=True))
    if len(batch) == 1:  # in this thread, where Ctrl-C stops it at once
        yield aligner.align(windows[0], windows[1], tick).on_lines(*places[0])
        return
    futures = [
        pool.submit(aligner.align, src, tgt) for src, tgt in zip(windows[::2], windows[1::2], strict=True)
    ]
    del windows, texts
    try:
        for both in places:
            yield futures.pop(0).result().on_lines(*both)
    finally:
        for future in futures:  # interrupted
            future.cancel()
