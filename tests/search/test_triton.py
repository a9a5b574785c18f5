"""The kernels of the search on GPUs, on one where torch sees it, else with triton's interpreter on the CPU.

Triton decides when it is imported whether it interprets, so that without a GPU one test runs the others in a
process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
from packaging.version import Version

from bitextmine.errors import BitextmineError
from bitextmine.search.engines import gpu
from bitextmine.search.exact import search_both, search_one
from bitextmine.search.neighbours import Neighbours
from bitextmine.search.options import Arithmetic, Engine, SearchOptions
from bitextmine.search.rows import VectorRows
from bitextmine.search.topk import TopK

from . import oracle

TRITON = importlib.util.find_spec("triton") is not None
INTERPRETED = gpu.interpreting()
DEVICE = "cuda:0" if torch.cuda.is_available() and not INTERPRETED else "cpu"
NUMPY_REFUSES = (
    TRITON
    and Version(metadata.version("triton")) < Version("3.9")
    and Version(np.__version__) >= Version("2.4")
)
runs = pytest.mark.skipif(
    not TRITON or (DEVICE == "cpu" and not INTERPRETED), reason="needs triton, and a GPU or its interpreter"
)
PLAIN = SearchOptions(engine=Engine.TORCH, arithmetic=Arithmetic.FLOAT32)
SMALL = {"rows": 32, "cols": 64, "depth": 32, "group": 2, "warps": 4, "stages": 2, "first": 64}


def search(x, y, k, *, both=True, device=DEVICE, arithmetic=None, limits=None, **config):
    from bitextmine.search.engines.triton_topk import Config

    speed = {"rescored": 1024, "merged": 1 << 14} if INTERPRETED else {}
    fwd, bwd = TopK.empty(len(x), k), TopK.empty(len(y), k)
    engine = gpu.GpuSearch(
        VectorRows(x, x.dtype),
        VectorRows(y, y.dtype),
        k,
        device=device,
        arithmetic=arithmetic,
        limits=limits,
        config=Config(**{**SMALL, **speed, **config}),
    )
    for start in range(0, len(x), engine.block_rows):
        engine.block(start, min(start + engine.block_rows, len(x)), fwd, bwd if both else None)
    return fwd.sim, fwd.id, bwd.sim, bwd.id


def arrays(found: Neighbours):
    return found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id


def assert_same(got, want):
    for name, a, b in zip(("fwd_sim", "fwd_id", "bwd_sim", "bwd_id"), got, want, strict=False):
        assert a.dtype == b.dtype, name
        assert (a == b).all(), f"{name} differs in {(a != b).sum()} places"
        assert a.tobytes() == b.tobytes(), name


@pytest.mark.timeout(900)
@pytest.mark.skipif(not TRITON, reason="needs triton")
@pytest.mark.skipif(DEVICE != "cpu" or INTERPRETED, reason="the tests run here as they are")
def test_with_the_interpreter():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-k",
            "not fit_a_card",
            __file__,
        ],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@runs
@pytest.mark.parametrize(
    ("n", "m", "d", "k"),
    [(1, 1, 1, 1), (3, 70, 16, 4), (70, 3, 16, 4), (40, 30, 8, 50), (129, 200, 33, 1), (65, 161, 100, 32)],
)
def test_equals_the_oracle(n, m, d, k):
    rng = np.random.default_rng(n * m)
    x, y = oracle.corpus(rng, n, d, 0.0, 0.02), oracle.corpus(rng, m, d, 0.0, 0.02)
    y[: min(n, m) // 2] = x[: min(n, m) // 2]
    assert_same(
        arrays(search_both(x, y, k, SearchOptions(engine=Engine.TRITON, device=DEVICE))), oracle.both(x, y, k)
    )


@runs
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_oracle_whatever_the_rows(seed):
    """Copies, zero rows, near copies and rows of few values, which tie, in many parts and too little room."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 80, 2)
    d, k = int(rng.choice([1, 7, 33])), int(rng.integers(1, 9))
    share = [float(rng.choice([0.0, 0.1, 0.9])) for _ in range(3)]
    x, y = (oracle.corpus(rng, size, d, *share, coarse=bool(seed % 2)) for size in (n, m))
    shared = min(n, m) // 3
    y[m - shared :] = x[:shared]
    want = oracle.both(x, y, k)
    assert_same(search(x, y, k), want)
    assert_same(search(x, y, k, limits=(50, 40), cap=k, pairs=300), want)


@runs
@pytest.mark.parametrize("sizes", [(16, 32, 16, 1), (32, 16, 32, 3), (16, 256, 32, 8)])
def test_any_tile(sizes):
    rng = np.random.default_rng(1)
    x, y = oracle.vectors(rng, 100, 70), oracle.vectors(rng, 150, 70)
    got = search(x, y, 4, **dict(zip(("rows", "cols", "depth", "group"), sizes, strict=True)))
    assert_same(got, oracle.both(x, y, 4))


@runs
@pytest.mark.parametrize("option", ["persistent", "descriptors"])
def test_other_ways_to_load(option):
    if option == "descriptors":
        pytest.importorskip("triton.tools.tensor_descriptor")
        if DEVICE != "cpu" and torch.cuda.get_device_capability() < (9, 0):
            pytest.skip("needs a Hopper GPU")
    elif INTERPRETED and NUMPY_REFUSES:
        pytest.skip("this interpreter takes arrays of one number for numbers, which NumPy 2.4 refuses")
    rng = np.random.default_rng(2)
    x, y = oracle.vectors(rng, 70, 64), oracle.vectors(rng, 150, 64)
    # (Smaller tiles do not compile with `persistent` in Triton 3.4 to 3.6.)
    assert_same(search(x, y, 4, rows=64, cols=64, **{option: True}), oracle.both(x, y, 4))


@pytest.fixture
def bfloat16_products(monkeypatch):
    """Triton's interpreter multiplies the bits of bfloat16 numbers as integers: here it multiplies the numbers."""
    if not INTERPRETED:
        return
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    dot = InterpreterBuilder.create_dot

    def create_dot(self, a, b, *rest):
        if a.data.dtype == np.uint16:
            wide = ((v.data.astype(np.uint32) << 16).view(np.float32) for v in (a, b))
            a, b = (TensorHandle(v, triton_float32()) for v in wide)
        return dot(self, a, b, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_dot", create_dot)


def triton_float32():
    import triton.language as tl

    return tl.float32


@runs
@pytest.mark.usefixtures("bfloat16_products")
def test_float32_rows_give_what_torch_gives():
    rng = np.random.default_rng(3)
    x, y = (oracle.corpus(rng, size, 130, 0.1, dtype=np.float32) for size in (80, 140))
    y[:30] = x[:30]
    want = arrays(search_both(x, y, 4, PLAIN))
    assert_same(search(x, y, 4), want)
    assert_same(search(x, y, 4, arithmetic=Arithmetic.BFLOAT16), want)
    half, others = x.astype(np.float16), y.astype(np.float16)
    assert_same(search(half, others, 4, arithmetic=Arithmetic.BFLOAT16), oracle.both(half, others, 4))


@runs
def test_many_rows_within_the_error_of_the_arithmetic():
    rng = np.random.default_rng(4)
    x = np.repeat(oracle.vectors(rng, 1, 64).astype(np.float32), 70, axis=0)
    x = (x + 2e-4 * rng.standard_normal(x.shape)).astype(np.float16)
    y = np.concatenate([x[::-1], oracle.vectors(rng, 40, 64)])
    assert_same(search(x, y, 5, cap=6, pairs=1000), oracle.both(x, y, 5))


@runs
def test_lengths_other_than_one():
    rng = np.random.default_rng(5)
    x, y = (oracle.vectors(rng, size, 48).astype(np.float32) for size in (60, 90))
    x *= rng.uniform(0.01, 4, (len(x), 1)).astype(np.float32)
    y *= rng.uniform(0.01, 4, (len(y), 1)).astype(np.float32)
    short, half = x.astype(np.float16), y.astype(np.float16)
    assert_same(search(short, half, 4), oracle.both(short, half, 4))
    for scale in (1e-25, 1e6):  # float16 holds neither
        want = arrays(search_both(x * np.float32(scale), y, 4, PLAIN))
        assert_same(search(x * np.float32(scale), y, 4), want)


@runs
def test_blocks_add_to_what_is_there():
    rng = np.random.default_rng(6)
    x, y = oracle.vectors(rng, 100, 32), oracle.vectors(rng, 80, 32)
    want = oracle.both(x, y, 4)
    fwd, bwd = TopK.empty(100, 4), TopK.empty(80, 4)
    engine = gpu.GpuSearch(VectorRows(x, x.dtype), VectorRows(y, y.dtype), 4, device=DEVICE)
    for start, stop in ((60, 100), (0, 60), (30, 70)):
        engine.block(start, stop, fwd, bwd)
    assert_same((fwd.sim, fwd.id, bwd.sim, bwd.id), want)


@runs
def test_one_direction_is_half_of_both():
    rng = np.random.default_rng(7)
    x, y = oracle.corpus(rng, 80, 40, 0.2, 0.1), oracle.corpus(rng, 150, 40, 0.2, 0.1)
    assert_same(
        search_one(x, y, 4, SearchOptions(engine=Engine.TRITON, device=DEVICE)), oracle.both(x, y, 4)[:2]
    )


@runs
def test_several_devices_share_the_rows():
    many = torch.cuda.device_count() if DEVICE != "cpu" else 3
    names = ",".join(f"cuda:{i}" for i in range(many)) if DEVICE != "cpu" else "cpu,cpu,cpu"
    rng = np.random.default_rng(8)
    x, y = oracle.corpus(rng, 103, 40, 0.1, 0.1), oracle.corpus(rng, 70, 40, 0.1, 0.1)
    assert_same(search(x, y, 4, device=names), oracle.both(x, y, 4))
    assert_same(search(x[:2], y, 4, device=names, limits=(1, 30)), oracle.both(x[:2], y, 4))


@runs
@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_out_of_memory_halves_the_block_and_goes_on(error, monkeypatch):
    from bitextmine.search.engines.triton_topk import Sweep

    monkeypatch.setattr(gpu, "_SMALLEST", 8)
    asked: list[tuple[int, int]] = []
    run = Sweep.run

    def scarce(self, x, y, *rest):
        asked.append((len(x), len(y)))
        if len(x) * len(y) > 70 * 50:
            raise error("CUDA out of memory")
        return run(self, x, y, *rest)

    rng = np.random.default_rng(9)
    x, y = oracle.corpus(rng, 100, 16, 0.1), oracle.corpus(rng, 150, 16, 0.1)
    engine = gpu.GpuSearch(VectorRows(x, x.dtype), VectorRows(y, y.dtype), 4, device=DEVICE)
    monkeypatch.setattr(Sweep, "run", scarce)
    fwd, bwd = TopK.empty(100, 4), TopK.empty(150, 4)
    engine.block(0, 100, fwd, bwd)
    assert_same((fwd.sim, fwd.id, bwd.sim, bwd.id), oracle.both(x, y, 4))
    assert 0 < sum(a * b > 70 * 50 for a, b in asked) < len(asked) / 2


@runs
def test_out_of_memory_that_nothing_helps_against(monkeypatch):
    from bitextmine.search.engines.triton_topk import Sweep

    rng = np.random.default_rng(10)
    x = oracle.vectors(rng, 1100, 8)
    engine = gpu.GpuSearch(VectorRows(x, x.dtype), VectorRows(x, x.dtype), 4, device=DEVICE)

    def none(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Sweep, "run", none)
    with pytest.raises(BitextmineError, match=r"out of memory on .* 1024 x 1024"):
        engine.block(0, 1100, TopK.empty(1100, 4), TopK.empty(1100, 4))


@runs
def test_keys_order_as_neighbours_do():
    from bitextmine.search.engines.triton_topk import pack, unpack

    sim = torch.tensor([1.0, 0.5, 0.5, 0.0, -1e-40, -0.5, -2.0, 0.0])
    ids = torch.tensor([7, 0, (1 << 32) - 1, 3, 3, 0, 5, -1])
    keys = pack(sim, ids)
    assert keys.tolist() == sorted(keys.tolist(), reverse=True)
    back_sim, back_ids = unpack(keys)
    assert back_ids.tolist() == ids.tolist()
    assert back_sim.tolist() == [*sim[:-1].tolist(), -np.inf]


@runs
def test_slabs_double_what_was_seen():
    from bitextmine.search.engines.triton_topk import edges

    assert edges(1000, 64) == [0, 64, 128, 256, 512, 1000]
    assert edges(600, 64) == [0, 64, 128, 256, 600]
    assert edges(5, 64) == [0, 5]


def benchmark(root, *options):
    env = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(root / "index" / "bench_gpu.py"), *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_benchmark_helps(root):
    done = benchmark(root, "--help")
    assert done.returncode == 0, done.stderr
    assert "Example:" in done.stdout


@runs
def test_the_benchmark_runs(root, tmp_path):
    small = {"rows": 70, "dim": 32, "k": 2, "peak-size": 64, "repeats": 1, "sample": 30, "torch-rows": 40}
    options = [f"--{name}={value}" for name, value in small.items()]
    done = benchmark(root, f"--device={DEVICE}", *options, f"--json={tmp_path / 'report.json'}")
    assert done.returncode == 0, done.stderr
    (line,) = json.loads((tmp_path / "report.json").read_text())["searches"]
    assert line["repeatable"]
    for side in ("x", "y"):
        assert line[f"check_{side}"] == {"right": 60, "of": 60, "same_rows": 30, "rows": 30}


@pytest.fixture
def rows():
    rng = np.random.default_rng(11)
    return VectorRows(oracle.vectors(rng, 40, 8), np.dtype(np.float16))


def test_says_why_it_cannot_be_used(rows, monkeypatch):
    wide = VectorRows(np.zeros((3, 5000), dtype=np.float16), np.dtype(np.float16))
    assert "k is 65" in gpu.unsupported(rows, rows, 65, DEVICE)
    assert "5000 dimensions" in gpu.unsupported(wide, wide, 4, DEVICE)
    assert "CUDA" in gpu.unsupported(rows, rows, 4, "meta")
    with pytest.raises(BitextmineError, match=r"triton: k is 65.*use engine torch"):
        gpu.open_search(rows, rows, 65, DEVICE, must=True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setitem(sys.modules, "bitextmine.search.engines.triton_topk", None)
    assert "triton" in gpu.unsupported(rows, rows, 4, "cpu")


def test_torch_searches_where_it_cannot_be_used(rows, monkeypatch):
    """As on a GPU without triton: the device is stood in for by the CPU."""
    monkeypatch.setattr(gpu, "_WORTHWHILE", 0)
    monkeypatch.setattr(gpu, "unsupported", lambda *_: "triton cannot be imported")
    got = search_both(rows.vectors, rows.vectors, 3, SearchOptions(device="cpu:0"))
    assert_same(arrays(got), oracle.both(rows.vectors, rows.vectors, 3))


def test_torch_searches_where_the_kernels_fail(rows, monkeypatch):
    def broken(*_, **__):
        raise gpu._UnusableError("Failed to find C compiler")

    monkeypatch.setattr(gpu, "_WORTHWHILE", 0)
    monkeypatch.setattr(gpu, "unsupported", lambda *_: None)
    monkeypatch.setattr(gpu, "GpuSearch", broken)
    with pytest.warns(RuntimeWarning, match="C compiler"):
        got = search_both(rows.vectors, rows.vectors, 3, SearchOptions(device="cpu:0"))
    assert_same(arrays(got), oracle.both(rows.vectors, rows.vectors, 3))
    with pytest.raises(BitextmineError, match="C compiler"):
        search_both(rows.vectors, rows.vectors, 3, SearchOptions(device="cpu:0", engine=Engine.TRITON))


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("CUDA error: out of memory")]
)
def test_torch_searches_where_a_card_is_full(rows, monkeypatch, error):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(gpu, "_WORTHWHILE", 0)
    monkeypatch.setattr(gpu, "unsupported", lambda *_: None)
    monkeypatch.setattr(gpu, "GpuSearch", full)
    with pytest.warns(RuntimeWarning, match="out of memory"):
        got = search_both(rows.vectors, rows.vectors, 3, SearchOptions(device="cpu:0"))
    assert_same(arrays(got), oracle.both(rows.vectors, rows.vectors, 3))
    with pytest.raises(BitextmineError, match=r"triton: CUDA.*out of memory; use engine torch"):
        search_both(rows.vectors, rows.vectors, 3, SearchOptions(device="cpu:0", engine=Engine.TRITON))


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cuda:0,cuda:1"])
def test_a_gpu_that_is_not_there(rows, monkeypatch, device):
    monkeypatch.setattr(gpu, "_WORTHWHILE", 0)
    with pytest.raises(BitextmineError, match=r"torch sees no CUDA device; use --device cpu"):
        search_both(rows.vectors, rows.vectors, 3, SearchOptions(device=device))
    with pytest.raises(BitextmineError, match=r"triton: cuda:\d is not a CUDA device.*use engine torch"):
        search_both(rows.vectors, rows.vectors, 3, SearchOptions(device=device, engine=Engine.TRITON))


@pytest.mark.skipif(not TRITON, reason="needs triton")
def test_the_largest_tile_is_for_cards_that_hold_it(monkeypatch):
    largest = {}
    for capability in ((8, 0), (8, 9), (9, 0), (10, 0), (12, 0)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_, c=capability: c)
        largest[capability] = gpu.configs(torch.device("cuda", 0))[0].cols
    assert largest == {(8, 0): 128, (8, 9): 128, (9, 0): 256, (10, 0): 256, (12, 0): 128}


@pytest.mark.skipif(not TRITON, reason="needs triton")
def test_tiles_are_numbered_in_32_bits():
    from bitextmine.search.engines.triton_topk import MOST_TILES, numbered

    slab = (1 << 20, gpu.MAX_X, 1 << 23, gpu.MAX_Y)
    parts = numbered(slab, 64 * 64)
    assert len(parts) > 1
    assert sum((b - a) * (e - c) for a, b, c, e in parts) == (1 << 20) * (1 << 23)
    assert all((b - a) * (e - c) <= 64 * 64 * MOST_TILES for a, b, c, e in parts)
    assert numbered((0, 100, 0, 200), 64 * 64) == [(0, 100, 0, 200)]


@pytest.mark.skipif(not TRITON, reason="needs triton")
@pytest.mark.parametrize("arch", [80, 90])
def test_kernels_fit_a_card(root, tmp_path, arch):
    """Compiled by triton and NVIDIA's assembler, as they are in a search; no GPU is needed for that."""
    env = {**os.environ, "PYTHONPATH": str(root), "TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    report = tmp_path / "kernels.json"
    command = [
        sys.executable,
        str(root / "index" / "compile_gpu.py"),
        f"--arch={arch}",
        "--k=16",
        f"--json={report}",
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    kernels = json.loads(report.read_text())
    configs = {kernel["config"] for kernel in kernels if kernel["name"] == "_hits"}
    assert len(configs) == (3 if arch == 90 else 2)
    assert {kernel["name"] for kernel in kernels} == {"_hits", "_maxima", "_rescore", "_merge"}
    assert {kernel["stored"] for kernel in kernels if kernel["name"] == "_rescore"} == {"float16", "float32"}
    most = {"_hits": 208, "_maxima": 208, "_rescore": 128, "_merge": 128}
    for kernel in kernels:
        # (_maxima sees a thousandth of the pairs.)
        assert kernel["spilled"] <= (16 if kernel["name"] == "_maxima" else 0), kernel
        assert kernel["registers"] <= most[kernel["name"]], kernel
        assert kernel["shared"] <= kernel["shared_limit"], kernel
        if kernel["name"] == "_hits":  # a word of bits a pair, by shuffles between threads, took 1,370
            assert 0 < kernel["quiet"] < 1000, kernel


def test_small_searches_are_not_compiled_for(rows):
    assert gpu.open_search(rows, rows, 4, "cuda") is None


@pytest.mark.parametrize("arithmetic", [Arithmetic.FLOAT32, Arithmetic.INT8])
def test_arithmetics_that_there_are_not(arithmetic):
    with pytest.raises(BitextmineError, match=f"{arithmetic}.*float16 or bfloat16"):
        SearchOptions(engine=Engine.TRITON, arithmetic=arithmetic)
