"""Find the documents to align: two files, two folders, a list of files, or parts of two files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bitextmine.console import counted
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.lines import iter_lines, read_lines
from bitextmine.files.storage import place
from bitextmine.files.streams import strip_compression
from bitextmine.languages.codes import is_code


@dataclass(frozen=True)
class Part:
    """A document: a file, or some lines of one, of which line `first` (from 0) is the first."""

    path: str
    first: int = 0
    lines: tuple[str, ...] | None = None

    def read(self, errors: str) -> Sequence[str]:
        """Return the lines."""
        return read_lines(self.path, errors) if self.lines is None else self.lines

    @property
    def name(self) -> str:
        """The file's name, with the line number (from 1) of a part."""
        file = place(self.path).name
        return file if self.lines is None else f"{file}:{self.first + 1}"


@dataclass(frozen=True)
class Task:
    """Two documents to align."""

    name: str
    src: Part
    tgt: Part


def choose_tasks(src: str, tgt: str, *, blank_lines: bool, errors: str) -> tuple[list[Task], bool]:
    """Return the tasks of two files or folders, and True for documents that have names.

    Raises:
        UsageError: a file and a folder.
        BitextmineError: an unreadable file, or a document without a partner.
    """
    folders = place(src).is_dir(), place(tgt).is_dir()
    if folders[0] != folders[1]:
        one, other = (src, tgt) if folders[0] else (tgt, src)
        raise UsageError(f"{one} is a folder and {other} is not; give two of a kind")
    if folders[0]:
        if blank_lines:
            raise UsageError("--blank-lines takes two files, not two folders")
        return _same_name_tasks(src, tgt), True
    if not blank_lines:
        return [Task(_document_name(src), Part(src), Part(tgt))], False
    sides = _read_parts(src, errors), _read_parts(tgt, errors)
    if len(sides[0]) != len(sides[1]):
        raise BitextmineError(
            f"{src} has {counted(len(sides[0]), 'document')} with blank lines between them, {tgt} has "
            f"{len(sides[1])}; pass --documents to match them by content"
        )
    return matched_tasks([(i, i) for i in range(len(sides[0]))], *sides), False


def both_sides(src: str, tgt: str, *, blank_lines: bool, errors: str) -> tuple[list[Part], list[Part]]:
    """Return the documents of both sides, to be matched by content.

    Raises:
        UsageError: neither two folders, nor two files with `blank_lines`.
    """
    folders = place(src).is_dir(), place(tgt).is_dir()
    if blank_lines and not any(folders):
        return _read_parts(src, errors), _read_parts(tgt, errors)
    if all(folders) and not blank_lines:
        return list(_read_folder(src).values()), list(_read_folder(tgt).values())
    raise UsageError("--documents takes two folders, or two files with --blank-lines")


def read_list(path: str, errors: str) -> list[Task]:
    """Read pairs of files: per line a source, a tab, a target, and optionally a tab and a name.

    Raises:
        BitextmineError: a malformed line, or a missing file.
    """
    tasks = []
    for number, line in enumerate(iter_lines(path, errors), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not all(cells):
            raise BitextmineError(
                f"{path}: line {number}: {counted(len(cells), 'cell')}; expected a source file, a tab, a target file"
            )
        for name in cells[:2]:
            if not place(name).is_file():
                raise BitextmineError(f"{path}: line {number}: {name}: no such file; check the path")
        name = cells[2] if len(cells) > 2 else _document_name(cells[0])
        tasks.append(Task(name, Part(cells[0]), Part(cells[1])))
    if not tasks:
        raise BitextmineError(
            f"{path}: names no files; expected a source file, a tab, a target file per line"
        )
    return tasks


def matched_tasks(pairs: Sequence[tuple[int, int]], src: Sequence[Part], tgt: Sequence[Part]) -> list[Task]:
    """Return tasks for pairs of documents, named by file, or by number for parts of files."""
    tasks = []
    for i, j in pairs:
        whole = src[i].lines is None
        name = f"{src[i].name} {tgt[j].name}" if whole else f"{i + 1} {j + 1}"
        tasks.append(Task(name, src[i], tgt[j]))
    return tasks


def _document_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a document in any language: ``en/a.txt.gz`` and ``a.fr.txt`` are both ``a``."""
    parts = strip_compression(path).name.split(".")
    while len(parts) > 1 and (parts[-1].lower() in ("txt", "text") or is_code(parts[-1])):
        parts.pop()
    return ".".join(parts)


def _read_folder(folder: str) -> dict[str, Part]:
    """Return the documents of a folder by name, in the order of their names; subfolders are skipped."""
    found: dict[str, Part] = {}
    try:
        paths = sorted(p for p in place(folder).iterdir() if p.is_file() and not p.name.startswith("."))
    except OSError as e:
        raise BitextmineError(f"{folder}: cannot list the folder: {e.strerror or e}") from None
    for path in paths:
        name = _document_name(path)
        if name in found:
            raise BitextmineError(
                f"{folder}: {found[name].name} and {path.name} are both called '{name}'; remove one, or name the pairs "
                "in a file for --list"
            )
        found[name] = Part(os.fspath(path))
    if not found:
        raise BitextmineError(f"{folder}: the folder has no files; name one with a file per document")
    return found


def _same_name_tasks(src: str, tgt: str) -> list[Task]:
    sides = _read_folder(src), _read_folder(tgt)
    for here, there, other in ((*sides, tgt), (*sides[::-1], src)):
        alone = [part.path for name, part in here.items() if name not in there]
        if alone:
            more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
            raise BitextmineError(
                f"{', '.join(alone[:3])}{more}: no document of that name in {other}; add it, remove this one, or pass "
                "--documents to match documents by content"
            )
    return [Task(name, part, sides[1][name]) for name, part in sides[0].items()]


def _read_parts(path: str, errors: str) -> list[Part]:
    """Return the documents of one file, separated by blank lines."""
    found: list[Part] = []
    lines: list[str] = []
    for number, line in enumerate([*read_lines(path, errors), ""]):
        if line.strip():
            lines.append(line)
        elif lines:
            found.append(Part(path, number - len(lines), tuple(lines)))
            lines = []
    return found
