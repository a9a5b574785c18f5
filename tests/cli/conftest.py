"""Fixtures for tests of the commands."""

import shutil

import pytest
from click.testing import CliRunner

from bitextmine.cli.program import program

from .helpers import MINE, Here

# A sitecustomize.py: runs Python code once, at the first call of a function of the package. That moment does not depend
# on the speed of the machine.
_ACT = """
import os, sys

on, code = os.environ["ACT_ON"], os.environ["ACT_DO"]

def profile(frame, event, arg):
    if event == "call" and frame.f_code.co_name == on and "bitextmine" in frame.f_code.co_filename:
        sys.setprofile(None)
        exec(code, {})

sys.setprofile(profile)
"""


@pytest.fixture
def bm(bitextmine, tiny_model, tmp_path):
    """The installed command in the test's folder, with the tiny model as the default."""
    return Here(bitextmine, tmp_path, {"BITEXTMINE_MODEL": str(tiny_model)})


@pytest.fixture
def bash(bitextmine, tiny_model, tmp_path):
    """Run a line of shell in the test's folder; `bitextmine` is the command, the tiny model its default."""

    def run(line, code=0):
        done = bitextmine.shell(line, {"BITEXTMINE_MODEL": str(tiny_model)}, cwd=tmp_path, text=True)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def mined_folder(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """Two corpora of 35 lines with their embeddings, and the output of mining them."""
    folder = tmp_path_factory.mktemp("mined")
    parallel_text(folder, 30, extra=5)
    return folder, bitextmine(*MINE, "--model", tiny_model, cwd=folder).out


@pytest.fixture
def mined(mined_folder, tmp_path):
    """A copy of `mined_folder` as the test's own; the output of mining it."""
    folder, printed = mined_folder
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return printed


@pytest.fixture
def corpora(tmp_path, parallel_text):
    """Two corpora of five lines and a file of pairs."""
    parallel_text(tmp_path, 5)
    (tmp_path / "pairs.tsv").write_text("a\tb\n")


@pytest.fixture
def act(tmp_path):
    """Make the options that run `code` at the first call of a function."""

    def options(code, on):
        hooks = tmp_path / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / "sitecustomize.py").write_text(_ACT)
        return {"hooks": hooks, "env": {"ACT_ON": on, "ACT_DO": code}}

    return options


@pytest.fixture
def run():
    """Run a command in this process: the lines of its standard output, and its standard error."""

    def invoke(command, data, options, code):
        done = CliRunner().invoke(program, [command, *map(str, options)], input=data)
        assert done.exit_code == code, done.stderr
        assert done.stdout_bytes == b"" or done.stdout_bytes.endswith(b"\n")
        return done.stdout_bytes.split(b"\n")[:-1], done.stderr

    return invoke


@pytest.fixture
def score(run, tiny_model, monkeypatch):
    monkeypatch.setenv("BITEXTMINE_MODEL", str(tiny_model))
    return lambda data, *options, code=0: run("score", data, options, code)


@pytest.fixture
def sieve(run):
    return lambda data, *options, code=0: run("filter", data, options, code)
