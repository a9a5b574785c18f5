"""README.md: short, and what it shows is what commands and Python print; the commands of other pages exist, too."""

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
PAGES = ["README.md", *(f"{stage}/README.md" for stage in ("train", "index", "mine"))]
RESULTS = [
    f"{name}.md"
    for name in ("train/quality", "train/data", "index/performance", "mine/quality", "mine/report")
]


def commands_of(page: str) -> list[str]:
    """The bitextmine commands in the blocks of a page, each once, without what they are piped into and remarks."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    return sorted(
        {
            re.sub(r"\s{2,}# .*", "", part).strip()
            for line in text.splitlines()
            if re.match(r" {4}(\$ )?[^ ]", line)
            for part in re.split(r"\s\d?[|>&]+", line.strip().removeprefix("$ "))
            if part.strip().startswith("bitextmine ")
        }
    )


COMMANDS = sorted({command for page in [*PAGES, *RESULTS] for command in commands_of(page)})


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
    assert len(commands_of("README.md")) > 6


def test_it_is_short():
    assert len(README.split()) <= 900


def test_its_first_example(bitextmine, root, tmp_path):
    """Line by line the sentences that it shows, and their scores up to rounding on another processor."""
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


def test_its_python(root, tmp_path, monkeypatch):
    """The session that it shows, beside the sample corpora."""
    for lang in ("en", "fr"):
        (tmp_path / f"sample.{lang}").write_bytes((root / "mine" / "samples" / f"sample.{lang}").read_bytes())
    monkeypatch.chdir(tmp_path)
    session = doctest.DocTestParser().get_doctest(README, {}, "README.md", None, None)
    assert len(session.examples) >= 5
    assert doctest.DocTestRunner().run(session).failed == 0
