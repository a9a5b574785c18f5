"""Align documents in files: the work of `bitextmine align`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bitextmine.alignment.batches import align_tasks
from bitextmine.alignment.choices import choose_format
from bitextmine.alignment.documents import match_documents
from bitextmine.alignment.formats import AlignedDocument, open_links
from bitextmine.alignment.inputs import Part, Task, both_sides, choose_tasks, matched_tasks, read_list
from bitextmine.alignment.search import Settings
from bitextmine.alignment.windows import make_windows
from bitextmine.console import counted
from bitextmine.encoder import load_encoder
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.familiar import sampled, warn_unfamiliar
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpora import corpus_language
from bitextmine.files.formats.names import FORMATS
from bitextmine.files.journal import Journal
from bitextmine.files.lines import line_digest
from bitextmine.files.storage import place
from bitextmine.files.streams import check_writable, keep_apart
from bitextmine.files.tables import check_pairs_output
from bitextmine.files.urls import is_remote
from bitextmine.run import Run
from bitextmine.signature import signature
from bitextmine.version import __version__

_NAMED = 3  # documents that a message names
_LOOKED_AT = 20  # documents whose language is checked


@dataclass(frozen=True)
class AlignOptions:
    """What to align, and how.

    Attributes:
        pairs: a file that lists pairs of files, instead of source and target.
        blank_lines: blank lines separate documents in two files.
        documents: match documents by content.
        format: a name in `choices.FORMATS` (None: by the output's suffix, else tsv).
        ids: add line numbers to tsv.
        max_size: the most sentences in a link, of both sides together.
        src_lang, tgt_lang: language codes for tmx and jsonl (None: from the file names).
        model: a model name or folder.
    """

    pairs: str | None = None
    blank_lines: bool = False
    documents: bool = False
    format: str | None = None
    ids: bool = False
    max_size: int = 6
    src_lang: str | None = None
    tgt_lang: str | None = None
    model: str = "default"

    def check(self, src: str | None, tgt: str | None) -> None:
        """Raise UsageError for choices that do not go together."""
        if (src is None or tgt is None) == (self.pairs is None):
            raise UsageError("give two files, two folders, or --list alone")
        if self.pairs is not None and (self.documents or self.blank_lines):
            raise UsageError("--list names the pairs of files: leave out --documents and --blank-lines")
        if src == "-" and tgt == "-":
            raise UsageError("only one of the two can be standard input")


@dataclass
class Summary:
    """Counts over all document pairs.

    Attributes:
        doubtful: documents that hardly fit each other.
        alone: documents without a partner.
    """

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

    def add(self, document: AlignedDocument) -> None:
        """Count a document pair."""
        self.documents += 1
        self.links += len(document.links)
        for score, src, tgt, *_ in document.links:
            self.src_sentences += len(src)
            self.tgt_sentences += len(tgt)
            self.paired += bool(src and tgt)
            self.one_to_one += len(src) == len(tgt) == 1
            self.score_sum += score * (len(src) + len(tgt))
        if document.doubtful:
            self.doubtful.append(document.name)

    def to_table(self) -> str:
        """Return the counts as text."""
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
            subject = "this pair" if self.documents == 1 else f"{counted(len(self.doubtful), 'pair')}"
            lines.append(
                f"warning: {subject} of documents hardly fit better than random sentences do: {_some(self.doubtful)}; "
                "are they translations of each other, in languages of the encoder?"
            )
        return "\n".join([*lines, self.signature])


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def align_files(
    src: str | None = None,
    tgt: str | None = None,
    output: str = "-",
    options: AlignOptions | None = None,
    run: Run | None = None,
) -> Summary:
    """Align two files with a sentence per line, or two folders of them, and write the links.

    An output file is complete or missing; the same call resumes an interrupted one.

    Raises:
        UsageError: arguments that do not go together.
        BitextmineError: unreadable files, or documents without a partner.
    """
    options, run = options or AlignOptions(), run or Run()
    options.check(src, tgt)
    format = choose_format(options.format, output)
    if options.ids and format != "tsv":
        raise UsageError(f"--ids goes with --format tsv, not {format}")
    if format == "parquet" and output != "-":
        check_pairs_output(output)
    check_writable(output)
    summary = Summary()
    encoder: Encoder | None = None
    if options.pairs is not None:
        tasks, named = read_list(options.pairs, run.errors), True
    else:
        assert src is not None and tgt is not None
        if options.documents:
            sides = both_sides(src, tgt, blank_lines=options.blank_lines, errors=run.errors)
            encoder = load_encoder(options.model, run.device)
            tasks, summary.alone = _match(*sides, encoder, run)
            named = not options.blank_lines
        else:
            tasks, named = choose_tasks(src, tgt, blank_lines=options.blank_lines, errors=run.errors)
    read = dict.fromkeys(part.path for task in tasks for part in (task.src, task.tgt))
    for source in [*read, *([] if options.pairs is None else [options.pairs])]:
        keep_apart(source, {"-o": output})
    langs = _languages(tasks[0], options, format)
    encoder = encoder or load_encoder(options.model, run.device)
    _warn_unfamiliar(tasks, encoder, options, run.errors)
    settings = Settings(max_size=options.max_size)
    summary.signature = signature(task="align", model=encoder.hash, max_size=options.max_size)
    with _journal(output, tasks, encoder, settings, run) as journal:
        with open_links(output, format, ids=options.ids, named=named, langs=langs) as write:
            for document in align_tasks(tasks, encoder, settings, run, journal):
                write(document)
                summary.add(document)
        if journal is not None:
            journal.remove()
    return summary


def _journal(
    output: str, tasks: Sequence[Task], encoder: Encoder, settings: Settings, run: Run
) -> contextlib.AbstractContextManager[Journal | None]:
    """Return the journal beside an output file; None for a stream and for storage by URL."""
    if output == "-" or is_remote(output) or (Path(output).exists() and not Path(output).is_file()):
        return contextlib.nullcontext()
    identity = {
        "version": __version__,
        "model": encoder.hash,
        "settings": asdict(settings),
        "names": line_digest(task.name for task in tasks),
        "batch_tokens": run.batch_tokens,
    }
    path = Path(os.path.realpath(output))
    return Journal(path.with_name(f".{path.name}.align"), "align", identity)


def _match(src: list[Part], tgt: list[Part], encoder: Encoder, run: Run) -> tuple[list[Task], list[str]]:
    """Return the documents that belong together, and the names of the others."""
    windows = []
    with run.progress(len(src) + len(tgt), "matching", "documents") as bar:
        for part in (*src, *tgt):
            lines = [line for line in part.read(run.errors) if line.strip()]
            windows += make_windows(encoder, [lines], 1, run.batch_tokens)
            bar.update(1)
    found = match_documents(windows[: len(src)], windows[len(src) :])
    if not found:
        raise BitextmineError(
            f"no document of the {len(src)} fits one of the {len(tgt)}: are they translations, in languages of the "
            "encoder?"
        )
    alone = [part.name for i, part in enumerate(src) if i not in {i for i, _ in found}]
    alone += [part.name for j, part in enumerate(tgt) if j not in {j for _, j in found}]
    return matched_tasks(found, src, tgt), alone


def _languages(task: Task, options: AlignOptions, format: str) -> tuple[str, str]:
    """Return the languages for formats that name them; only TMX cannot do without."""
    found = []
    sides = (task.src, options.src_lang, "--src-lang"), (task.tgt, options.tgt_lang, "--tgt-lang")
    for part, given, option in sides if format in ("tmx", "jsonl", "moses") else ():
        try:
            found.append(corpus_language(part.path, given))
        except BitextmineError:
            if format == "jsonl":
                break
            raise BitextmineError(
                f"{part.path}: {format.upper()} needs a language and the name tells none; pass {option}"
            ) from None
    langs = (found[0], found[1]) if len(found) == 2 else ("", "")
    if format in FORMATS:
        FORMATS[format].check_languages(langs, "--src-lang and --tgt-lang")
    return langs


def _warn_unfamiliar(tasks: list[Task], encoder: Encoder, options: AlignOptions, errors: str) -> None:
    """Log a warning if the encoder does not know the languages of the first documents; never read a stream twice."""
    for name, lang, parts in (
        ("source documents", options.src_lang, [task.src for task in tasks[:_LOOKED_AT]]),
        ("target documents", options.tgt_lang, [task.tgt for task in tasks[:_LOOKED_AT]]),
    ):
        seen = [part for part in parts if part.lines is not None or place(part.path).is_file()]
        lines = (line for part in seen for line in part.read(errors))
        warn_unfamiliar(encoder, name, lang or "", sampled(lines))
