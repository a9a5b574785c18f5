"""A small corpus and a recipe that trains on it in seconds; random encoders."""

import contextlib
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

TINY = {
    "vocabulary.size": 150,
    "model.dim": 16,
    "train.batch": 64,
    "train.steps": 40,
    "train.valid_every": 20,
    "data.valid_pairs": 60,
}


@pytest.fixture
def make_recipe(sentence_pairs, tmp_path):
    """Writes pairs.en-fr.tsv and returns a recipe over it, with overrides."""
    from bitextmine.training.recipe import load_recipe

    def make(rows=None, **overrides):
        rows = rows if rows is not None else [f"{en}\t{fr}" for en, fr in sentence_pairs[:1600]]
        (tmp_path / "pairs.en-fr.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        settings = {**TINY, **{key.replace("__", "."): value for key, value in overrides.items()}}
        return load_recipe(None, settings, pairs=["pairs.en-fr.tsv"], folder=tmp_path)

    return make


@pytest.fixture
def prepare(tmp_path):
    """Returns the vocabulary and the token caches of a recipe."""
    from bitextmine.training.data.cache import open_caches
    from bitextmine.training.data.vocabulary import open_vocabulary

    def prepare(recipe, tokenizer=None):
        work = tmp_path / "prepared"
        work.mkdir(exist_ok=True)
        tokenizer = tokenizer or open_vocabulary(recipe, work)
        return tokenizer, open_caches(work / "cache", recipe, tokenizer)

    return prepare


@pytest.fixture
def begin(prepare):
    """Returns the training of a recipe before its first step."""
    from bitextmine.training.steps import TrainingRun

    def begin(recipe, tokenizer=None):
        tokenizer, caches = prepare(recipe, tokenizer)
        return TrainingRun(recipe, caches, tokenizer)

    return begin


# Each line of input, a recipe, a folder and a number, is a run in a process of its own; torch is loaded once for all.
RUNS = """
import os, signal, sys, traceback
from pathlib import Path
import torch
import torch._dynamo  # which an optimizer loads, and which takes as long as torch itself
torch.set_num_threads(1)
from bitextmine.training.recipe import load_recipe
from bitextmine.training import job
def die(event, args):  # before so many checkpoints, or embeddings of a teacher, have their name
    global left
    if event == "os.rename" and str(args[1]).endswith(("checkpoint.pt", ".npy")):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
for line in sys.stdin:
    recipe, out, left = line.split()
    left = int(left)
    if not (child := os.fork()):
        sys.addaudithook(die)
        try:
            job.train(load_recipe(Path(recipe)), Path(out))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="session")
def run_to_die():
    """Trains by a recipe in a process that dies at so many checkpoints or embeddings; returns its exit code."""
    command = [sys.executable, "-c", RUNS]
    # On a CPU, where weights do not depend on the order of sums.
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=hidden
    ) as runs:

        def run(recipe, out, events=-1):
            runs.stdin.write(f"{recipe} {out} {events}\n")
            runs.stdin.flush()
            return int(runs.stdout.readline())

        yield run
        runs.stdin.close()


@pytest.fixture
def p_at_1(sentence_pairs):
    """Measures how many of some unseen sentences have their translation nearest; encode: returns unit vectors."""

    def measure(encode, count=200):
        en, fr = (encode([pair[side] for pair in sentence_pairs[5000 : 5000 + count]]) for side in (0, 1))
        return float(((en @ fr.T).argmax(1) == np.arange(count)).mean())

    return measure


@pytest.fixture
def full_disk():
    """Lets no file grow beyond so many bytes, as a context."""

    @contextlib.contextmanager
    def limit(size):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit
