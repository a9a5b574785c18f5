"""The command line."""

from __future__ import annotations

from bitextmine.cli.commands import main, program

__all__ = ["main", "program"]
