"""The one exception that the command line turns into a message and exit code 1."""

from __future__ import annotations


class BitextmineError(Exception):
    """Something a user can act on: the message names the file, what was found and what to do."""
