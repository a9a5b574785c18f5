import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitextmine import system as memory
from bitextmine.errors import BitextmineError
from bitextmine.system import bfloat16_instructions, parse_size, size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1K", 1024),
        ("512M", 512 << 20),
        ("2G", 2 << 30),
        ("1.5GiB", 3 << 29),
        (" 2 gb ", 2 << 30),
        ("1T", 1 << 40),
    ],
)
def test_amounts(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "2", "2048", "-1G", "0M", "1e3M", "G", "2X", "2GG", "nan", "½G"])
def test_what_is_no_amount(text):
    with pytest.raises(BitextmineError, match="is not a size"):
        parse_size(text)


@given(st.integers(0, 1 << 50))
def test_an_amount_shown_can_be_given_and_is_enough(count):
    assert count <= parse_size(size(count)) <= 1.1 * count + 1024


def test_control_groups_limit_it(tmp_path, monkeypatch):
    """Version 2, and the group above has the narrower limit."""
    of = tmp_path / "cgroup"
    of.write_text("0::/batch/job\n")
    for path, limit, used in (("batch/job", "max", 10), ("batch", 3000, 1000), ("", 9000, 1000)):
        folder = tmp_path / "fs" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{used}\n")
    limits = memory._limits(str(tmp_path / "fs"), str(of))
    assert limits == [(3000, 1000), (9000, 1000)]
    monkeypatch.setattr(memory, "_limits", lambda: limits)
    assert memory.available() == 2000


def test_control_groups_of_version_1(tmp_path):
    of = tmp_path / "cgroup"
    of.write_text("4:cpu,cpuacct:/x\n3:memory:/job\n")
    folder = tmp_path / "fs" / "memory" / "job"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("5000\n")
    (folder / "memory.usage_in_bytes").write_text("700\n")
    assert memory._limits(str(tmp_path / "fs"), str(of)) == [(5000, 700)]
    assert memory._limits(str(tmp_path / "fs"), str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    ("cpuinfo", "found"),
    [
        ("processor : 0\nflags\t\t: fpu avx512_bf16 amx_bf16 amx_tile\n", {"avx512_bf16", "amx_tile"}),
        ("processor : 0\nflags\t\t: fpu avx2 avx512f\nbugs : avx512_bf16\n", set()),
        ("processor : 0\nFeatures\t: fp asimd bf16\n", {"bf16"}),
        ("", set()),
        (None, set()),
    ],
)
def test_bfloat16_as_the_system_tells(cpuinfo, found, monkeypatch):
    def read(path, **_):
        if cpuinfo is None:
            raise FileNotFoundError(path)
        return cpuinfo

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(memory, "processor_flags", memory.processor_flags.__wrapped__)
    assert bfloat16_instructions.__wrapped__() == found


PEAK = """
    import json, sys
    from bitextmine.embeddings.store import VectorFile
    from bitextmine.search.exact import search_both
    from bitextmine.search.options import SearchOptions

    def peak():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    x, y = map(VectorFile, sys.argv[1:3])
    how = {"threads": 2, **json.loads(sys.argv[3])}
    if how["engine"] == "torch":  # slower, most of all on a busy machine
        y = y[:100]
    search_both(x[:10], y[:10], 1, SearchOptions(**how))  # loads what there is to load
    before = peak()
    search_both(x, y, 4, SearchOptions(**how, memory=int(sys.argv[4])))
    print(json.dumps(peak() - before))
"""


@pytest.fixture(scope="module")
def long_and_short(tmp_path_factory):
    """82 MB of vectors, and half a megabyte."""
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(3)
    for name, n in (("long", 160_000), ("short", 1000)):
        v = np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=np.float16, shape=(n, 256))
        for start in range(0, n, 20_000):
            part = v[start : start + 20_000]
            part[:] = (rng.random(part.shape, dtype=np.float32) - 0.5) / 4.6
    return folder / "long.npy", folder / "short.npy"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("method", "long_first"),
    [
        ({"engine": "compiled"}, True),
        ({"engine": "compiled"}, False),
        ({"engine": "compiled", "arithmetic": "float32"}, True),
        ({"engine": "compiled", "arithmetic": "float32"}, False),
        ({"engine": "torch", "arithmetic": "float32"}, True),
    ],
)
def test_the_peak_stays_below_the_memory_given(long_and_short, tmp_path, method, long_first):
    """8 MB of answer, and the rest for the work on files of 83 MB."""
    from bitextmine.search.fused import instruction_set

    if method["engine"] == "compiled" and instruction_set() is None:
        pytest.skip("the compiled search is not there")
    script = tmp_path / "peak.py"
    script.write_text(textwrap.dedent(PEAK))
    files = long_and_short if long_first else long_and_short[::-1]
    limit = 32 << 20
    command = [sys.executable, script, *files, json.dumps(method), str(limit)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert json.loads(done.stdout) < limit
