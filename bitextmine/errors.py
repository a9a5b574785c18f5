"""Errors that the command line turns into a message and exit code 1, or 2 for wrong usage."""

import contextlib
import re
from collections.abc import Iterator


class BitextmineError(Exception):
    """An error that a user can act on: the message names the file, the value found and the remedy."""


class UsageError(BitextmineError):
    """Arguments that are wrong whatever the files hold."""


class MissingPackage(BitextmineError):
    """An optional package that is needed is not installed; the message names the command for those of the extra."""

    def __init__(self, problem: str, extra: str) -> None:
        super().__init__(f"{problem}; install it with {pip_install(extra)}")


def pip_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, however bitextmine itself was installed."""
    from importlib import metadata  # here: --help does without

    with contextlib.suppress(metadata.PackageNotFoundError):
        lines = [line.partition(";") for line in metadata.requires("bitextmine") or ()]
        if names := [
            f"'{name.strip()}'" for name, _, mark in lines if re.search(rf"extra == .{extra}\b", mark)
        ]:
            return f"pip install {' '.join(names)}"
    return f"pip install 'bitextmine[{extra}]'"


class InvalidUtf8(BitextmineError):
    """A line of a text file that is not UTF-8.

    Args:
        file: its name.
        line: its number, from 1.
        problem: the byte, and its place in the line.
        cure: the likely encoding and the remedy, "" if nothing is known.
    """

    def __init__(self, file: str, line: int, problem: str, cure: str = "") -> None:
        hint = cure or "fix the file, or pass --errors replace to read such bytes as U+FFFD"
        super().__init__(f"{file}: line {line}: invalid UTF-8: {problem}; {hint}")
        self.file, self.line, self.problem, self.cure = file, line, problem, cure


@contextlib.contextmanager
def explained(problem: str, remedy: str = "") -> Iterator[None]:
    """Turn an OSError into a BitextmineError: the file and what failed, the reason of the system, "; " and a remedy."""
    try:
        yield
    except OSError as e:
        raise BitextmineError(f"{problem}: {e.strerror or e}{remedy}") from None
