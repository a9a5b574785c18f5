"""Shared by end-to-end tests: the installed command, made-up text in two languages, a tiny model."""

import fcntl
import itertools
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Tests run in parallel, one process per CPU, on small matrices, where the threads of NumPy's and torch's libraries
# would spend most of their time spinning. The package's own threads are not affected. The libraries read these when
# loaded.
for _name, _value in (
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),  # torch goes by it
    ("OMP_WAIT_POLICY", "PASSIVE"),
):
    os.environ.setdefault(_name, _value)

# Every run draws the same examples, unless HYPOTHESIS_PROFILE=random asks for others, and a busy machine is no reason
# to fail.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Thousands of commands are started; without bytecode each would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: in `make test &` the tests that
# interrupt a command would fail.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The slowest files come first, so that no process works on one of them at the end while others wait.
_LONG = """
cli/test_mine_resume.py cli/test_adapt.py training/test_steps.py
scoring/test_pipelines.py training/papers/test_ding2022.py training/test_job.py cli/test_mine.py cli/test_embed.py
cli/test_train.py cli/test_align.py training/objectives/test_teaching.py training/model/test_start.py
training/model/test_spelling.py cli/test_pipeline.py cli/test_shell.py embeddings/test_writer.py test_packaging.py
""".split()  # noqa: SIM905


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ROOT / "tests" / name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


Once = Callable[[str, Callable[[Path], None]], Path]

_TRAINING_PAIRS = 1500
# options of `bitextmine train` for a model that is trained in seconds
_TINY = ("--dim", "32", "--vocabulary", "180", "--epochs", "8", "--batch", "128")

# One word list per slot, English and French, for 12 * 12 * 12 * 10 sentences.
_SUBJECTS = (
    "the doctor=le médecin|the teacher=l'institutrice|my neighbour=mon voisin|the old sailor=le vieux marin|"
    "our mayor=notre maire|the young baker=la jeune boulangère|her brother=son frère|a tired clerk=un employé "
    "fatigué|the farmer=la fermière|this painter=ce peintre|the judge=la juge|every student=chaque étudiant"
)
_VERBS = (
    "buys=achète|sells=vend|carries=porte|hides=cache|repairs=répare|finds=trouve|forgets=oublie|paints=peint|"
    "breaks=casse|washes=lave|measures=mesure|photographs=photographie"
)
_OBJECTS = (
    "a red bicycle=un vélo rouge|the heavy table=la lourde table|two umbrellas=deux parapluies|an old map=une "
    "vieille carte|the silver spoon=la cuillère en argent|green apples=des pommes vertes|a wooden boat=un bateau "
    "en bois|the broken clock=l'horloge cassée|seven candles=sept bougies|a winter coat=un manteau d'hiver|"
    "the blue vase=le vase bleu|fresh bread=du pain frais"
)
_PLACES = (
    "in the harbour=dans le port|near the station=près de la gare|before noon=avant midi|after the storm=après "
    "la tempête|at the market=au marché|on the roof=sur le toit|every Sunday=chaque dimanche|without a word=sans "
    "un mot|behind the church=derrière l'église|for his sister=pour sa sœur"
)


def _sentences() -> list[tuple[str, str]]:
    """All (English, French) sentences, in a fixed random order."""
    slots = [
        [entry.split("=") for entry in words.split("|")] for words in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES)
    ]
    pairs = []
    for parts in itertools.product(*slots):
        en, fr = (" ".join(part[side] for part in parts) for side in (0, 1))
        pairs.append((f"{en[0].upper()}{en[1:]}.", f"{fr[0].upper()}{fr[1:]}."))
    random.Random(1).shuffle(pairs)
    return pairs


@dataclass(frozen=True)
class Result:
    """The exit code and output of a finished command."""

    code: int
    out: str
    err: str


# A sitecustomize.py: the process sends itself a signal before the n-th time it touches a file in a folder.
_DIE = """
import os, sys

left, here = int(os.environ["DIE_AT"]), os.path.abspath(os.environ["DIE_IN"])

def count(event, args):
    global left
    if event in ("open", "os.rename", "os.remove", "os.truncate") and isinstance(args[0], (str, bytes, os.PathLike)):
        if os.path.dirname(os.path.abspath(os.fsdecode(args[0]))) == here:
            left -= 1
            if not left:
                os.kill(os.getpid(), int(os.environ["DIE_OF"]))

sys.addaudithook(count)
"""


class Warm:
    """A process that has loaded the package, and forks a command for each request (`warm.py`)."""

    def __init__(self, environment: dict[str, str], *options: str) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            # Pipes, like the streams of a command; Python examines them when it starts.
            self._process = subprocess.Popen(
                [sys.executable, ROOT / "tests" / "warm.py", str(theirs.fileno()), *options],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        self._control.close()
        self._process.communicate()

    def run(self, request: dict[str, Any], stdin: bytes) -> tuple[int, bytes, bytes]:
        """Run a command; return its exit code, standard output and standard error."""
        with tempfile.TemporaryFile() as file, ThreadPoolExecutor(3) as threads:
            file.write(json.dumps(request).encode())
            file.seek(0)
            given, *read = pipes = [os.pipe() for _ in range(4)]  # input, output, errors, answers
            theirs = [given[0], *(writer for _, writer in read)]
            socket.send_fds(self._control, [b"!"], [*theirs[:3], file.fileno(), theirs[3]])
            for descriptor in theirs:
                os.close(descriptor)
            fed = threads.submit(self._feed, pipes[0][1], stdin)
            out, err = (threads.submit(self._read, reader) for reader, _ in pipes[1:3])
            child = self._process.pid
            with open(pipes[3][0], "rb") as answers:
                try:
                    child = int(answers.readline())
                    code = int(answers.readline())
                except BaseException:  # a test that takes too long
                    os.kill(child, signal.SIGKILL)
                    raise
            fed.result()
            return code, out.result(), err.result()

    @staticmethod
    def _feed(descriptor: int, text: bytes) -> None:
        with suppress(BrokenPipeError), open(descriptor, "wb") as stream:
            stream.write(text)

    @staticmethod
    def _read(descriptor: int) -> bytes:
        with open(descriptor, "rb") as stream:
            return stream.read()


@dataclass(frozen=True)
class Command:
    """The installed `bitextmine` command, run as a process."""

    argv: tuple[str, ...]
    warm: dict[tuple[str, str | None], Warm] = field(default_factory=dict)
    begun_with: dict[str, str] = field(default_factory=lambda: Command.environment())

    def __call__(
        self,
        *args: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        stdin: bytes = b"",
        code: int | None = 0,
        env: dict[str, str] | None = None,
        hooks: Path | None = None,
        fresh: bool = False,
        **kwargs: Any,
    ) -> Result:
        """Run to the end and check the exit code (None: any).

        Args:
            hooks: a folder with a sitecustomize.py to run first.
            fresh: use a new interpreter, as other options and variables may require anyway.
        """
        argv, environment = [*self.argv, *map(os.fspath, args)], self.environment(env)
        if hooks is not None:
            environment["PYTHONPATH"] = os.fspath(hooks)
        warm = None if fresh or kwargs else self._warm(argv, environment, hooks)
        if warm is not None:
            said = {
                "argv": argv,
                "cwd": os.fspath(Path.cwd() / (cwd or "")),
                "env": environment,
                "hooks": hooks and os.fspath(hooks / "sitecustomize.py"),
            }
            returned, out, err = warm.run(said, stdin)
        else:
            done = subprocess.run(
                argv, cwd=cwd, input=stdin, capture_output=True, env=environment, check=False, **kwargs
            )
            returned, out, err = done.returncode, done.stdout, done.stderr
        result = Result(returned, *(text.decode(errors="surrogateescape") for text in (out, err)))
        if code is not None:
            assert result.code == code, f"exit code {result.code}, not {code}\n{result.err}\n{result.out}"
        return result

    def _warm(self, argv: Sequence[str], environment: dict[str, str], hooks: Path | None) -> Warm | None:
        """The process that can fork this command (None: it needs a new interpreter)."""
        if len(self.argv) > 1 or os.environ.get("BITEXTMINE_TESTS") == "fresh":
            return None
        # Libraries may read any other variable when they are loaded.
        own = {"BITEXTMINE_MODEL", "OMP_NUM_THREADS", "TMPDIR"} | ({"PYTHONPATH"} if hooks else set())
        for name in {*environment, *self.begun_with} - own:
            if environment.get(name) != self.begun_with.get(name) and not name.startswith(("DIE_", "ACT_")):
                return None
        threads = environment.get("OMP_NUM_THREADS")
        key = "torch" if {*argv[1:2]} & {"train", "adapt", "encoder"} else "", threads
        if key not in self.warm or self.warm[key].has_ended():
            given = {**self.begun_with, **({"OMP_NUM_THREADS": threads} if threads else {})}
            self.warm[key] = Warm(given, *filter(None, key[:1]))
        return self.warm[key]

    def shell(
        self, lines: str, env: dict[str, str] | None = None, **kwargs: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run lines of bash with `pipefail`; `bitextmine` is this command."""
        environment = self.environment(env)
        program = f'#!/bin/sh\nexec {shlex.join(self.argv)} "$@"\n'
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bitextmine").write_text(program)
            (Path(folder) / "bitextmine").chmod(0o755)
            lines = f"set -o pipefail; PATH={shlex.quote(folder)}:$PATH\n{lines}"
            command = ["bash", "-c", lines]
            return subprocess.run(command, env=environment, capture_output=True, check=False, **kwargs)

    def fails(self, *args: str | os.PathLike[str], **kwargs: Any) -> str:
        """Run to an error, with exit code 1 and no output; return the message."""
        result = self(*args, code=1, **kwargs)
        assert "Traceback" not in result.err, result.err
        messages = [line for line in result.err.splitlines() if line.startswith("bitextmine: error: ")]
        assert len(messages) == 1, result.err
        assert result.out == ""
        return messages[0]

    def start(
        self, *args: str | os.PathLike[str], env: dict[str, str] | None = None, **kwargs: Any
    ) -> subprocess.Popen[bytes]:
        """Start without waiting."""
        return subprocess.Popen([*self.argv, *map(os.fspath, args)], env=self.environment(env), **kwargs)

    def dies(
        self,
        hooks: Path,
        count: int,
        *args: str | os.PathLike[str],
        folder: str | os.PathLike[str] = ".",
        env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> Result:
        """Run a command that kills itself as `to_die` says."""
        die = self.to_die(hooks, count, signal.SIGKILL, folder)
        return self(*args, env={**die, **(env or {})}, hooks=hooks, code=None, **kwargs)

    @staticmethod
    def to_die(hooks: Path, count: int, of: int, folder: str | os.PathLike[str] = ".") -> dict[str, str]:
        """Return variables with which a command sends itself a signal before its count-th touch of a file in `folder`.

        That moment does not depend on the speed of the machine. `folder` is relative to the command's working folder;
        `hooks` is an empty folder to use, from which the command must load `sitecustomize`.
        """
        hooks.mkdir(exist_ok=True)
        (hooks / "sitecustomize.py").write_text(_DIE)
        return {"DIE_AT": str(count), "DIE_OF": str(int(of)), "DIE_IN": os.fspath(folder)}

    @staticmethod
    def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return {**kept, **(extra or {})}


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def bitextmine() -> Iterator[Command]:
    """The `bitextmine` that pip installed beside this Python, else `python -m bitextmine`."""
    script = Path(sysconfig.get_path("scripts")) / "bitextmine"
    command = Command((str(script),) if script.exists() else (sys.executable, "-m", "bitextmine"))
    yield command
    for warm in command.warm.values():
        warm.close()


@pytest.fixture(scope="session")
def sentence_pairs() -> list[tuple[str, str]]:
    """17,280 made-up (English, French) sentence pairs in a fixed random order."""
    return _sentences()


@pytest.fixture(scope="session")
def parallel_text(sentence_pairs: list[tuple[str, str]]) -> Callable[..., list[tuple[str, str]]]:
    """Write corpus.en and corpus.fr in different orders into a folder; return the true pairs.

    `pairs` lines of each file have a translation, `extra` lines have none. The tiny model was not trained on them.
    """

    def write(folder: Path, pairs: int, extra: int = 0, name: str = "corpus") -> list[tuple[str, str]]:
        held_out = sentence_pairs[_TRAINING_PAIRS:]
        true = held_out[:pairs]
        en = [pair[0] for pair in held_out[: pairs + extra]]
        fr = [pair[1] for pair in [*true, *held_out[pairs + extra : pairs + 2 * extra]]]
        random.Random(2).shuffle(en)
        random.Random(3).shuffle(fr)
        for lang, lines in (("en", en), ("fr", fr)):
            (folder / f"{name}.{lang}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return true

    return write


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Create a named folder with a function, once for all processes that run tests. Do not write to it."""

    def make_once(name: str, make: Callable[[Path], None]) -> Path:
        base = tmp_path_factory.getbasetemp()
        base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (base / name / "done").exists():
                shutil.rmtree(base / name, ignore_errors=True)
                (base / name).mkdir()
                make(base / name)
                (base / name / "done").touch()
        return base / name

    return make_once


@pytest.fixture(scope="session")
def tiny_model(bitextmine: Command, sentence_pairs: list[tuple[str, str]], once: Once) -> Path:
    """A model trained in seconds; it knows the made-up sentences well."""

    def make(folder: Path) -> None:
        pairs = folder / "pairs.en-fr.tsv"
        pairs.write_text(
            "".join(f"{en}\t{fr}\n" for en, fr in sentence_pairs[:_TRAINING_PAIRS]), encoding="utf-8"
        )
        bitextmine("train", "--pairs", pairs, "--out", folder / "model", *_TINY)

    return once("tiny", make) / "model"


@pytest.fixture(scope="session")
def other_model(bitextmine: Command, tiny_model: Path, once: Once) -> Path:
    """Another, barely trained model with the same vocabulary and 24 dimensions."""
    pairs = tiny_model.parent / "pairs.en-fr.tsv"

    def make(folder: Path) -> None:
        more = ("--dim", "24", "--epochs", "1")
        bitextmine("train", "--pairs", pairs, "--out", folder / "model", *_TINY, *more)

    return once("other", make) / "model"
