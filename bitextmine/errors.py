"""What the command line turns into a message and an exit code: 1, and 2 for wrong usage."""

from __future__ import annotations


class BitextmineError(Exception):
    """Something a user can act on: the message names the file, what was found and what to do."""


class UsageError(BitextmineError):
    """Choices that are wrong by themselves, or that do not go together, whatever the files hold."""


class InvalidUtf8(BitextmineError):
    """A line of a text file that is not UTF-8.

    file: its name; line: its number, from 1; problem: which byte, and where in the line; cure: what the file looks like
    instead, and what to do about that ("" where it looks like nothing known). ``replace`` is how whoever reads the
    message can ask for such bytes to be read as U+FFFD: by an option, unless the caller knows another way.
    """

    def __init__(
        self, file: str, line: int, problem: str, cure: str = "", replace: str = "pass --errors replace"
    ) -> None:
        hint = cure or f"fix the file, or {replace} to read such bytes as U+FFFD"
        super().__init__(f"{file}: line {line}: invalid UTF-8: {problem}; {hint}")
        self.file, self.line, self.problem, self.cure = file, line, problem, cure
