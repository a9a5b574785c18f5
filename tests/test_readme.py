"""README.md is short, and its examples give what it shows; the commands on all pages parse."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import click
import pytest

from bitextmine.cli.program import program

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    *(page for top in ("train", "index", "mine") for page in sorted((ROOT / top).glob("*.md"))),
]


def commands_of(page: Path) -> set[str]:
    """The bitextmine commands in the indented blocks of a page, without pipes, redirections and comments."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return {
        re.sub(r"\s{2,}# .*", "", part).strip()
        for line in text.splitlines()
        if re.match(r" {4}(\$ )?[^ ]", line)
        for part in re.split(r"\s\d?[|>&]+", line.strip().removeprefix("$ "))
        if part.strip().startswith("bitextmine ") and "..." not in part
    }


COMMANDS = sorted(set().union(*map(commands_of, PAGES)))


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line):
    """Options, choices and numbers of arguments are right; nothing is run."""
    command: click.Command = program
    context = click.Context(program, info_name="bitextmine")
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words, parent=context)


def test_commands_are_found():
    assert len(COMMANDS) > 30
    assert len(commands_of(ROOT / "README.md")) > 6


def test_it_is_short():
    assert len(README.split()) < 900


def test_first_example(bitextmine, root, tmp_path):
    """The sentences that it shows, line by line, and their scores up to rounding on another processor."""
    shown = [row.strip().split("\t") for row in re.findall(r"^ {4}\d+\.\d{6}\t.*$", README, re.MULTILINE)]
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


def test_python_session(root, tmp_path, monkeypatch):
    for lang in ("en", "fr"):
        (tmp_path / f"sample.{lang}").write_bytes((root / "mine" / "samples" / f"sample.{lang}").read_bytes())
    monkeypatch.chdir(tmp_path)
    session = doctest.DocTestParser().get_doctest(README, {}, "README.md", None, None)
    assert len(session.examples) >= 5
    assert doctest.DocTestRunner().run(session).failed == 0
