"""`bitextmine mine`, interrupted, or while its files change: never a wrong pair, never a partial output."""

import re
import shutil
import signal
from pathlib import Path

import pytest

from .helpers import MINE, contents, texts
from .test_mine import SAMPLES


def test_killed_at_any_moment(bm, parallel_text, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        parallel_text(folder, 400, extra=100)
        shutil.copy(folder / "corpus.fr", folder / "corpus.de")
    args = ("mine", "--src", "en", "--tgt", "fr", "--tgt", "de", "-o", "{tgt}.tsv")
    bm(*args, cwd=whole)
    kills = 0
    for count in range(5, 200, 20):
        died = bm.dies(tmp_path / "hooks", count, *args, cwd=killed)
        assert died.code in (0, -signal.SIGKILL)
        kills += bool(died.code)
        for output in killed.glob("??.tsv"):
            assert output.read_bytes() == (whole / output.name).read_bytes()
        if not died.code:
            break
    assert kills >= 3
    bm(*args, cwd=killed)
    assert contents(killed) == contents(whole)


# Put into the command's process: save after every 1,000 rows, and die before the DIE_AT-th save is whole (-1: when the
# output is opened).
SAVING = """
import os, signal, sys
from bitextmine.search import checkpoint
from bitextmine.search import fused

checkpoint.SAVE_SECONDS, checkpoint._SHARE = 0.0, 0
fused._MOST_ROWS = 1000
left, sync = int(os.environ["DIE_AT"]), os.fsync

def die(fd):
    global left
    if left > 0 and os.readlink(f"/proc/self/fd/{fd}").endswith(".search.part.tmp"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    sync(fd)

def opened(event, args):
    if left == -1 and event == "open" and ".out.tsv." in str(args[0]):
        os.kill(os.getpid(), signal.SIGKILL)

os.fsync = die
sys.addaudithook(opened)
"""


@pytest.fixture
def saving(tmp_path):
    if not Path("/proc/self/fd").exists():
        pytest.skip("looks up open files in /proc")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(SAVING)
    return tmp_path / "hooks"


@pytest.fixture
def text(parallel_text, tmp_path):
    (tmp_path / "text").mkdir()
    parallel_text(tmp_path / "text", 4000, extra=1000)
    return tmp_path / "text"


def test_a_killed_search_resumes(bm, saving, text):
    args = ("mine", "--src", "en", "--tgt", "fr", "-o", "out.tsv")
    bm(*args, cwd=text)
    whole = contents(text)
    resumed = []
    for count in (2, 2, 2, -1, 0):
        died = bm(*args, env={"DIE_AT": str(count)}, hooks=saving, cwd=text, code=None)
        assert died.code == (-signal.SIGKILL if count else 0), died.err
        assert (text / "corpus.en-corpus.fr.search.part").exists() == (count != 0)
        resumed += re.findall(r"search: ([\d,]+) of 5,000 lines", died.err)
    assert resumed == ["1,000", "2,000", "3,000", "5,000"]
    assert contents(text) == whole


REVERSED = """
lines = open("corpus.fr").readlines()
with open("corpus.fr", "r+") as file:
    file.writelines(reversed(lines))
"""
ZEROED = """
with open("corpus.fr.npy", "r+b") as file:
    size = file.seek(0, 2)
    file.seek(128)
    file.write(bytes(size - 128))
"""
LINE_ZEROED = """
with open("corpus.fr.npy", "r+b") as file:
    file.seek(128 + 64 * 100)
    file.write(bytes(64))
"""
TRUNCATED = """
import os
os.truncate("corpus.fr.npy", 128)
"""
SOURCE_TRUNCATED = TRUNCATED.replace(".fr", ".en")
LINES = 400
DEFAULT = ("mine", "--src", "en", "--tgt", "fr")


@pytest.fixture(scope="module")
def embedded(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """Two corpora without repeated lines, with embeddings and indexes, and the output of mining them."""
    folder = tmp_path_factory.mktemp("embedded")
    parallel_text(folder, LINES)
    printed = bitextmine(*DEFAULT, "--model", tiny_model, cwd=folder).out
    return folder, printed


@pytest.fixture
def here(bm, embedded, tmp_path):
    """The command in a copy of that folder."""
    shutil.copytree(embedded[0], tmp_path / "here")
    return bm.at(tmp_path / "here")


@pytest.mark.parametrize(
    ("change", "message", "moment", "more"),
    [
        (ZEROED, "corpus.fr.npy: the vectors changed", "search_both", []),
        (LINE_ZEROED, "corpus.fr.npy: the vectors changed", "candidates", ["-o", "out.tsv"]),
        (TRUNCATED, "corpus.fr.npy: the vectors changed", "search_both", ["-o", "out.tsv"]),
        (SOURCE_TRUNCATED, "corpus.en.npy: the vectors changed", "search_both", ["--dedup", "near"]),
    ],
    ids=["zeroed", "line-zeroed", "truncated", "source-truncated"],
)
def test_a_change_during_the_search(here, act, embedded, change, message, moment, more):
    """At the beginning or the end of the search: an error and no output; the next run is right."""
    told = here.fails(*DEFAULT, *more, **act(change, moment))
    assert message in told and "run the same command again" in told
    assert not [path for path in here.folder.iterdir() if "out" in path.name or path.name.endswith(".part")]
    assert here(*DEFAULT).out == embedded[1]


@pytest.mark.parametrize("moment", ["search_both", "candidates"])
def test_a_text_that_changes_after_it_was_read(here, act, embedded, moment):
    """A corpus is read once: the pairs are those of the text as it was."""
    assert here(*DEFAULT, **act(REVERSED, moment)).out == embedded[1]


def test_an_index_that_is_truncated_during_the_search(here, act):
    """The lists are read from the file while they are searched; the next run builds a new index."""
    here("index", "corpus.en", "corpus.fr", "--type", "ivf")
    indexed = contents(here.folder)
    through = (*DEFAULT, "--search", "index")
    cut = "import os\nos.truncate('corpus.fr.faiss', os.path.getsize('corpus.fr.faiss') // 8)\n"
    for moment in ("search_both_indexed", "search_lists"):
        for name, data in indexed.items():
            (here.folder / name).write_bytes(data)
        told = here.fails(*through, **act(cut, moment))
        assert "corpus.fr.faiss: " in told and "run the same command again" in told
    assert len(texts(here(*through).out)) > 100


def test_killed_while_a_second_encoder_works(bitextmine, tiny_model, tmp_path):
    """What it has encoded stays, and the next run ends with the same files."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        for lang in ("en", "fr"):
            shutil.copy(SAMPLES / f"sample.{lang}", folder)
    args = (*MINE, "--second", tiny_model, "-o", "mined.tsv")
    bitextmine(*args, cwd=whole)
    resumed = 0
    for count in range(14, 60, 4):
        died = bitextmine.dies(tmp_path / "hooks", count, *args, cwd=killed)
        resumed += bool(died.code) and any(killed.glob("*.lines"))
        if not died.code:
            break
    assert resumed >= 2
    bitextmine(*args, cwd=killed)
    assert contents(killed) == contents(whole)
