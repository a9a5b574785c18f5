"""`bitextmine embed`."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from .helpers import MINE, contents

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress}


def test_row_i_is_line_i(bm, tmp_path):
    sentence = "Le maire achète une carte."
    lines = ["", sentence, "\t", "La mairie\u2028fin", f"{sentence}\r", "a\tb", "fin"]
    (tmp_path / "corpus.fr").write_bytes("\n".join(lines).encode())
    assert bm("embed", "corpus.fr").out == ""
    vectors = np.load(tmp_path / "corpus.fr.npy")
    assert vectors.dtype == np.float16 and len(vectors) == len(lines)
    assert not vectors[0].any()
    assert (vectors[1] == vectors[4]).all()
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1)
    assert np.allclose(lengths[[1, 3, 4, 5, 6]], 1, atol=1e-3)
    assert json.loads((tmp_path / "corpus.fr.json").read_text())["rows"] == len(lines)


def test_compressed_corpora_and_pipes_embed_the_same(bm, bash, parallel_text, tmp_path):
    parallel_text(tmp_path, 50)
    text = (tmp_path / "corpus.fr").read_bytes()
    for kind, compress in COMPRESS.items():
        (tmp_path / f"packed.fr.{kind}").write_bytes(compress(text))
        bm("embed", f"packed.fr.{kind}", "--out", f"{kind}.npy")
    bm("embed", "corpus.fr")
    plain = (tmp_path / "corpus.fr.npy").read_bytes()
    assert all((tmp_path / f"{kind}.npy").read_bytes() == plain for kind in COMPRESS)

    bm("embed", "-", "--lang", "fr", "--out", "first.fr.npy", stdin=b"".join(text.splitlines(True)[:20]))
    assert (np.load(tmp_path / "first.fr.npy") == np.load(tmp_path / "corpus.fr.npy")[:20]).all()
    bash("bitextmine embed <(cat corpus.fr) --lang fr --out piped.npy")
    assert (tmp_path / "piped.npy").read_bytes() == plain
    (tmp_path / "corpus.fr").unlink()
    (tmp_path / "corpus.fr.npy").unlink()
    os.mkfifo(tmp_path / "corpus.fr")
    writer = threading.Thread(target=(tmp_path / "corpus.fr").write_bytes, args=(text,))
    writer.start()
    bm("embed", "corpus.fr")
    writer.join()
    assert (tmp_path / "corpus.fr.npy").read_bytes() == plain


def test_a_fresh_embedding_is_kept(bm, parallel_text, tmp_path):
    parallel_text(tmp_path, 50)
    (tmp_path / "one.fr").write_text("Bonjour.\n")
    err = bm("embed", "corpus.fr", "one.fr").err
    assert "corpus.fr.npy: 50 lines embedded" in err and "one.fr.npy: 1 line embedded" in err
    before = (tmp_path / "corpus.fr.npy").stat()
    whole = (tmp_path / "corpus.fr.npy").read_bytes()
    os.utime(tmp_path / "corpus.fr")
    assert "up to date (50 lines" in bm("embed", "corpus.fr").err
    after = (tmp_path / "corpus.fr.npy").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    bm("embed", "--force", "corpus.fr")
    assert (tmp_path / "corpus.fr.npy").stat().st_ino != before.st_ino
    assert (tmp_path / "corpus.fr.npy").read_bytes() == whole


def test_an_interrupted_force_is_not_forgotten(bitextmine, tiny_model, parallel_text, tmp_path):
    parallel_text(tmp_path, 60)
    args = ("embed", "corpus.en", "--model", tiny_model)
    bitextmine(*args, cwd=tmp_path)
    whole = (tmp_path / "corpus.en.npy").read_bytes()
    done = bitextmine.dies(tmp_path / "hooks", 14, *args, "--force", cwd=tmp_path)
    there = [(tmp_path / name).exists() for name in ("corpus.en.npy", "corpus.en.npy.part")]
    assert (done.code, there) == (-signal.SIGKILL, [True, True])
    assert (
        "corpus.en.npy: embedding again: embed --force has not finished"
        in bitextmine(*args, cwd=tmp_path).err
    )
    assert "up to date" in bitextmine(*args, cwd=tmp_path).err
    assert (tmp_path / "corpus.en.npy").read_bytes() == whole


@pytest.fixture
def stopped(bm, bitextmine, tiny_model, parallel_text, tmp_path):
    """A stopped process that has begun to write corpus.en.npy."""
    parallel_text(tmp_path, 120, extra=10)
    args = ("embed", "corpus.en", "--model", tiny_model)
    hooks = tmp_path / "hooks"
    stop = {"PYTHONPATH": str(hooks), **bitextmine.to_die(hooks, 8, signal.SIGSTOP)}
    child = bitextmine.start(*args, env=stop, cwd=tmp_path, stderr=subprocess.DEVNULL)
    os.waitpid(child.pid, os.WUNTRACED)
    assert (tmp_path / "corpus.en.npy.part").exists()
    yield child
    child.kill()
    child.wait()


@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL], ids=["finishes", "killed"])
def test_waiting_for_another_process(bitextmine, tiny_model, tmp_path, stopped, end):
    args = ("embed", "corpus.en", "--model", tiny_model)
    with bitextmine.start(*args, cwd=tmp_path, stderr=subprocess.PIPE) as waiting:
        said = waiting.stderr.readline().decode()
        running = waiting.poll() is None
        stopped.send_signal(end)
        err = waiting.communicate()[1].decode()
    stopped.wait()
    assert "corpus.en.npy: another process is writing" in said
    assert running and waiting.returncode == 0, err
    assert "corpus.en.npy: " + ("up to date" if end == signal.SIGCONT else "130 lines embedded") in err
    written = (tmp_path / "corpus.en.npy").read_bytes()
    bitextmine(*args, "--force", cwd=tmp_path)
    assert (tmp_path / "corpus.en.npy").read_bytes() == written


def test_two_models_side_by_side(bm, mined, other_model, tmp_path):
    first = contents(tmp_path)
    said = bm(*MINE, "--model", other_model)
    both = contents(tmp_path)
    assert {name: both[name] for name in first} == first
    assert len(list(tmp_path.glob("corpus.en.*.npy"))) == 1
    assert bm(*MINE, "--model", other_model).out == said.out
    assert bm(*MINE).out == mined
    assert contents(tmp_path) == both, "nothing is embedded again"


def test_a_cache_for_several_folders(bm, mined_folder, parallel_text, tmp_path):
    folder, cache = tmp_path / "read-only", tmp_path / "new" / "cache"
    folder.mkdir()
    parallel_text(folder, 30, extra=5)
    before = contents(folder)
    for mode in (0o555, 0o755):
        folder.chmod(mode)
        result = bm(*MINE, "--cache", cache, cwd=folder)
        assert result.out == mined_folder[1]
    assert contents(folder) == before
    assert result.err.count("up to date") == 2
    assert [path.read_bytes() for path in sorted(cache.glob("*.npy"))] == [
        (mined_folder[0] / f"corpus.{lang}.npy").read_bytes() for lang in ("en", "fr")
    ]
    # The same file name in another folder; the cache from the environment, which --out overrides.
    env = {"BITEXTMINE_CACHE": str(cache)}
    (tmp_path / "corpus.fr").write_text("Bonjour.\n")
    bm("embed", "corpus.fr", env=env)
    assert len(list(cache.glob("corpus.fr.*.npy"))) == 2
    bm("embed", "corpus.fr", "--out", "here.npy", env=env)
    assert [path.name for path in tmp_path.glob("*.npy")] == ["here.npy"]
    assert "--out and --cache" in bm.refused("embed", "corpus.fr", "--out", "x.npy", "--cache", "c", code=2)
    assert "corpus.fr/c: " in bm.fails("embed", "corpus.fr", "--cache", "corpus.fr/c")


def put_array(path, array):
    with path.open("wb") as file:
        np.save(file, array)


FOREIGN: dict[str, Callable[[Path], Any]] = {
    "corpus.fr.npy of labels": lambda f: put_array(f / "corpus.fr.npy", np.arange(5)),
    "corpus.fr.npy of floats": lambda f: put_array(f / "corpus.fr.npy", np.ones((5, 4), dtype=np.float32)),
    "corpus.fr.npy of another size": lambda f: put_array(f / "corpus.fr.npy", np.eye(5, 7, dtype=np.float16)),
    "corpus.fr.json": lambda f: (f / "corpus.fr.json").write_text('{"title": "mine"}'),
    "corpus.fr.npy.part": lambda f: (f / "corpus.fr.npy.part").write_text("half a download"),
}


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("foreign", FOREIGN)
def test_foreign_files_beside_a_corpus(bm, tmp_path, foreign):
    """They are kept, and no corpus is embedded at all, unless --force is given."""
    FOREIGN[foreign](tmp_path)
    name = foreign.partition(" ")[0]
    commands = [("embed", "corpus.en", "corpus.fr")]
    if foreign in ("corpus.fr.json", "corpus.fr.npy of labels"):
        commands += [MINE, ("index", "corpus.en", "corpus.fr")]
    for command in commands:
        message = bm.refused(*command)
        assert f"{name}: " in message and "--force" in message
    for command in commands:
        FOREIGN[foreign](tmp_path)
        bm(*command, "--force")
        assert json.loads((tmp_path / "corpus.fr.json").read_text())["kind"] == "embedding"
        assert len(np.load(tmp_path / "corpus.fr.npy")) == 5
        if command[0] != "index":  # embeds nothing any more
            assert not (tmp_path / "corpus.fr.npy.part").exists()


@pytest.mark.usefixtures("corpora")
def test_own_damaged_files_are_replaced(bm, tmp_path):
    """Without --force: truncated, empty after a power cut, stale; but not vectors that no manifest describes."""
    bm("embed", "corpus.fr")
    npy, manifest = tmp_path / "corpus.fr.npy", tmp_path / "corpus.fr.json"
    whole = npy.read_bytes()
    for damage in (
        lambda: npy.write_bytes(whole[:200]),
        lambda: npy.write_bytes(bytes(len(whole))),
        lambda: npy.write_bytes(b""),
        lambda: manifest.write_bytes(b""),
        lambda: (tmp_path / "corpus.fr.npy.part").write_bytes(whole[:300]),
        lambda: (tmp_path / "corpus.fr").write_text("Une autre phrase.\n"),
    ):
        damage()
        bm("embed", "corpus.fr")
        assert json.loads(manifest.read_text())["rows"] == len(np.load(npy))
    manifest.unlink()
    assert "corpus.fr.npy: " in bm.refused("embed", "corpus.fr")
    bm("embed", "corpus.fr", "--force")
    assert manifest.exists()
