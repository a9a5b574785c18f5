"""README.md: its commands exist, and what it shows as output is what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from bitextmine.cli.program import program

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {
        part.strip()
        for line in README.splitlines()
        if re.match(r" {4}(\$ )?[^ ]", line)
        for part in re.split(r"\s\d?[|>&]+", line.strip().removeprefix("$ "))
        if part.strip().startswith("bitextmine ")
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_are_accepted(line):
    """Options, choices and numbers of arguments; nothing is run."""
    command: click.Command = program
    context = click.Context(program, info_name="bitextmine")
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words, parent=context)


def test_it_shows_commands():
    assert len(COMMANDS) > 10


def test_its_first_example(bitextmine, root, tmp_path):
    """Line by line the sentences that it shows, and their scores up to rounding on another processor."""
    shown = [row.strip().split("\t") for row in re.findall(r"^ {4}\d\.\d{6}\t.*$", README, re.MULTILINE)]
    assert len(shown) >= 4
    for lang in ("en", "fr"):
        (tmp_path / f"sample.{lang}").write_bytes((root / "mine" / "samples" / f"sample.{lang}").read_bytes())
    result = bitextmine("mine", "--src", "en", "--tgt", "fr", cwd=tmp_path)
    printed = result.out.splitlines()
    short = [row.split("\t") for row in printed if len(row.encode()) < 120][: len(shown)]
    assert [row[1:] for row in short] == [row[1:] for row in shown]
    assert [float(row[0]) for row in short] == pytest.approx([float(row[0]) for row in shown], abs=2e-3)
    counts = [int(number) for number in re.findall(r"\b(\d+) pairs\b", README)]
    assert counts
    assert all(abs(count - len(printed)) <= 2 for count in counts)
