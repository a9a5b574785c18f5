"""Executors by name: what --executor takes, one of another package, and that Ray is loaded only if asked for."""

import functools
import subprocess
import sys

import pytest

from bitextmine.distributed.ray import Ray
from bitextmine.errors import UsageError
from bitextmine.executor import LOCAL, find_executor
from bitextmine.run import Run

# An executor of another package: tasks run here, and a file gets a line for each.
TOY = """
import contextlib
from dataclasses import dataclass
from bitextmine.executor import Workers

@dataclass(frozen=True)
class Toy:
    log: str
    rows: int = 100
    distributed = True

    def device(self, asked):
        return "cpu"

    @contextlib.contextmanager
    def open(self):
        yield ToyWorkers(self)

class ToyWorkers(Workers):
    def __init__(self, toy):
        super().__init__(toy.rows)
        self.log = toy.log

    def map(self, tasks, ahead=0):
        for task, value in super().map(tasks, ahead):
            with open(self.log, "a") as log:
                print(task.what, file=log)
            yield task, value
"""


def test_an_executor_of_another_package(bitextmine, tmp_path, parallel_text, tiny_model):
    installed = tmp_path / "site" / "toy-1.0.dist-info"
    installed.mkdir(parents=True)
    (tmp_path / "site" / "toy.py").write_text(TOY)
    (installed / "METADATA").write_text("Name: toy\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[bitextmine.executors]\ntoy = toy:Toy\n")
    parallel_text(tmp_path, 150)
    bm = functools.partial(bitextmine, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")})
    mine = ("mine", "--src", "en", "--tgt", "fr", "--model", tiny_model, "--threshold", "none")
    plain = bm(*mine, "--cache", "plain").out
    assert plain and bm(*mine, "--executor", "toy://tasks.log?rows=64").out == plain
    tasks = (tmp_path / "tasks.log").read_text().splitlines()
    assert {"loading the model", "comparing rows 1 to 64 with rows 65 to 128"} <= {*tasks}


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("ray://head", "expected auto or HOST:PORT of a cluster's head .6379 as a rule., found 'head'"),
        ("ray://head:70000", "found 'head:70000'"),
        ("ray://auto?cpus=0", "executor: cpus must be at least 1, found 0"),
        ("ray://auto?rows=many", "executor: rows: expected a whole number, found 'many'"),
        ("ray://auto?memory=1", "executor 'ray' has no setting 'memory'; its settings are cpus, gpus, rows"),
        ("slurm", "no executor is called 'slurm'"),
        ("tiles", "no executor is called 'tiles'"),
        ("", "found ''"),
        (5, "expected an executor or its name, found 5"),
    ],
)
def test_what_is_refused(executor, message):
    with pytest.raises(UsageError, match=message):
        Run(executor=executor)


def test_a_worker_has_the_gpus_of_its_executor():
    with pytest.raises(UsageError, match=r"--device cuda: a worker .* gives it .0., and Ray says which"):
        Run(executor="ray", device="cuda")
    with pytest.raises(UsageError, match=r"--device cpu: a worker .* gives it .1., and"):
        Run(executor="ray://auto?gpus=1", device="cpu")


def test_the_executor_that_is_asked_for():
    for address in ("auto", "head:6379", "10.0.0.1:6379", "[::1]:6379"):
        assert find_executor(f"ray://{address}") == Ray(address)
    assert Run().executor == find_executor("local") == LOCAL
    assert find_executor("ray") == Ray()
    assert Run(executor="ray://head:6379?cpus=2&rows=100").executor == Ray("head:6379", 2, rows=100)


def test_nothing_of_ray_is_loaded_without_the_option(tmp_path):
    """Where it is not installed, that of the same name here would be."""
    (tmp_path / "hooks" / "ray").mkdir(parents=True)
    (tmp_path / "hooks" / "ray" / "__init__.py").write_text("raise SystemExit('Ray is loaded')\n")
    for lang, line in (("en", "one cat"), ("fr", "un chat")):
        (tmp_path / f"corpus.{lang}").write_text(f"{line}\n")
    code = "import sys; sys.path.insert(0, 'hooks'); from bitextmine.cli.program import main; main()"
    args = ["mine", "--src", "en", "--tgt", "fr", "--threshold", "none"]
    run = [sys.executable, "-c", code, *args]
    plain = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    assert "one cat\tun chat" in plain.stdout
    loaded = subprocess.run(
        [*run, "--ray", "auto"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Ray is loaded" in loaded.stderr, "with the option it would have been noticed"


def test_without_ray_the_message_says_what_to_install(bitextmine, tmp_path):
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text("import sys\nsys.modules['ray'] = None\n")
    (tmp_path / "corpus.fr").write_text("un chat\n")
    env = {"PYTHONPATH": str(tmp_path / "hooks")}
    said = bitextmine.fails("embed", "corpus.fr", "--ray", "auto", cwd=tmp_path, env=env)
    assert "--executor ray needs Ray, which is not installed; install it with pip install 'ray>=2.40'" in said
