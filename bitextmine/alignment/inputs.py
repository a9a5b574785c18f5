"""Which documents are to be aligned: two files, two folders, a list of files, or parts of two files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bitextmine.alignment.formats import Document
from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.corpora import corpus_stem
from bitextmine.files.lines import iter_lines, read_lines
from bitextmine.files.storage import place
from bitextmine.languages.codes import is_code

__all__ = ["Part", "Task", "load", "read_folder", "read_list", "read_parts", "same_name_tasks"]


@dataclass(frozen=True)
class Part:
    """A document: a file, or (lines given) a part of one, of which line ``first`` (from 0) is the first."""

    path: str
    first: int = 0
    lines: tuple[str, ...] | None = None

    def read(self, errors: str) -> Sequence[str]:
        """Its lines."""
        return read_lines(self.path, errors) if self.lines is None else self.lines


@dataclass(frozen=True)
class Task:
    """Two documents to align."""

    name: str
    src: Part
    tgt: Part


def load(task: Task, errors: str) -> Document:
    """The lines of both documents; BitextmineError for a file that cannot be read."""
    return Document(task.name, task.src.read(errors), task.tgt.read(errors), task.src.first, task.tgt.first)


def document_name(path: str | os.PathLike[str]) -> str:
    """What a document is called in whatever language: ``en/a.txt.gz`` and ``a.fr.txt`` are both ``a``."""
    parts = corpus_stem(path).name.split(".")
    while len(parts) > 1 and (parts[-1].lower() in ("txt", "text") or is_code(parts[-1])):
        parts.pop()
    return ".".join(parts)


def read_folder(folder: str | os.PathLike[str]) -> dict[str, Part]:
    """The documents of a folder by name, in the order of their names; its subfolders are not looked into.

    Raises BitextmineError for a folder that cannot be read or is empty, and for two files of one name.
    """
    found: dict[str, Part] = {}
    try:
        paths = sorted(p for p in place(folder).iterdir() if p.is_file() and not p.name.startswith("."))
    except OSError as e:
        raise BitextmineError(f"{folder}: cannot list the folder: {e.strerror or e}") from None
    for path in paths:
        name = document_name(path)
        if name in found:
            raise BitextmineError(
                f"{folder}: {place(found[name].path).name} and {path.name} are both called '{name}': which one is "
                "meant? Remove one, or name the pairs in a file for --list"
            )
        found[name] = Part(os.fspath(path))
    if not found:
        raise BitextmineError(f"{folder}: the folder has no files; name one with a file per document")
    return found


def same_name_tasks(src: str, tgt: str) -> list[Task]:
    """The documents of two folders, matched by name. BitextmineError if one has no partner."""
    sides = read_folder(src), read_folder(tgt)
    for here, there, other in ((*sides, tgt), (*sides[::-1], src)):
        alone = [part.path for name, part in here.items() if name not in there]
        if alone:
            more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
            raise BitextmineError(
                f"{', '.join(alone[:3])}{more}: no document of that name in {other}; add it or take this one out, or "
                "pass --documents to find partners by what they say"
            )
    return [Task(name, part, sides[1][name]) for name, part in sides[0].items()]


def read_list(path: str, errors: str) -> list[Task]:
    """Pairs of files: source, tab, target per line, as seen from where the command runs, and perhaps a tab and a name.
    BitextmineError for a line of another form, and for a file that is not there."""
    tasks = []
    for number, line in enumerate(iter_lines(path, errors), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not all(cells):
            raise BitextmineError(
                f"{path}: line {number}: {counted(len(cells), 'cell')}; it takes a source file, a tab, a target file"
            )
        for name in cells[:2]:
            if not place(name).is_file():
                raise BitextmineError(f"{path}: line {number}: {name}: no such file; check the path")
        tasks.append(
            Task(cells[2] if len(cells) > 2 else document_name(cells[0]), Part(cells[0]), Part(cells[1]))
        )
    if not tasks:
        raise BitextmineError(
            f"{path}: names no files; it takes a source file, a tab, a target file per line"
        )
    return tasks


def read_parts(path: str, errors: str) -> list[Part]:
    """The documents of one file, which blank lines keep apart."""
    found: list[Part] = []
    lines: list[str] = []
    first = 0
    for number, line in enumerate(read_lines(path, errors)):
        if line.strip():
            if not lines:
                first = number
            lines.append(line)
        elif lines:
            found.append(Part(path, first, tuple(lines)))
            lines = []
    if lines:
        found.append(Part(path, first, tuple(lines)))
    return found


def matched_tasks(pairs: Sequence[tuple[int, int]], src: Sequence[Part], tgt: Sequence[Part]) -> list[Task]:
    """Tasks for documents that were found to belong together, named by place or file."""
    tasks = []
    for i, j in pairs:
        whole = src[i].lines is None
        name = f"{place(src[i].path).name} {place(tgt[j].path).name}" if whole else f"{i + 1} {j + 1}"
        tasks.append(Task(name, src[i], tgt[j]))
    return tasks


def choose_tasks(
    src: str | None, tgt: str | None, pairs: str | None, parts: bool, errors: str
) -> tuple[list[Task], bool]:
    """The tasks that the arguments of a command name, and whether they are many documents by name."""
    if pairs is not None:
        return read_list(pairs, errors), True
    assert src is not None and tgt is not None
    if place(src).is_dir() != place(tgt).is_dir():
        one, other = (src, tgt) if place(src).is_dir() else (tgt, src)
        raise UsageError(f"{one} is a folder and {other} is not; give two of a kind")
    if place(src).is_dir():
        if parts:
            raise UsageError("--blank-lines takes two files, not two folders")
        return same_name_tasks(src, tgt), True
    if not parts:
        return [Task(document_name(src), Part(src), Part(tgt))], False
    sides = read_parts(src, errors), read_parts(tgt, errors)
    if len(sides[0]) != len(sides[1]):
        raise BitextmineError(
            f"{src} has {counted(len(sides[0]), 'document')} with blank lines between them, {tgt} has "
            f"{len(sides[1])}: which belong together? Pass --documents to find that out from what they say"
        )
    return matched_tasks([(i, i) for i in range(len(sides[0]))], *sides), False
