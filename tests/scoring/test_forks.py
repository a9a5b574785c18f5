"""Copies of the process that compute: the same results in order, and none is left behind."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bitextmine.errors import BitextmineError
from bitextmine.scoring import compute
from bitextmine.scoring.columns.catalogue import Request, Tools
from bitextmine.scoring.compute import PairRows, PairScorer, mapped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")


def test_results_are_in_order():
    tasks = [(number, number) for number in range(20)]
    assert list(mapped(lambda x: x * x, iter(tasks), 3)) == [(x, x * x) for x, _ in tasks]
    assert list(mapped(str, iter([]), 3)) == []


def test_errors_arrive():
    def refuse(value):
        if value == 3:
            os._exit(1)
        if value == 2:
            raise BitextmineError("not two")
        return value

    for last, message in ((2, "not two"), (3, "ended")):
        results = mapped(refuse, iter([("a", 1), ("b", last), ("c", 4)]), 2)
        assert next(results) == ("a", 1)
        with pytest.raises(BitextmineError, match=message):
            list(results)


def is_running(pid):
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_copies_end_with_their_parent():
    code = """
import os, time
from bitextmine.scoring.compute import mapped
for _, pid in mapped(lambda _: time.sleep(0.1) or os.getpid(), ((n, n) for n in range(100)), 2):
    print(pid, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        copies = {int(parent.stdout.readline()) for _ in range(4)}
        assert len(copies) == 2 and parent.pid not in copies
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while any(map(is_running, copies)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_scores_do_not_depend_on_copies(sentence_pairs, tmp_path):
    lines = ["\t".join(pair) for pair in sentence_pairs[:150]]
    lines[40:43] = ["no pair"] * 3
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    script = Path(sysconfig.get_path("scripts")) / "bitextmine"
    outputs = []
    for threads in ("1", "2"):
        done = subprocess.run(
            [script, "score", "pairs.tsv", "--src", "en", "--tgt", "fr", "--window", "32"],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1] and outputs[0].count(b"\n") == 151


def test_no_copies_are_made_once_the_sample_has_loaded_torch(monkeypatch):
    answers = iter([True, False])
    monkeypatch.setattr(compute, "_can_fork", lambda: next(answers))
    monkeypatch.setattr(compute, "mapped", None)
    pairs = PairRows(["src", "tgt"], [["one", "un"], ["two", "deux"]])
    run = SimpleNamespace(thread_count=2, executor=SimpleNamespace(distributed=False))
    scored = PairScorer(Tools(Request(("shorter",)))).scored(pairs.blocks(1), pairs.layout, run)
    assert [added.values.tolist() for _, (added,) in scored] == [[2], [3]]
