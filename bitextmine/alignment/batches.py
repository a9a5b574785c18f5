"""Align many documents in parallel, in order, resuming from a journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from bitextmine.alignment.aligner import Alignment, align_windows, sentences
from bitextmine.alignment.formats import AlignedDocument
from bitextmine.alignment.inputs import Task
from bitextmine.alignment.search import Settings
from bitextmine.alignment.windows import make_windows
from bitextmine.encoder.encoder import Encoder
from bitextmine.files.journal import Journal
from bitextmine.files.lines import line_digest
from bitextmine.run import Run

Document = tuple[Task, Sequence[str], Sequence[str]]  # with its source and target lines

# Documents are encoded together up to these numbers.
_BATCH_SENTENCES = 20_000
_BATCH_DOCUMENTS = 32


def align_tasks(
    tasks: Sequence[Task], encoder: Encoder, settings: Settings, run: Run, journal: Journal | None = None
) -> Iterator[AlignedDocument]:
    """Yield one result per task in order, reusing and extending the journal.

    A record of the journal counts as long as the digest of its documents is the same.
    """
    many = len(tasks) > 1
    with (
        ThreadPoolExecutor(run.thread_count) as pool,
        run.progress(len(tasks) if many else None, "aligning", "documents" if many else "sentences") as bar,
    ):
        tick = None if many else bar.update
        done = 0
        for batch in _batches(tasks, run.errors):
            digests = [line_digest([str(len(src)), *src, *tgt]) for _, src, tgt in batch]
            kept = 0
            if journal is not None:
                for place, digest in enumerate(digests[: max(0, len(journal) - done)]):
                    record = journal[done + place]
                    if record["digest"] != digest:
                        break
                    yield AlignedDocument(**record["aligned"])
                    kept += 1
                if kept < len(batch):
                    journal.truncate(done + kept)
            if many:
                bar.update(kept)
            else:
                bar.total = len(batch[0][1]) + len(batch[0][2])
            fresh = _align(batch[kept:], encoder, settings, run, pool, tick)
            for document, digest, alignment in zip(batch[kept:], digests[kept:], fresh, strict=True):
                aligned = AlignedDocument.of(*document, alignment)
                if journal is not None:
                    journal.append({"digest": digest, "aligned": asdict(aligned)})
                bar.update(1 if many else 0)
                yield aligned
            done += len(batch)


def _batches(tasks: Sequence[Task], errors: str) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for task in tasks:
        src, tgt = task.src.read(errors), task.tgt.read(errors)
        batch.append((task, src, tgt))
        size += len(src) + len(tgt)
        if size >= _BATCH_SENTENCES or len(batch) == _BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _align(
    batch: Sequence[Document],
    encoder: Encoder,
    settings: Settings,
    run: Run,
    pool: ThreadPoolExecutor,
    tick: Callable[[int], object] | None,
) -> Iterator[Alignment]:
    numbers = [(sentences(src), sentences(tgt)) for _, src, tgt in batch]
    texts = [
        [side[i] for i in rows]
        for (_, *sides), both in zip(batch, numbers, strict=True)
        for side, rows in zip(sides, both, strict=True)
    ]
    windows = make_windows(encoder, texts, settings.window_sizes, run.batch_tokens)
    if len(batch) == 1:  # in this thread, where Ctrl-C stops it at once
        yield align_windows(windows[0], windows[1], settings, *numbers[0], tick)
        return
    futures = [
        pool.submit(align_windows, src, tgt, settings, *both)
        for src, tgt, both in zip(windows[::2], windows[1::2], numbers, strict=True)
    ]
    del windows, texts
    try:
        while futures:
            yield futures.pop(0).result()
    finally:
        for future in futures:  # interrupted
            future.cancel()
