"""What the commands read and where they keep vectors, by the real command: pipes, several pairs, several models,
several processes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture(scope="module")
def alone(bitextmine, tiny_model, parallel_text, tmp_path_factory) -> Path:
    """corpus.en, corpus.fr and, as a third language, corpus.de: the French lines in another order; with the outputs of
    two runs, en-fr.tsv and en-de.tsv, and the embeddings that they made."""
    folder = tmp_path_factory.mktemp("alone")
    parallel_text(folder, 120, extra=10)
    lines = (folder / "corpus.fr").read_text().splitlines(keepends=True)
    (folder / "corpus.de").write_text("".join(reversed(lines)))
    for tgt in ("fr", "de"):
        args = ("--tgt", tgt, "--model", tiny_model, "-o", f"en-{tgt}.tsv")
        bitextmine("mine", "--src", "en", *args, cwd=folder)
    return folder


@pytest.fixture
def fresh(alone, tmp_path) -> Path:
    """The three corpora alone."""
    folder = tmp_path / "fresh"
    folder.mkdir()
    for lang in ("en", "fr", "de"):
        shutil.copy(alone / f"corpus.{lang}", folder)
    return folder


# --- several processes -------------------------------------------------------------------------------------


@pytest.fixture
def stopped(bitextmine, tiny_model, fresh, tmp_path):
    """A process that began to write corpus.en.npy and stands still."""
    args = ("embed", "corpus.en", "--model", tiny_model)
    hooks = tmp_path / "hooks"
    child = bitextmine.start_to_die(hooks, 12, *args, of=signal.SIGSTOP, cwd=fresh, stderr=subprocess.DEVNULL)
    os.waitpid(child.pid, os.WUNTRACED)
    assert (fresh / "corpus.en.npy.part").exists()
    yield child
    child.kill()
    child.wait()


@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL], ids=["finishes", "killed"])
def test_a_run_waits_for_an_embedding_that_is_being_written(
    bitextmine, tiny_model, alone, fresh, stopped, end
):
    args = ("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, "-o", "en-fr.tsv")
    with bitextmine.start(*args, cwd=fresh, stderr=subprocess.PIPE) as waiting:
        said = waiting.stderr.readline().decode()  # not before it waits
        running = waiting.poll() is None
        stopped.send_signal(end)
        err = waiting.communicate()[1].decode()
    stopped.wait()
    assert f"corpus.en.npy: process {stopped.pid} on " in said and "waiting for it" in said
    assert running
    assert waiting.returncode == 0, err
    told = "corpus.en.npy: up to date" if end == signal.SIGCONT else "corpus.en.npy: 130 lines embedded"
    assert told in err
    wanted = contents(alone)
    assert contents(fresh) == {name: wanted[name] for name in contents(fresh)}
    assert {"corpus.en.npy", "corpus.fr.npy", "en-fr.tsv"} <= contents(fresh).keys()


def test_a_run_need_not_wait(bitextmine, tiny_model, fresh, stopped):
    for args in (("embed", "corpus.en"), ("index", "corpus.en"), ("mine", "corpus.en", "corpus.fr")):
        message = bitextmine.fails(*args, "--no-wait", "--model", tiny_model, cwd=fresh)
        assert (
            f"corpus.en.npy: process {stopped.pid} on " in message and "is writing this embedding" in message
        )
        assert "--cache" in message and "--cache" in bitextmine(args[0], "--help").out


def test_another_model_does_not_wait(bitextmine, other_model, fresh, stopped):
    bitextmine("embed", "corpus.en", "--model", other_model, cwd=fresh)
    (npy,) = fresh.glob("corpus.en.*.npy")
    assert np.load(npy).shape == (130, 24)
    assert (fresh / "corpus.en.npy.part").exists(), "which goes on when it goes on"


# --- several models, and a cache ---------------------------------------------------------------------------


def test_two_models_keep_their_vectors_side_by_side(bitextmine, tiny_model, other_model, alone, fresh):
    args = ("mine", "--src", "en", "--tgt", "fr", "--threshold", "none", "--model")
    alone_other = bitextmine(*args, other_model, cwd=fresh).out
    other = contents(fresh)
    assert {"corpus.en.npy", "corpus.fr.npy"} <= other.keys(), "the first has today's names"
    tiny = bitextmine(*args, tiny_model, cwd=fresh)
    assert "corpus.en.npy: has vectors of another model" in tiny.err
    assert {name: data for name, data in contents(fresh).items() if name in other} == other
    (npy,) = fresh.glob("corpus.en.*.npy")
    assert npy.read_bytes() == (alone / "corpus.en.npy").read_bytes()
    before = contents(fresh)
    assert bitextmine(*args, tiny_model, cwd=fresh).out == tiny.out
    assert bitextmine(*args, other_model, cwd=fresh).out == alone_other
    assert contents(fresh) == before, "nothing was made again"

    (fresh / "pairs.tsv").write_text(
        "".join("\t".join(row.split("\t")[1:]) for row in tiny.out.splitlines(True))
    )
    for model in (tiny_model, other_model):
        indexes = ("--src-index", "corpus.en", "--tgt-index", "corpus.fr")
        scored = bitextmine(
            "score", "pairs.tsv", "--columns", "margin", *indexes, "--model", model, cwd=fresh
        )
        assert len(scored.out.splitlines()) == 1 + len(tiny.out.splitlines())
    assert len(list(fresh.glob("corpus.en*.faiss"))) == 2


def test_a_cache_holds_vectors_of_many_folders(bitextmine, tiny_model, alone, fresh, tmp_path):
    args = ["mine", "--src", "en", "--tgt", "fr", "--model", tiny_model]
    texts = contents(fresh)
    for mode in (0o555, 0o755):  # a folder that can only be read, unless this is root
        fresh.chmod(mode)
        result = bitextmine(*args, "--cache", tmp_path / "new" / "cache", cwd=fresh)
        assert result.out == (alone / "en-fr.tsv").read_text()
    assert contents(fresh) == texts, "nothing lies beside the corpora"
    assert result.err.count("up to date") == 2
    cached = sorted((tmp_path / "new" / "cache").glob("*.npy"))
    assert [path.read_bytes() for path in cached] == [
        (alone / f"corpus.{lang}.npy").read_bytes() for lang in ("en", "fr")
    ]
    # The same names in another folder, other text; the folder from the environment.
    env = {"BITEXTMINE_CACHE": str(tmp_path / "new" / "cache"), "BITEXTMINE_MODEL": str(tiny_model)}
    (tmp_path / "corpus.fr").write_text("Bonjour.\n")
    bitextmine("embed", "corpus.fr", cwd=tmp_path, env=env)
    assert len(list((tmp_path / "new" / "cache").glob("corpus.fr.*.npy"))) == 2
    assert not (tmp_path / "corpus.fr.npy").exists()
    bitextmine("embed", "corpus.fr", "--out", "here.npy", cwd=tmp_path, env=env)
    assert (tmp_path / "here.npy").exists(), "what is said counts more than the environment"
    refused = bitextmine("embed", "corpus.fr", "--out", "x.npy", "--cache", "c", cwd=tmp_path, code=2)
    assert "--out and --cache" in refused.err
    message = bitextmine.fails("embed", "corpus.fr", "--cache", "corpus.fr/c", cwd=tmp_path, env=env)
    assert "corpus.fr/c: cannot make this folder (--cache)" in message


# --- several pairs, and corpora by name --------------------------------------------------------------------


def test_several_pairs_share_the_embedding_of_the_source(bitextmine, tiny_model, alone, fresh, tmp_path):
    args = [
        "mine",
        "--src",
        "en",
        "--tgt",
        "fr",
        "--tgt",
        "de",
        "--model",
        tiny_model,
        "-o",
        "{src}-{tgt}.tsv",
    ]
    for count in (12, 30, 45):  # killed again and again
        assert bitextmine.dies(tmp_path / "hooks", count, *args, cwd=fresh).code == -signal.SIGKILL
        for name in ("en-fr.tsv", "en-de.tsv"):  # whole, or not there
            if (fresh / name).exists():
                assert (fresh / name).read_bytes() == (alone / name).read_bytes()
    result = bitextmine(*args, cwd=fresh)
    assert result.err.count("corpus.en.npy") == 1
    assert contents(fresh) == contents(alone), "as separate runs make them"


def test_several_pairs_need_several_outputs(bitextmine, tiny_model, fresh):
    before = contents(fresh)
    for args, message in [
        ("--src en --tgt fr --tgt de", "standard output takes one output, and 2 are asked for"),
        ("--src en --tgt fr --tgt de -o x.tsv", "-o x.tsv is one output, and 2 are asked for"),
        ("--src en --src de --tgt fr -o {tgt}.tsv", "-o {tgt}.tsv is one output"),
        ("--src en --tgt fr --tgt fr -o {tgt}.tsv", "--tgt names a language twice"),
        ("--src en --tgt fr --tgt de -o corpus.{tgt}", "would replace corpus.fr"),
        ("--src en --tgt fr --tgt de -o {tgt}.tsv --gold g.tsv", "--gold holds the pairs of two corpora"),
        ("--src en --tgt fr --tgt de --tgt-file corpus.fr", "--tgt is given 2 times"),
        ("corpus.en", "expected two corpora, SRC and TGT, found corpus.en"),
        ("corpus.en corpus.fr --tgt-file corpus.de", "--tgt-file"),
    ]:
        result = bitextmine("mine", *args.split(), "--model", tiny_model, cwd=fresh, code=2)
        assert message in result.err, result.err
    same = ("mine", "--src", "en", "--src", "fr", "--tgt", "fr", "-o", "{src}.tsv", "--model", tiny_model)
    message = bitextmine.fails(*same, cwd=fresh)
    assert "both the source and the target" in message
    assert contents(fresh) == before, "before any work"


def test_two_corpora_by_name(bitextmine, tiny_model, alone, fresh):
    wanted = (alone / "en-fr.tsv").read_text()
    by_name = bitextmine("mine", "corpus.en", "corpus.fr", "--model", tiny_model, cwd=fresh)
    assert by_name.out == wanted
    assert "src:en|tgt:fr|" in by_name.err
    (fresh / "corpus.en").rename(fresh / "a.txt")
    message = bitextmine.fails("mine", "a.txt", "corpus.fr", "--model", tiny_model, cwd=fresh)
    assert "a.txt: no language" in message and "pass --src" in message
    told = bitextmine("mine", "a.txt", "corpus.fr", "--src", "en", "--model", tiny_model, cwd=fresh)
    assert told.out == wanted
    assert "src:en|tgt:fr|" in told.err


# --- pipes -------------------------------------------------------------------------------------------------


@pytest.fixture
def bash(bitextmine, tiny_model, fresh):
    def run(line: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        line = line.replace("bitextmine", shlex.join(bitextmine.argv))
        env = bitextmine.environment({"BITEXTMINE_MODEL": str(tiny_model)})
        done = subprocess.run(["bash", "-c", line], cwd=fresh, env=env, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_one_pass_takes_a_pipe(bash, alone, fresh):
    shutil.copy(alone / "en-fr.tsv", fresh)
    assert bash("bitextmine score <(cat en-fr.tsv)").stdout == bash("bitextmine score en-fr.tsv").stdout
    cut = "--min score=1.1"
    assert (
        bash(f"bitextmine filter <(cat en-fr.tsv) {cut}").stdout
        == bash(f"bitextmine filter en-fr.tsv {cut}").stdout
    )
    assert bash("bitextmine info <(cat corpus.fr)").stdout.startswith("what: corpus\nlines: 130")
    bash("bitextmine embed <(cat corpus.fr) --lang fr --out piped.npy")
    assert (fresh / "piped.npy").read_bytes() == (alone / "corpus.fr.npy").read_bytes()


def test_a_named_pipe_is_embedded_under_its_name(bash, alone, fresh):
    text = (fresh / "corpus.fr").read_bytes()
    (fresh / "corpus.fr").unlink()
    os.mkfifo(fresh / "corpus.fr")
    writer = threading.Thread(target=(fresh / "corpus.fr").write_bytes, args=(text,))
    writer.start()
    bash("bitextmine embed corpus.fr")
    writer.join()
    for name in ("corpus.fr.npy", "corpus.fr.json"):
        assert (fresh / name).read_bytes() == (alone / name).read_bytes()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bitextmine mine <(cat corpus.en) corpus.fr --src en", ["/dev/fd/", "read once", ".gz"]),
        (
            "bitextmine mine --src-file corpus.en --tgt-file <(cat corpus.fr) --tgt fr",
            ["/dev/fd/", "read once"],
        ),
        ("bitextmine mine corpus.en corpus.fr --gold <(echo 1)", ["--gold", "pipe"]),
        ("bitextmine index <(cat corpus.fr)", ["/dev/fd/", "embed - --lang"]),
        ("bitextmine embed <(cat corpus.fr)", ["a pipe", "--out"]),
        ("bitextmine embed <(cat corpus.fr) --out x.npy", ["a pipe", "--lang"]),
    ],
)
def test_what_reads_twice_refuses_a_pipe_and_says_why(bash, fresh, line, words):
    before = contents(fresh)
    message = bash(line, code=2).stderr
    assert all(word in message for word in words), message
    assert contents(fresh) == before
