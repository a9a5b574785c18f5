"""The real commands on a real Ray cluster of several nodes on this machine, whose parts are killed in the middle."""

import os
import re
import signal
import socket
import subprocess
import time
from typing import Any

import pytest

pytest.importorskip("ray", reason="--executor ray needs the extra 'ray'")
pytestmark = pytest.mark.timeout(900)

STORE = 80 << 20
MINED = ("mine", "--src", "en", "--tgt", "fr", "--no-clean", "-o", "pairs.tsv")
OUTPUTS = (
    "pairs.tsv",
    "pairs.tsv.json",
    *(f"corpus.{lang}.{kind}" for lang in ("en", "fr") for kind in ("npy", "json")),
)
TILES = "corpus.en-corpus.fr.search.tiles"
QUIET: dict[str, Any] = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}


@pytest.fixture(scope="module")
def nodes(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "tests" / "distributed"))
        from nodes import started

        with started(2, STORE) as nodes:
            yield nodes


@pytest.fixture
def folder(tmp_path, tiny_model, parallel_text):
    """Corpora of 2,000 lines, and the model under a name that means nothing to other processes."""
    parallel_text(tmp_path, 1500, 500)
    (tmp_path / "model").symlink_to(tiny_model)
    return tmp_path


def until(true):
    while not true():
        time.sleep(0.01)


def until_running(run, true):
    """Waits, and fails if the command ends before."""
    until(lambda: run.poll() is not None or true())
    if run.poll() is not None:
        pytest.fail(f"exit code {run.returncode}: {run.communicate()[1].decode()}")


def kill_one(run, nodes):
    """Kill a worker in the middle of a task."""
    found: list[int] = []
    until_running(run, lambda: found.extend(nodes.workers()) or found)
    os.kill(found[0], signal.SIGKILL)


def mine_args(nodes, rows=128):
    return (*MINED, "--model", "model", "--executor", f"ray://{nodes.address}?rows={rows}")


@pytest.fixture(scope="module")
def wanted(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """What the plain command makes of the same corpora."""
    folder = tmp_path_factory.mktemp("plain")
    parallel_text(folder, 1500, 500)
    bitextmine(*MINED, "--model", tiny_model, cwd=folder)
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


def check(folder, wanted):
    for name, content in wanted.items():
        assert (folder / name).read_bytes() == content, name
    assert not [
        *folder.glob("*.tiles"),
        *folder.glob("*.shards"),
        *folder.glob("*.part*"),
        *folder.glob(".*"),
    ]


class Tiles:
    """The tiles that were finished so far, those included that were merged, saved and removed since."""

    def __init__(self, folder):
        self.folder, self.seen = folder / TILES, set[str]()

    def __len__(self):
        self.seen.update(path.name for path in self.folder.glob("*.npz") if ".lists." not in path.name)
        return len(self.seen)


def test_the_result_is_that_of_the_plain_command_whoever_dies(bitextmine, nodes, folder, wanted):
    """A worker is killed, a node removed, another one added. Driver and worker stand still meanwhile, so that they
    cannot be done before."""
    tiles, run = Tiles(folder), bitextmine.start(*mine_args(nodes), cwd=folder, **QUIET)

    try:
        until_running(run, lambda: len(tiles) >= 5)
        kill_one(run, nodes)
        before = len(tiles)
        until_running(run, lambda: len(tiles) >= before + 20)
        run.send_signal(signal.SIGSTOP)
        nodes.remove(nodes.nodes[0])
        left = nodes.workers(idle=True)
        for worker in left:
            os.kill(worker, signal.SIGSTOP)
        nodes.add()
        before = len(tiles)
        run.send_signal(signal.SIGCONT)
        until_running(run, lambda: len(tiles) > before)
        for worker in left:
            os.kill(worker, signal.SIGCONT)
        _, err = run.communicate()
    finally:
        run.kill()
    said = err.decode()
    assert run.returncode == 0, said
    check(folder, wanted)
    assert "search: 256 tiles, 0 of them found finished" in said
    assert "lost" in said, said


def test_a_driver_that_is_interrupted_or_killed_goes_on(bitextmine, nodes, folder, wanted, tmp_path):
    tiles, run = Tiles(folder), bitextmine.start(*mine_args(nodes), cwd=folder, **QUIET)
    until_running(run, lambda: len(tiles) >= 10)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate()
    assert run.returncode == 130, err.decode()
    assert "interrupted; run the same command again to resume" in err.decode()
    assert "Traceback" not in err.decode()
    until(lambda: not nodes.workers())
    interrupted = len(tiles)
    assert 10 <= interrupted < 256

    hooks = tmp_path / "hooks"
    die = {"PYTHONPATH": str(hooks), **bitextmine.to_die(hooks, 100, signal.SIGKILL, TILES)}
    run = bitextmine.start(*mine_args(nodes), env=die, cwd=folder, **QUIET)
    _, err = run.communicate()
    assert run.returncode == -signal.SIGKILL, err.decode()
    until(lambda: not nodes.workers())
    killed = len(list((folder / TILES).glob("*.npz")))

    said = bitextmine(*mine_args(nodes), cwd=folder).err
    check(folder, wanted)
    # Of rows of tiles that are merged and saved, which a slow run does every ten seconds, the tiles are gone, or on
    # their way out when it was killed.
    found = re.search(r"search: ([\d,]+) of 2,000 lines and (\d+) of the other (\d+) tiles are done", said)
    assert found is not None, said
    lines, done, left = (int(number.replace(",", "")) for number in found.groups())
    assert done <= killed and left == 256 - lines // 128 * 16
    assert 256 - left + done > interrupted
    assert f"search: {left} tiles, {done} of them found finished" in said


@pytest.fixture(scope="module")
def rows(sentence_pairs):
    """70,000 pairs, six megabytes, a fifth of them not for the first time."""
    lines = [
        f"{en} {i % 13}\t{fr} {i % 13 if i % 11 else 99}\n" for i in range(4) for en, fr in sentence_pairs
    ]
    return "".join([*lines, *lines[::4]]).encode()


FILTER = (
    "filter", "-", "-o", "kept.tsv.gz", "--rejected", "rejected.tsv", "--min", "numbers=1", "--max",
    "length_ratio=1.2", "--duplicates", "near", "--explain", "2",
)  # fmt: skip


def test_rows_are_filtered_as_by_the_plain_command_though_workers_die(bitextmine, nodes, rows, tmp_path):
    """All workers are killed when the second half of the rows has not been sent."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "ray").mkdir()
    plain = bitextmine(*FILTER, cwd=tmp_path / "plain", stdin=rows)
    run = bitextmine.start(
        *FILTER,
        "--executor",
        f"ray://{nodes.address}",
        cwd=tmp_path / "ray",
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    run.stdin.write(rows[: len(rows) // 2])
    run.stdin.flush()
    until_running(run, lambda: len(nodes.workers()) == len(nodes.nodes))
    for worker in nodes.workers():
        os.kill(worker, signal.SIGKILL)
    _, err = run.communicate(rows[len(rows) // 2 :])
    said = err.decode()
    assert run.returncode == 0, said
    for name in ("kept.tsv.gz", "rejected.tsv"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
        assert len((tmp_path / "ray" / name).read_bytes()) > 1000
    assert said.endswith(plain.err)
    assert "filter: " in said and "lost" in said, said


def test_a_node_with_another_package_is_named(bitextmine, nodes, folder, tmp_path):
    other = tmp_path / "other" / "bitextmine"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (other / "version.py").write_text("__version__ = '0.0.1'")
    node = nodes.add(env_vars={"PYTHONPATH": str(other.parent)})
    try:
        said = bitextmine.fails(*mine_args(nodes), cwd=folder)
    finally:
        nodes.remove(node)
    assert f"the node {socket.gethostname()} of the Ray cluster has bitextmine 0.0.1, and this is" in said


def test_a_folder_that_nodes_do_not_see_is_told_of(bitextmine, nodes, folder):
    """/proc/self is another folder for each process."""
    (folder / "cache").mkdir()
    args = ("--cache", "/proc/self/cwd/cache", "--executor", f"ray://{nodes.address}")
    said = bitextmine.fails("embed", "corpus.fr", "--model", "model", *args, cwd=folder)
    assert "does not see this machine's folder /proc/self/cwd/cache; put the corpora on storage" in said


def test_a_worker_needs_room(bitextmine, nodes, folder):
    args = ("embed", "corpus.fr", "--model", "model", "--executor")
    said = bitextmine.fails(*args, f"ray://{nodes.address}?cpus=6400", cwd=folder)
    assert "the Ray cluster has no node with room for a worker (cpus=6400)" in said


def test_what_is_no_cluster_is_told_of_at_once(bitextmine, folder):
    """Ray itself would try for minutes."""
    args = ("embed", "corpus.fr", "--model", "model", "--executor")
    with socket.socket() as held:  # a port that nobody listens on
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        said = bitextmine.fails(*args, f"ray://127.0.0.1:{port}", cwd=folder)
    assert (
        f"--executor ray://127.0.0.1:{port}: no such cluster: " in said
        and "is 'ray start --head' running there" in said
    )
    said = bitextmine.fails(*args, "ray", cwd=folder, env={"RAY_ADDRESS": "nonsense"})
    assert "--executor ray (RAY_ADDRESS=nonsense): " in said
