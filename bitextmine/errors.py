"""What the command line turns into a message and an exit code: 1, and 2 for wrong usage."""

from __future__ import annotations


class BitextmineError(Exception):
    """Something a user can act on: the message names the file, what was found and what to do."""


class UsageError(BitextmineError):
    """Choices that are wrong by themselves, or that do not go together, whatever the files hold."""
