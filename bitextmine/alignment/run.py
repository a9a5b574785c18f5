"""Many documents, in parallel, in order, and again after a kill: what `bitextmine align` does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bitextmine.alignment.aligner import Alignment, align_windows, sentences
from bitextmine.alignment.documents import match_documents
from bitextmine.alignment.formats import Document, Form, make_form
from bitextmine.alignment.forms import FORMATS, SUFFIXES
from bitextmine.alignment.inputs import Part, Task, choose_tasks, load, matched_tasks, read_folder, read_parts
from bitextmine.alignment.journal import Journal
from bitextmine.alignment.search import Settings
from bitextmine.alignment.windows import Windows, make_windows
from bitextmine.console import counted, progress
from bitextmine.encoder import load_encoder
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.familiar import sampled, warn_unfamiliar
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpora import corpus_language
from bitextmine.files.formats.names import output_form
from bitextmine.files.lines import line_digest
from bitextmine.files.storage import place
from bitextmine.files.streams import check_writable, is_stream, keep_apart, open_output, strip_compression
from bitextmine.files.urls import is_remote
from bitextmine.signature import signature
from bitextmine.system import processors
from bitextmine.version import __version__

__all__ = ["Summary", "align_files"]

# Documents are encoded together until there are so many.
_BATCH_SENTENCES = 20_000
_BATCH_DOCUMENTS = 32
_NAMED = 3
_LOOKED_AT = 20  # documents, for their language


@dataclass
class Summary:
    """What was aligned. doubtful: the documents that do not seem to belong together; alone: those without a partner."""

    documents: int = 0
    src_sentences: int = 0
    tgt_sentences: int = 0
    links: int = 0
    paired: int = 0
    one_to_one: int = 0
    score_sum: float = 0.0
    doubtful: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    signature: str = ""

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Count a document."""
        self.documents += 1
        for key in ("src_sentences", "tgt_sentences", "links", "paired", "one_to_one", "score_sum"):
            setattr(self, key, getattr(self, key) + entry[key])
        if entry["doubtful"]:
            self.doubtful.append(name)

    def to_table(self) -> str:
        """For the person at the keyboard."""
        both = self.src_sentences + self.tgt_sentences
        lines = [
            f"{counted(self.documents, 'pair')} of documents, {counted(self.src_sentences, 'source sentence')} and "
            f"{counted(self.tgt_sentences, 'target sentence')}: {counted(self.paired, 'pair')} "
            f"({self.one_to_one:,} one to one), {counted(self.links - self.paired, 'sentence')} left out, mean score "
            f"{self.score_sum / max(1, both):.2f}"
        ]
        if self.alone:
            lines.append(f"{counted(len(self.alone), 'document')} without a partner: {_some(self.alone)}")
        if self.doubtful:
            what = "this pair" if self.documents == 1 else f"{counted(len(self.doubtful), 'pair')}"
            lines.append(
                f"warning: {what} of documents hardly fit better than random sentences do: {_some(self.doubtful)}; are "
                "they translations of each other, in languages of the encoder?"
            )
        return "\n".join([*lines, self.signature])


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def align_files(
    src: str | None = None,
    tgt: str | None = None,
    *,
    pairs: str | None = None,
    parts: bool = False,
    documents: bool = False,
    output: str = "-",
    form: str | None = None,
    ids: bool = False,
    max_size: int = 6,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str = "default",
    device: str = "auto",
    batch_tokens: int | None = None,
    errors: str = "strict",
    jobs: int | None = None,
) -> Summary:
    """Align documents and write what was found to ``output``.

    src, tgt: two files, or two folders of files that are matched by name; pairs: instead of them a list of files.
    parts: blank lines part documents in the two files. documents: find out which belong together. form: one of
    `forms.FORMATS`; None: what the output's suffix says. ids: line numbers in tsv. src_lang, tgt_lang: codes for tmx
    and jsonl; else those of the files' names. jobs: documents at a time.

    Raises BitextmineError for files that cannot be read and documents without a partner, UsageError for arguments that
    do not go together.
    """
    if (src is None or tgt is None) == (pairs is None):
        raise UsageError("give two files, two folders, or --list alone")
    if pairs is not None and (documents or parts):
        raise UsageError(
            "--list says which files belong together: --documents and --blank-lines do not go with it"
        )
    form = _form(form, output)
    if ids and form != "tsv":
        raise UsageError(f"--ids is a matter of --format tsv; {form} has the numbers that it has")
    if src == "-" and tgt == "-":
        raise UsageError("only one of the two can be standard input")
    check_writable(output)
    summary = Summary()
    settings = Settings(max_size=max_size)
    encoder: Encoder | None = None
    if documents:
        assert src is not None and tgt is not None
        sides = _sides(src, tgt, parts)
        encoder = load_encoder(model, device)
        tasks, summary.alone = _matched(*sides(errors), encoder, batch_tokens, errors)
        named = not parts
    else:
        tasks, named = choose_tasks(src, tgt, pairs, parts, errors)
    read = dict.fromkeys(part.path for task in tasks for part in (task.src, task.tgt))
    for source in [*read, *([] if pairs is None else [pairs])]:
        keep_apart(source, {"-o": output})
    langs = ("", "")
    if form == "tmx":
        langs = _language(tasks, 0, src_lang), _language(tasks, 1, tgt_lang)
    elif form == "jsonl":
        with contextlib.suppress(BitextmineError):  # it does without
            langs = _language(tasks, 0, src_lang), _language(tasks, 1, tgt_lang)
    encoder = encoder or load_encoder(model, device)
    _warn_unfamiliar(tasks, encoder, (src_lang or "", tgt_lang or ""), errors)
    written = make_form(form, ids=ids, named=named, src_lang=langs[0], tgt_lang=langs[1])
    summary.signature = signature(task="align", model=encoder.hash, max_size=max_size)
    runner = _Runner(encoder, settings, written, batch_tokens, errors, jobs or processors())
    if output == "-" or is_remote(output) or (Path(output).exists() and not Path(output).is_file()):
        with open_output(output) as out:
            out.write(written.head)
            for task, entry in zip(tasks, runner.entries(tasks), strict=True):
                out.write(entry["text"])
                summary.add(task.name, entry)
            out.write(written.tail)
        return summary
    key = {
        "version": __version__,
        "model": encoder.hash,
        "settings": asdict(settings),
        "form": form,
        "ids": ids,
        "named": named,
        "langs": langs,
        "names": line_digest(task.name for task in tasks),
        "batch_tokens": batch_tokens,
    }
    path = Path(os.path.realpath(output))
    if path.is_dir() or not path.parent.is_dir():
        with open_output(output):  # says what is wrong with it
            raise BitextmineError(f"{output}: cannot write")
    with Journal(path.with_name(f".{path.name}.align"), key) as journal:
        for task, entry in zip(tasks, runner.entries(tasks, journal), strict=True):
            summary.add(task.name, entry)
        with open_output(output) as out:
            out.write(written.head)
            for entry in journal.entries():
                out.write(entry["text"])
            out.write(written.tail)
        journal.remove()
    return summary


def _form(form: str | None, output: str) -> str:
    """The form that an output is written in. Raises UsageError for a suffix that says nothing where none is given, and
    for one that says another."""
    suffix = "" if is_stream(output) else strip_compression(output).suffix.lower()
    if suffix not in SUFFIXES:
        if form is None:
            output_form(output)  # an error, but for two languages
        return form or "tsv"
    fits = SUFFIXES[suffix]
    if not fits:
        raise UsageError(
            f"-o {output}: align writes {', '.join(FORMATS)}; 'bitextmine score' makes {suffix} of tsv"
        )
    if form is not None and form not in fits:
        raise UsageError(
            f"-o {output}: a file of that name holds {' or '.join(fits)}, and --format says {form}; change one of them"
        )
    return form or fits[0]


def _sides(src: str, tgt: str, parts: bool) -> Callable[[str], tuple[list[Part], list[Part]]]:
    """The documents of both sides, for --documents."""
    folders = place(src).is_dir(), place(tgt).is_dir()
    if parts and not any(folders):
        return lambda errors: (read_parts(src, errors), read_parts(tgt, errors))
    if all(folders) and not parts:
        return lambda errors: (list(read_folder(src).values()), list(read_folder(tgt).values()))
    raise UsageError("--documents takes two folders, or two files with --blank-lines")


def _warn_unfamiliar(tasks: list[Task], encoder: Encoder, langs: tuple[str, str], errors: str) -> None:
    """A warning where the encoder does not know the languages of the documents. Looks at the first files; what can be
    read once, as standard input, is left alone."""
    for name, lang, parts in (
        ("source documents", langs[0], [task.src for task in tasks[:_LOOKED_AT]]),
        ("target documents", langs[1], [task.tgt for task in tasks[:_LOOKED_AT]]),
    ):
        seen = [part for part in parts if part.lines is not None or place(part.path).is_file()]
        lines = (line for part in seen for line in part.read(errors))
        warn_unfamiliar(encoder, name, lang, sampled(lines))


def _matched(
    src: list[Part], tgt: list[Part], encoder: Encoder, batch_tokens: int | None, errors: str
) -> tuple[list[Task], list[str]]:
    """The documents that belong together, and the names of those that belong to none."""
    windows: list[list[Windows]] = []
    with progress(len(src) + len(tgt), "matching", "documents") as bar:
        for side in (src, tgt):
            windows.append([])
            for part in side:
                lines = [line for line in part.read(errors) if line.strip()]
                windows[-1] += make_windows(encoder, [lines], 1, batch_tokens)
                bar.update(1)
    found = match_documents(*windows)
    taken = {i for i, _ in found}, {j for _, j in found}
    alone = [
        place(part.path).name if part.lines is None else f"{place(part.path).name}:{part.first + 1}"
        for side, used in zip((src, tgt), taken, strict=True)
        for i, part in enumerate(side)
        if i not in used
    ]
    if not found:
        raise BitextmineError(
            f"no document of the {len(src)} fits one of the {len(tgt)}: are they translations, in languages of the "
            "encoder?"
        )
    return matched_tasks(found, src, tgt), alone


def _language(tasks: Sequence[Task], side: int, given: str | None) -> str:
    option = ("--src-lang", "--tgt-lang")[side]
    part = tasks[0].tgt if side else tasks[0].src
    try:
        return corpus_language(part.path, given)
    except BitextmineError:
        raise BitextmineError(
            f"{part.path}: the name does not tell the language that TMX asks for; pass {option}"
        ) from None


class _Runner:
    """Aligns documents, some at a time; entries come in the order of the tasks."""

    def __init__(
        self,
        encoder: Encoder,
        settings: Settings,
        form: Form,
        batch_tokens: int | None,
        errors: str,
        jobs: int,
    ) -> None:
        self._encoder, self._settings, self._form = encoder, settings, form
        self._batch_tokens, self._errors, self._jobs = batch_tokens, errors, jobs

    def entries(self, tasks: Sequence[Task], journal: Journal | None = None) -> Iterator[dict[str, Any]]:
        """What came of each task; with a journal, which gets what is new, taken from it where it is there."""
        many = len(tasks) > 1
        with (
            ThreadPoolExecutor(self._jobs) as pool,
            progress(len(tasks) if many else None, "aligning", "documents" if many else "sentences") as bar,
        ):
            done = 0
            for batch in self._batches(tasks):
                digests = [_digest(document) for document in batch]
                fresh = 0
                if journal is not None:
                    while fresh < len(batch) and journal.digest(done + fresh) == digests[fresh]:
                        yield journal.entry(done + fresh)
                        fresh += 1
                    if fresh < len(batch):
                        journal.cut(done + fresh)
                bar.update(fresh if many else 0)
                if not many:
                    bar.total = sum(map(len, (batch[0].src, batch[0].tgt)))
                for document, digest, alignment in zip(
                    batch[fresh:],
                    digests[fresh:],
                    self._align(batch[fresh:], pool, None if many else bar.update),
                    strict=True,
                ):
                    entry = {"digest": digest, **self._entry(document, alignment)}
                    if journal is not None:
                        journal.add(entry)
                    bar.update(1 if many else 0)
                    yield entry
                done += len(batch)

    def _batches(self, tasks: Sequence[Task]) -> Iterator[list[Document]]:
        batch: list[Document] = []
        size = 0
        for task in tasks:
            batch.append(load(task, self._errors))
            size += len(batch[-1].src) + len(batch[-1].tgt)
            if size >= _BATCH_SENTENCES or len(batch) == _BATCH_DOCUMENTS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _align(
        self, batch: Sequence[Document], pool: ThreadPoolExecutor, tick: Callable[[int], object] | None
    ) -> Iterator[Alignment]:
        sides = [
            ([d.src[i] for i in rows[0]], [d.tgt[i] for i in rows[1]], *rows)
            for d in batch
            for rows in [(sentences(d.src), sentences(d.tgt))]
        ]
        windows = make_windows(
            self._encoder,
            [lines for side in sides for lines in side[:2]],
            max(1, self._settings.max_size - 1),
            self._batch_tokens,
        )
        if len(batch) == 1:  # here, where Ctrl-C stops it at once
            yield align_windows(windows[0], windows[1], self._settings, *sides[0][2:], tick)
            return
        futures = [
            pool.submit(align_windows, src, tgt, self._settings, *side[2:], tick)
            for src, tgt, side in zip(windows[::2], windows[1::2], sides, strict=True)
        ]
        del windows, sides
        try:
            while futures:
                yield futures.pop(0).result()
        finally:
            for future in futures:  # interrupted
                future.cancel()

    def _entry(self, document: Document, alignment: Alignment) -> dict[str, Any]:
        src, tgt = (ends[1:] - ends[:-1] for ends in (alignment.src_ends, alignment.tgt_ends))
        return {
            "text": self._form.chunk(document, alignment),
            "src_sentences": len(alignment.src_lines),
            "tgt_sentences": len(alignment.tgt_lines),
            "links": len(alignment),
            "paired": int(alignment.paired.sum()),
            "one_to_one": int(((src == 1) & (tgt == 1)).sum()),
            "score_sum": float(((src + tgt) * alignment.score).sum()),
            "doubtful": alignment.doubtful,
        }


def _digest(document: Document) -> str:
    return line_digest([str(len(document.src)), *document.src, *document.tgt])
