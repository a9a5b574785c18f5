"""The search of `bitextmine mine`, by the real command: killed and taken up again, and with little memory."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

# Put into the command's process: it saves after every 1,000 rows, and dies in the middle of the DIE_AT-th write to the
# file that it saves to (-1: as it opens the output, all being found).
SAVING = """
import os, signal, sys
from bitextmine.search import checkpoint
from bitextmine.search.engines import compiled as fused

checkpoint.SAVE_SECONDS, checkpoint._SHARE = 0.0, 0
fused._MOST_ROWS = 1000
left, write = int(os.environ["DIE_AT"]), os.pwrite

def die(fd, data, offset):
    global left
    if left > 0 and os.readlink(f"/proc/self/fd/{fd}").endswith(".search.part"):
        left -= 1
        if not left:
            write(fd, data[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
    return write(fd, data, offset)

def opened(event, args):
    if left == -1 and event == "open" and ".out.tsv." in str(args[0]):
        os.kill(os.getpid(), signal.SIGKILL)

os.pwrite = die
sys.addaudithook(opened)
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks up in /proc what is written to")
def test_a_search_that_was_killed_goes_on(bitextmine, tiny_model, parallel_text, tmp_path):
    folder, hooks = tmp_path / "text", tmp_path / "hooks"
    for each in (folder, hooks):
        each.mkdir()
    (hooks / "sitecustomize.py").write_text(SAVING)
    parallel_text(folder, 4000, extra=1000)
    args = ["mine", "--src", "en", "--tgt", "fr", "--model", str(tiny_model), "-o", "out.tsv"]
    bitextmine(*args, cwd=folder)
    whole = contents(folder)

    resumed = []
    for count in (3, 12, 7, 6, -1, 0):  # a save is four writes, and the file begins with one
        died = bitextmine(*args, env={"DIE_AT": str(count)}, hooks=hooks, cwd=folder, code=None)
        assert died.code == (-signal.SIGKILL if count else 0), died.err
        assert (folder / "corpus.en-corpus.fr.search.part").exists() == (count != 0)
        resumed += re.findall(r"search: ([\d,]+) of 5,000 lines are done", died.err)
    assert resumed == ["2,000", "3,000", "4,000", "5,000"]
    assert contents(folder) == whole


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks up in /proc what is written to")
def test_what_another_search_left_is_discarded(bitextmine, tiny_model, parallel_text, tmp_path):
    folder, hooks = tmp_path / "text", tmp_path / "hooks"
    for each in (folder, hooks):
        each.mkdir()
    (hooks / "sitecustomize.py").write_text(SAVING)
    parallel_text(folder, 2000)
    args = ["mine", "--src", "en", "--tgt", "fr", "--model", str(tiny_model), "-o", "out.tsv"]
    died = bitextmine(*args, env={"DIE_AT": "8"}, hooks=hooks, cwd=folder, code=None)
    assert died.code == -signal.SIGKILL
    done = bitextmine(*args, "-k", "3", cwd=folder)
    assert "corpus.en-corpus.fr.search.part: of another search" in done.err
    assert not list(folder.glob("*.part*"))


def test_little_memory(bitextmine, tiny_model, parallel_text, tmp_path):
    parallel_text(tmp_path, 3000)
    args = ["mine", "--src", "en", "--tgt", "fr", "--model", str(tiny_model)]
    message = bitextmine.fails(*args, "--memory", "20K", cwd=tmp_path)
    need = re.search(r"allow (\S+) or more \(--memory\)", message)
    assert need is not None, message
    assert bitextmine(*args, "--memory", need[1], cwd=tmp_path).out == bitextmine(*args, cwd=tmp_path).out
    assert "'20' is no amount of memory" in bitextmine(*args, "--memory", "20", cwd=tmp_path, code=2).err
