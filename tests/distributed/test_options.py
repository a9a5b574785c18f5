"""What --ray takes, and that nothing of Ray is loaded without it."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from bitextmine.distributed.ray import Ray, RayWorkers, take_executor
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.executor import LOCAL
from bitextmine.mining.options import split_options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"ray": "head"},
            "expected auto, local or HOST:PORT of a cluster's head .6379 as a rule., found 'head'",
        ),
        ({"ray": "head:70000"}, "found 'head:70000'"),
        ({"ray": "ray://head:10001"}, "found 'ray://head:10001'"),
        ({"ray": "auto", "ray_cpus": 0}, "ray_cpus must be at least 1"),
        ({"ray_cpus": 4}, "ray_cpus .--ray-cpus. is for --ray, which is not given"),
        ({"ray": "auto", "device": "cuda"}, "--device cuda with --ray: .* gives it .0., and Ray says which"),
        ({"ray": "auto", "ray_gpus": 1, "device": "cpu"}, "--device cpu with --ray: .* gives it .1., and"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        split_options(given)


def test_the_executor_that_is_asked_for():
    for address in ("auto", "local", "head:6379", "10.0.0.1:6379", "[::1]:6379"):
        assert take_executor({"ray": address}) == Ray(address)
    assert take_executor({}) == LOCAL
    assert split_options({"ray": "auto", "ray_cpus": 2})[1].run.executor == Ray("auto", 2)


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
        [*run, "--ray", "local"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Ray is loaded" in loaded.stderr, "with the option it would have been noticed"


def test_without_ray_the_message_says_what_to_install(bitextmine, tmp_path):
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text("import sys\nsys.modules['ray'] = None\n")
    (tmp_path / "corpus.fr").write_text("un chat\n")
    env = {"PYTHONPATH": str(tmp_path / "hooks")}
    said = bitextmine.fails("embed", "corpus.fr", "--ray", "local", cwd=tmp_path, env=env)
    assert "--ray needs Ray, which is not installed: pip install 'bitextmine[ray]'" in said


def test_an_object_store_that_is_too_small():
    node = {"NodeID": "a" * 56, "NodeManagerAddress": "10.0.0.1", "Alive": True}
    node["Resources"] = {"CPU": 1.0, "object_store_memory": 100.0}
    ray = SimpleNamespace(nodes=lambda: [node], remote=lambda **_: lambda function: None)
    workers = RayWorkers(ray, Ray())
    workers.check_fits(50, "the model x")
    with pytest.raises(
        BitextmineError, match="an object store of 100 bytes, and the model x takes 51; start"
    ):
        workers.check_fits(51, "the model x")
