"""Files that change while `mine` works on them, by the real command: an error and no output, never a wrong pair."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# A sitecustomize.py: some Python is run once, when a function of the package is called for the so-manieth time, or
# before the so-manieth touch of a file in a folder. Such a moment is the same on every machine.
_ACT = """
import os, sys

left, on, code = int(os.environ["ACT_AT"]), os.environ["ACT_ON"], os.environ["ACT_DO"]
here = os.path.abspath(os.environ["ACT_IN"])

def count():
    global left
    left -= 1
    if not left:
        sys.setprofile(None)
        exec(code, {})

def audit(event, args):
    if left > 0 and event == "open" and isinstance(args[0], (str, bytes, os.PathLike)):
        if os.path.dirname(os.path.abspath(os.fsdecode(args[0]))) == here:
            count()

def profile(frame, event, arg):
    if left > 0 and event == "call" and frame.f_code.co_name == on and "bitextmine" in frame.f_code.co_filename:
        count()

if on == "touch":
    sys.addaudithook(audit)
else:
    sys.setprofile(profile)
"""

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


@pytest.fixture(scope="module")
def embedded(bitextmine, tiny_model, parallel_text, tmp_path_factory) -> tuple[Path, str]:
    """A folder with two corpora, none of whose lines repeats, and their embeddings; what mining prints."""
    folder = tmp_path_factory.mktemp("embedded")
    parallel_text(folder, LINES)
    return folder, bitextmine(*mine(tiny_model), cwd=folder).out


@pytest.fixture
def folder(embedded, tmp_path) -> Path:
    shutil.copytree(embedded[0], tmp_path / "here")
    return tmp_path / "here"


def mine(model: Path, *more: str) -> list[str]:
    return ["mine", "--src", "en", "--tgt", "fr", "--model", str(model), *more]


def act(tmp_path: Path, code: str, on: str, at: int = 1, **more: str) -> dict[str, Any]:
    """How a command runs `code` at the at-th call of a function, or touch of a file; more: other variables."""
    hooks = tmp_path / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(_ACT)
    env = {"ACT_AT": str(at), "ACT_ON": on, "ACT_DO": code, "ACT_IN": ".", **more}
    return {"hooks": hooks, "env": env}


def pairs(printed: str) -> set[tuple[str, ...]]:
    return {tuple(row.split("\t")[-2:]) for row in printed.splitlines()}


@pytest.mark.parametrize(
    ("change", "message", "moment", "more"),
    [
        (ZEROED, "corpus.fr.npy: the vectors changed", "search_both", []),
        (LINE_ZEROED, "corpus.fr.npy: the vectors changed", "candidates", ["-o", "out.tsv"]),
        (TRUNCATED, "corpus.fr.npy: the vectors changed", "search_both", ["-o", "out.tsv"]),
        (SOURCE_TRUNCATED, "corpus.en.npy: the vectors changed", "search_both", ["--dedup", "near"]),
    ],
    ids=["zeroed", "line zeroed", "truncated", "source truncated"],
)
def test_what_changes_during_the_search_gives_no_pairs(
    bitextmine, tiny_model, embedded, folder, tmp_path, change, message, moment, more
):
    """When the search begins, or when it is over."""
    told = bitextmine.fails(*mine(tiny_model, *more), cwd=folder, **act(tmp_path, change, moment))
    assert message in told
    assert "run the same command again" in told
    assert not [path.name for path in folder.iterdir() if "out" in path.name or path.name.endswith(".part")]
    assert bitextmine(*mine(tiny_model), cwd=folder).out == embedded[1]


@pytest.mark.parametrize("moment", ["search_both", "candidates"])
def test_a_text_that_changes_once_it_is_read_changes_nothing(
    bitextmine, tiny_model, embedded, folder, tmp_path, moment
):
    """A corpus is read once: the pairs are those of the text as it was."""
    assert bitextmine(*mine(tiny_model), cwd=folder, **act(tmp_path, REVERSED, moment)).out == embedded[1]


@pytest.fixture
def sweep(bitextmine, tiny_model, embedded, tmp_path):
    """Mines again and again, with a change before the first touch of a file in the folder, before the second, and so on
    to the last: the results."""

    def run(change: str) -> list[Any]:
        here, done, found = tmp_path / "here", tmp_path / "done", []
        while not found or done.exists():
            done.unlink(missing_ok=True)
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(embedded[0], here)
            moment = act(tmp_path, f"open('../done', 'w').close()\n{change}", "touch", len(found) + 1)
            found.append(bitextmine(*mine(tiny_model), cwd=here, code=None, **moment))
            assert len(found) < 199
        assert len(found) > 5
        for result in found:
            assert "Traceback" not in result.err, result.err
            assert result.code in (0, 1), result
            assert not (result.code and result.out)
        assert (found[-1].code, found[-1].out) == (0, embedded[1]), "nothing changed any more"
        return found

    return run


def test_a_text_that_changes_at_any_moment(sweep, embedded):
    """Right pairs, of the text before or after, or none."""
    right = pairs(embedded[1])
    found = sweep(REVERSED)
    for result in found:
        if not result.code:
            some = pairs(result.out)
            assert len(some & right) > 0.9 * len(right) and len(some - right) < 5


def test_vectors_that_are_cut_short_at_any_moment(sweep, embedded):
    found = sweep(TRUNCATED)
    assert sum(result.code for result in found) >= 1
    for result in found:
        assert result.out == embedded[1] if not result.code else "corpus.fr.npy" in result.err


def test_a_search_that_kept_wrong_neighbours_is_not_taken_up(
    bitextmine, tiny_model, embedded, folder, tmp_path
):
    """Vectors that change between two blocks of a long search, which saves what it has found after each."""
    save_always = "import bitextmine.search.checkpoint as c; c.SAVE_SECONDS = 0; c._SHARE = 0\n"
    then = act(tmp_path, save_always + LINE_ZEROED, "search_both")
    told = bitextmine.fails(*mine(tiny_model), cwd=folder, **then)
    assert "the vectors changed" in told
    assert not list(folder.glob("*.part"))
    assert bitextmine(*mine(tiny_model), cwd=folder).out == embedded[1]


@pytest.mark.parametrize("moment", ["search_both_indexed", "search_lists", "recall"])
def test_an_index_that_is_cut_short_while_it_is_searched(
    bitextmine, tiny_model, embedded, folder, tmp_path, moment
):
    """Its lists are read where they lie, in the file."""
    for corpus in ("corpus.en", "corpus.fr"):
        bitextmine("index", corpus, "--type", "ivf", "--model", str(tiny_model), cwd=folder)
    through = mine(tiny_model, "--search", "index")
    whole = bitextmine(*through, cwd=folder).out
    cut = "import os\nos.truncate('corpus.fr.faiss', os.path.getsize('corpus.fr.faiss') // 8)\n"
    then = act(tmp_path, cut, moment)
    if moment == "recall":  # nothing of the file is read any more
        assert bitextmine(*through, cwd=folder, **then).out == whole
    else:
        told = bitextmine.fails(*through, cwd=folder, **then)
        assert "corpus.fr.faiss: the index changed while it was in use" in told
        assert "run the same command again" in told
    again = bitextmine(*through, cwd=folder).out  # with an index that is built anew
    assert len(pairs(again) & pairs(whole)) > 0.5 * len(pairs(whole))


def test_pairs_in_python_are_of_the_text_that_was_mined(embedded, folder, tiny_model):
    """In the API a result may be read long after it was made."""
    code = (
        "import bitextmine\n"
        f"found = bitextmine.mine('corpus.en', 'corpus.fr', model={str(tiny_model)!r}, threshold='none')\n"
        "first = found[0]\n"
        f"{REVERSED}"
        "print(list(found)[0] == first)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert done.stdout == "True\n"
