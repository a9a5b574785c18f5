"""What --ray takes, and that nothing of Ray is loaded without it."""

import socket
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
        ({"ray": "head"}, "expected auto, local or HOST:PORT of a cluster's head, found 'head'"),
        ({"ray": "head:70000"}, "found 'head:70000'"),
        ({"ray": ""}, "found ''"),
        ({"ray": 6379}, "found 6379"),
        ({"ray": "ray://head:10001"}, "Ray Client's address; run the command on a node of the cluster"),
        ({"ray": "auto", "ray_cpus": 0}, "ray_cpus must be at least 1"),
        ({"ray": "auto", "ray_gpus": -1}, "ray_gpus must be at least 0"),
        ({"ray": "auto", "ray_rows": 0}, "ray_rows must be at least 1"),
        ({"ray_cpus": 4}, "ray_cpus .--ray-cpus. is for --ray, which is not given"),
        ({"ray_gpus": 1}, "--ray-gpus. is for --ray"),
        ({"ray_rows": 10}, "--ray-rows. is for --ray"),
        ({"ray": "auto", "device": "cuda"}, "give each worker a GPU with --ray-gpus 1"),
        ({"ray": "auto", "ray_gpus": 1, "device": "cuda:1"}, "Ray says which GPU a worker gets"),
        ({"ray": "auto", "ray_gpus": 1, "device": "cpu"}, "leave out one of the two"),
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


@pytest.mark.parametrize(
    ("command", "args", "message"),
    [
        ("embed", ("--ray", "head"), "expected auto, local or HOST:PORT"),
        ("mine", ("--ray-cpus", "2"), "is for --ray, which is not given"),
        ("embed", ("--ray", "local", "--device", "cuda"), "give each worker a GPU with --ray-gpus 1"),
        ("mine", ("--ray", "local", "--ray-gpus", "x"), "'x' is not a valid integer"),
    ],
)
def test_wrong_usage(command, args, message, bitextmine, tmp_path):
    for lang in ("en", "fr"):
        (tmp_path / f"corpus.{lang}").write_text("one line\n")
    result = bitextmine(
        command, "corpus.en", *["corpus.fr"] * (command == "mine"), *args, code=2, cwd=tmp_path
    )
    assert message in " ".join(result.err.split())


def test_lines_in_memory_are_refused():
    from bitextmine import mine

    with pytest.raises(
        UsageError, match="workers of a cluster read embeddings from files; give corpora in files"
    ):
        mine(["one"], ["un"], src_lang="en", tgt_lang="fr", ray="local")


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


def test_no_such_cluster(bitextmine, tmp_path):
    pytest.importorskip("ray", reason="--ray needs the extra 'ray'")
    (tmp_path / "corpus.fr").write_text("un chat\n")
    with socket.socket() as held:  # a port that nobody listens on
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        said = bitextmine.fails("embed", "corpus.fr", "--ray", address, cwd=tmp_path)
    assert f"--ray {address}: no such cluster: Connection refused" in said


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
