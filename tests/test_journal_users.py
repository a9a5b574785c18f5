"""Everything that keeps a journal survives kill -9 at any write, and ends with the same bytes as a run that was let be.

A user is a command of one process. It is killed before its 1st, 2nd, ... touch of a file in its folder, in a fresh
folder each time and then again and again in the same one; after each, the command is run to its end.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bitextmine.embeddings.store import Manifest, manifest_path, vectors_digest
from bitextmine.files.json_toml import write_json

# Each argument, a folder and a number, is a run of the script there in a process of its own, which dies at so many
# writes, syncs and renames (0: never). Its modules are loaded once for all runs.
_RUNS = """
import os, signal, sys
source = sys.stdin.read()
exec("\\n".join(line for line in source.splitlines() if line.startswith(("import ", "from "))))
def counted(name):
    call = getattr(os, name)
    def count(*args, **more):
        global left
        left -= 1
        if not left:
            if name == "pwrite":
                call(args[0], args[1][: len(args[1]) // 2], *args[2:])
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **more)
    return count
for name in ("pwrite", "fsync", "replace", "rename", "ftruncate"):
    setattr(os, name, counted(name))
for folder, left in (argument.split(":") for argument in sys.argv[1:]):
    left = int(left)
    if not (child := os.fork()):
        os.chdir(folder)
        exec(source)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@dataclass(frozen=True)
class User:
    """A user of journals.

    Attributes:
        prepare: writes the inputs into a folder.
        script: does the work there.
        outputs: the files that must hold the same bytes.
        kills: the counts of events to die at.
    """

    prepare: Callable[[Path], None]
    script: str
    outputs: Sequence[str]
    kills: Sequence[int]


def _vectors(folder):
    rng = np.random.default_rng(1)
    for name, rows in (("x", 300), ("y", 200)):
        vectors = rng.standard_normal((rows, 24)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        npy = folder / f"{name}.npy"
        np.save(npy, vectors.astype(np.float16))
        manifest = Manifest(rows, 24, vectors_blake2b=vectors_digest(npy))
        write_json(manifest_path(npy), manifest.to_json())


_SEARCH = """
import numpy as np
from bitextmine.search import checkpoint
from bitextmine.search.exact import search_both
from bitextmine.search.options import SearchOptions
checkpoint.SAVE_SECONDS, checkpoint._SHARE = 0.0, 0
x, y = np.load("x.npy"), np.load("y.npy")
saved = checkpoint.Checkpoint("search.part")
found = search_both(x, y, 4, SearchOptions(block_rows=60, threads=1), checkpoint=saved)
np.concatenate([found.fwd_id.ravel(), found.bwd_id.ravel()]).tofile("found.bin")
checkpoint.remove_checkpoint("search.part")
"""

_TILES = """
import numpy as np
from pathlib import Path
from bitextmine.distributed.tiles import FileRows, search_tiles
from bitextmine.embeddings.store import VectorFile
from bitextmine.executor import Workers
from bitextmine.search import checkpoint
from bitextmine.search.options import SearchOptions
checkpoint.SAVE_SECONDS, checkpoint._SHARE = 0.0, 0
files = [VectorFile(name) for name in ("x.npy", "y.npy")]
sides = [FileRows(file.path, file.manifest.vectors_blake2b, None, np.load(file.path)) for file in files]
saved = checkpoint.Checkpoint("search.part")
found = search_tiles(Workers(100), *sides, 4, SearchOptions(), Path("x.tiles"), checkpoint=saved)
np.concatenate([found.fwd_id.ravel(), found.bwd_id.ravel()]).tofile("found.bin")
checkpoint.remove_checkpoint("search.part")
"""


def _documents(folder):
    (folder / "texts").mkdir()
    for number, lang in enumerate(("en", "fr") * 4):
        text = "".join(f"Word {i} is <b>here</b>. And there.\n\n" for i in range(5 + number))
        (folder / "texts" / f"{number}.{lang}.txt").write_text(text)


_SPLIT = """
from bitextmine.documents import split
from bitextmine.documents.kinds import SplitOptions
from bitextmine.run import Run
split.SAVE_PARAGRAPHS = 4
report = split.split_files(["texts"], "corpus.{lang}", SplitOptions(), Run())
open("report.txt", "w").write(report.to_text(SplitOptions()))
"""

USERS = {
    "search": User(_vectors, _SEARCH, ("found.bin",), (*range(1, 12), 14, 17)),
    "tiles": User(_vectors, _TILES, ("found.bin",), (1, 2, 3, 4, 6, 9, 13, 20)),
    "split": User(
        _documents,
        _SPLIT,
        ("corpus.en", "corpus.fr", "corpus.en.origin.tsv", "corpus.fr.origin.tsv", "report.txt"),
        (*range(1, 12), 14, 17, 19, 20, 21),
    ),
}


@pytest.mark.parametrize("name", USERS)
def test_a_killed_run_resumes_with_the_same_bytes(name, tmp_path):
    user = USERS[name]
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    for folder in (plain, killed):
        folder.mkdir()
        user.prepare(folder)
    runs = ["plain:0", *(f"killed:{count}" for count in (*user.kills, 0))]
    command = ["env", "OMP_NUM_THREADS=1", sys.executable, "-c", _RUNS, *runs]
    done = subprocess.run(
        command, input=user.script, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    )
    first, *deaths, last = map(int, done.stdout.split())
    assert first == last == 0
    assert deaths.count(-signal.SIGKILL) >= len(deaths) // 2
    assert set(deaths) <= {-signal.SIGKILL, 0}
    for output in user.outputs:
        assert (killed / output).read_bytes() == (plain / output).read_bytes(), output
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in plain.iterdir())
