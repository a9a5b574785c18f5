"""Where the lines go: standard output, or files by language that a killed run goes on with."""

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import cannot_write, put_in_place
from bitextmine.files.journal import Journal, journal_folder, remove_folder
from bitextmine.files.output import Destination
from bitextmine.files.source import ORIGIN, Location, origin_path

_JOB = "split"
_PLACE = "{lang}"


class Output:
    """Take lines and the rows of their origin, by language; here for standard output, devices and pipes.

    Attributes:
        done: the last progress that was saved by an interrupted run of the same work, or {}.
    """

    done: Mapping[str, Any]

    def __init__(self, out: IO[bytes], ids: bool, output: str) -> None:
        self.done, self._out, self._ids, self._output, self._lang = {}, out, ids, output, ""

    def write(self, lang: str, line: str, origin: str) -> None:
        """Add a line and its origin, without line feeds."""
        if self._lang and lang != self._lang:
            raise two_languages(self._output, self._lang, lang)
        self._lang = lang
        self._out.write((f"{origin}\t{line}\n" if self._ids else f"{line}\n").encode())

    def save(self, progress: Mapping[str, Any]) -> None:
        """Make the lines so far safe, with the progress that a next run takes up from `done`."""
        self._out.flush()


@contextlib.contextmanager
def open_outputs(output: str, ids: bool, identity: Mapping[str, Any]) -> Iterator[Output]:
    """Yield the output ``-`` (standard output), a device or a named pipe, or files whose names appear at the end.

    In a name ``{lang}`` stands for the language. With `ids` the origin is before each line, not in files beside. The
    identity is everything the output depends on; unfinished work of another one is dropped.

    Raises:
        BitextmineError: an output cannot be written; lines in two languages without ``{lang}``.
    """
    destination = Destination(output.replace(_PLACE, "LANG"))
    if destination.is_stream:
        with destination.open() as out:
            yield Output(out, ids, output)
        return
    # The folder of parts is named by the pattern, in which {lang} is empty: one run may begin and another resume.
    stem = Path(Location(output).stem)
    part = stem.with_name(f"{stem.name.replace(_PLACE, '').strip('.')}.split.part")
    destination.check()
    try:
        with contextlib.suppress(FileExistsError):
            part.mkdir()
    except OSError as e:
        raise cannot_write(e, output) from None
    try:
        with journal_folder(part, _JOB, identity) as journal:
            try:
                parts = _Parts(part, journal, output, ids)
                try:
                    yield parts
                finally:
                    parts.close()
                parts.finish()
            except BitextmineError:
                if not len(journal):
                    remove_folder(part, _JOB)
                raise
            remove_folder(part, _JOB)  # while it is locked: another run may begin there afterwards
    except OSError as error:
        raise cannot_write(error, output) from None


class _Parts(Output):
    """A text and a file of origins for each language, in a folder with a journal."""

    def __init__(self, folder: Path, journal: Journal, output: str, ids: bool) -> None:
        self._folder, self._journal, self._output = folder, journal, output
        self._endings = ("",) if ids else ("", ORIGIN)
        self._files: dict[str, tuple[IO[bytes], ...]] = {}
        last = journal[-1] if len(journal) else {"progress": {}, "sizes": {}}
        self._sizes: dict[str, list[int]] = last["sizes"]
        if not last["progress"].get("finished") and not self._reopened():
            last, self._sizes = {"progress": {}}, {}
            journal.truncate(0)
        self.done = last["progress"]

    def write(self, lang: str, line: str, origin: str) -> None:
        files = self._files.get(lang) or self._begin(lang)
        if len(files) == 1:
            files[0].write(f"{origin}\t{line}\n".encode())
        else:
            files[0].write(f"{line}\n".encode())
            files[1].write(f"{origin}\n".encode())

    def save(self, progress: Mapping[str, Any]) -> None:
        self._sizes = {lang: [file.tell() for file in files] for lang, files in self._files.items()}
        for file in self._all():
            file.flush()
        self._journal.append({"progress": dict(progress), "sizes": self._sizes})

    def close(self) -> None:
        for file in self._all():
            file.close()

    def finish(self) -> None:
        """Give the files their names; those of origins first, so that a corpus is never without."""
        for lang in sorted(self._sizes):
            corpus = Path(self._output.replace(_PLACE, lang))
            for ending in reversed(self._endings):
                made = self._folder / f"{lang}{ending}"
                name = Destination.of(origin_path(Location.of(corpus)) if ending else corpus)
                if name.compression or name.is_stream or Path(name).is_symlink():
                    with open(made, "rb") as source, name.open() as out:
                        shutil.copyfileobj(source, out)
                elif made.exists() or not Path(name).exists():  # or a run that was killed here has moved it
                    put_in_place(made, Path(name))

    def _all(self) -> Iterator[IO[bytes]]:
        return itertools.chain.from_iterable(self._files.values())

    def _reopened(self) -> bool:
        """Cut the files to the sizes of the last record; return False if one has lost bytes, as in a power cut."""
        for lang, sizes in self._sizes.items():
            self._begin(lang)
            for file, size in zip(self._files[lang], sizes, strict=True):
                if file.seek(0, os.SEEK_END) < size:
                    self.close()
                    self._files = {}
                    return False
                file.truncate(size)
                file.seek(size)
        return True

    def _begin(self, lang: str) -> tuple[IO[bytes], ...]:
        """Open the files of a language, empty but for what the last record covers."""
        if self._files and _PLACE not in self._output:
            raise two_languages(self._output, next(iter(self._files)), lang)
        names = [self._folder / f"{lang}{ending}" for ending in self._endings]
        kept = lang in self._sizes
        self._files[lang] = tuple(name.open("r+b" if kept and name.exists() else "w+b") for name in names)
        return self._files[lang]


def two_languages(output: str, first: str, second: str) -> UsageError:
    """Return the error of documents in two languages for one output."""
    where = "standard output is" if output == "-" else f"-o {output} is"
    return UsageError(
        f"{where} one output, but the documents are in {first} and {second}: write a file for each language, as in "
        "-o corpus.{lang}"
    )
