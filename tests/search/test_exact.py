import functools
import re

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bitextmine.errors import BitextmineError
from bitextmine.search import blocks, fused
from bitextmine.search.blocks import BlockSearch
from bitextmine.search.exact import knn, search_both, search_one
from bitextmine.search.neighbours import TopK
from bitextmine.search.options import Arithmetic, Engine, SearchOptions
from bitextmine.search.rows import VectorRows
from bitextmine.system import parse_size

from . import oracle

LIB = fused.library()
HERE = [name for name, code in fused.ISA.items() if LIB is not None and LIB.fused_has(code)]
COMPILED = [{"engine": Engine.COMPILED, "instruction_set": isa} for isa in HERE]
PLAIN = {"engine": Engine.TORCH, "arithmetic": Arithmetic.FLOAT32}
FLOAT32 = SearchOptions(arithmetic=Arithmetic.FLOAT32)
TORCH = [{"engine": Engine.TORCH, "arithmetic": a} for a in (Arithmetic.BFLOAT16, Arithmetic.FLOAT16)]
ON_GPU = [{**way, "device": "cuda"} for way in (PLAIN, *TORCH) if torch.cuda.is_available()]
METHODS = [*COMPILED, PLAIN, *TORCH, *ON_GPU]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: "-".join(method.values()))


def arrays(found):
    return found.fwd_sim, found.fwd_id, found.bwd_sim, found.bwd_id


def search(x, y, k, **options):
    return search_both(x, y, k, SearchOptions(**options))


def search_with_least_memory(x, y, k, **options):
    """With one byte it says how much it takes; that must do."""
    try:
        return search(x, y, k, memory=1, **options)
    except BitextmineError as error:
        found = re.search(r"allow (\S+) or more", str(error))
        assert found is not None, str(error)
    return search(x, y, k, memory=parse_size(found[1]), **options)


def assert_same(got, want):
    for name, a, b in zip(("fwd_sim", "fwd_id", "bwd_sim", "bwd_id"), got, want, strict=True):
        assert a.dtype == b.dtype, name
        assert a.tobytes() == b.tobytes(), f"{name} differs in {(a != b).sum()} places"


@each_method
@pytest.mark.parametrize(
    ("n", "m", "d", "k"),
    [
        (1, 1, 1, 1),
        (3, 70, 16, 4),
        (70, 3, 16, 4),
        (129, 200, 33, 1),
        (400, 1500, 100, 7),
        (300, 90, 64, 40),
        (700, 150, 1500, 3),
    ],
)
def test_equals_the_oracle(method, n, m, d, k):
    x, y, wanted = solved(n, m, d, k)
    assert_same(arrays(search(x, y, k, **method)), wanted)


@functools.cache
def solved(n, m, d, k):
    """Two sides that share rows, and their neighbours; for all methods once."""
    rng = np.random.default_rng(n * m)
    x, y = oracle.corpus(rng, n, d, 0.1, 0.02), oracle.corpus(rng, m, d, 0.1, 0.02)
    y[: min(n, m) // 2] = x[: min(n, m) // 2]
    return x, y, oracle.both(x, y, k)


sides = st.integers(0, 90)
shares = st.sampled_from([0.0, 0.1, 0.9])


@settings(max_examples=120)
@given(
    n=sides,
    m=sides,
    d=st.sampled_from([1, 2, 7, 32, 65]),
    k=st.integers(1, 12),
    repeats=shares,
    zeros=shares,
    near=shares,
    coarse=st.booleans(),
    block=st.sampled_from([1, 7, 64, 8192]),
    method=st.sampled_from(METHODS),
    little=st.booleans(),
    threads=st.sampled_from([1, 3]),
    seed=st.integers(0, 2**32 - 1),
)
@example(90, 90, 7, 4, 0.9, 0.9, 0.9, True, 7, TORCH[0], True, 3, 0)
@example(0, 5, 7, 4, 0.0, 0.0, 0.0, False, 7, METHODS[0], True, 1, 0)
@example(5, 0, 7, 4, 0.0, 0.0, 0.0, False, 7, METHODS[0], True, 1, 0)
def test_equals_the_oracle_whatever_the_rows(
    n, m, d, k, repeats, zeros, near, coarse, block, method, little, threads, seed
):
    rng = np.random.default_rng(seed)
    x = oracle.corpus(rng, n, d, repeats, zeros, near, coarse)
    y = oracle.corpus(rng, m, d, repeats, zeros, near, coarse)
    shared = min(n, m) // 3
    y[m - shared :] = x[:shared]
    way = search_with_least_memory if little else search
    got = way(x, y, k, block_rows=block, threads=threads, **method)
    assert_same(arrays(got), oracle.both(x, y, k))


def near_copies(rng):
    """A thousand: int8 and bfloat16 cannot tell them apart, the answer must."""
    x = np.repeat(oracle.vectors(rng, 1, 96).astype(np.float32), 700, axis=0)
    x = (x + 2e-4 * rng.standard_normal(x.shape)).astype(np.float16)
    return x, np.concatenate([x[::-1], oracle.vectors(rng, 400, 96)])


def one_large_component(rng):
    """It leaves the others a handful of the int8 levels."""
    x, y = (oracle.vectors(rng, n, 64, np.float32) for n in (300, 1300))
    for v in (x, y):
        v[:, 5] = 3
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return x.astype(np.float16), y.astype(np.float16)


def vanishing_squares(rng):
    """Lengths of such float32 rows are not zero, nor is what the arithmetic may be wrong by."""
    x, y = (oracle.vectors(rng, n, 96, np.float32) for n in (90, 120))
    y[::2] *= np.float32(1e-13)
    return x * np.float32(1e-22), y


def lengths_other_than_one(rng):
    x, y = (oracle.vectors(rng, n, 48, np.float32) for n in (200, 1100))
    x, y = (v * rng.uniform(0.01, 4, (len(v), 1)) for v in (x, y))
    return x.astype(np.float16), y.astype(np.float16)


@each_method
@pytest.mark.parametrize(
    "make", [near_copies, one_large_component, vanishing_squares, lengths_other_than_one]
)
def test_awkward_rows(method, make):
    x, y = make(np.random.default_rng(2))
    assert_same(arrays(search(x, y, 5, **method)), oracle.both(x, y, 5))


@each_method
def test_float32_lengths_near_the_ends_of_the_range(method):
    rng = np.random.default_rng(17)
    x, y = (oracle.vectors(rng, n, 40, np.float32) for n in (60, 70))
    x[::3] *= np.float32(1e-35)
    x[1::3] *= np.float32(1e-44)
    y[::4] *= np.float32(1e9)
    assert_same(arrays(search(x, y, 4, **method)), arrays(search(x, y, 4, **PLAIN)))
    y[5] *= np.float32(1e30)
    with pytest.raises(BitextmineError, match="vector of length"):
        search(x, y, 4, **method)


@pytest.mark.parametrize(("asked", "bits"), [("high", 10), ("medium", 7)])
def test_float32_products_that_a_program_lets_torch_narrow(asked, bits, monkeypatch):
    """Whose operands lose all but so many bits (done here by hand: few processors do it)."""

    def narrowed(a, b):
        keep = -1 << (23 - bits)
        a, b = (((v.view(torch.int32) + (1 << (22 - bits))) & keep).view(torch.float32) for v in (a, b))
        return a @ b.T

    rng = np.random.default_rng(31)
    x = np.repeat(oracle.vectors(rng, 1, 32), 40, axis=0) + np.float16(0.01) * oracle.vectors(rng, 40, 32)
    y = x[::-1] + np.float16(0.01) * oracle.vectors(rng, 40, 32)
    rows = [VectorRows(v, v.dtype) for v in (x, y)]
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(asked)
    try:
        fwd, bwd = TopK.empty(40, 3), TopK.empty(40, 3)
        monkeypatch.setattr(blocks, "_product", narrowed)
        engine = BlockSearch(*rows, FLOAT32, 1 << 30)
        engine.block(0, 40, fwd, bwd)
    finally:
        torch.set_float32_matmul_precision(before)
    for got, want in zip((fwd.sim, fwd.id, bwd.sim, bwd.id), oracle.both(x, y, 3), strict=True):
        assert got.tobytes() == want.tobytes()


def test_float32_rows_give_the_same_by_every_method():
    rng = np.random.default_rng(5)
    x, y = (
        oracle.corpus(rng, 500, 130, 0.2, dtype=np.float32),
        oracle.corpus(rng, 1400, 130, 0.2, dtype=np.float32),
    )
    y[:100] = x[:100]
    want = arrays(search(x, y, 4, **PLAIN))
    for method in METHODS:
        assert_same(arrays(search(x, y, 4, **method, block_rows=77)), want)
    sims = x.astype(np.float64) @ y.astype(np.float64).T
    np.testing.assert_allclose(np.take_along_axis(sims, want[1], axis=1), want[0], rtol=1e-6)
    np.testing.assert_allclose(np.sort(sims, axis=1)[:, :-5:-1], want[0], rtol=1e-6)


@each_method
@pytest.mark.parametrize("block", [13, 4096])
def test_one_direction_is_half_of_both(method, block):
    rng = np.random.default_rng(7)
    x, y = oracle.corpus(rng, 300, 40, 0.2, 0.1), oracle.corpus(rng, 1100, 40, 0.2, 0.1)
    whole = search_both(x, y, 4)
    sim, ids = search_one(x, y, 4, SearchOptions(**method, block_rows=block))
    assert_same((sim, ids, whole.bwd_sim, whole.bwd_id), arrays(whole))


@each_method
@pytest.mark.parametrize("n", [1, 700, 2900])
def test_a_matrix_in_itself(method, n):
    x, wanted = solved_itself(n)
    got = search_one(x, x, 5, SearchOptions(**method, threads=3, block_rows=600))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(got, wanted, strict=True))


@functools.cache
def solved_itself(n):
    x = oracle.corpus(np.random.default_rng(n), n, 40, 0.1, 0.02)
    x[n // 2 :: 7] = x[: len(x[n // 2 :: 7])]
    return x, oracle.both(x, x, 5)[:2]


def test_progress_counts_the_rows():
    rng = np.random.default_rng(11)
    seen: list[int] = []
    x, y = oracle.vectors(rng, 100, 8), oracle.vectors(rng, 10, 8)
    search_both(x, y, 2, SearchOptions(block_rows=30), progress=seen.append)
    assert seen == [30, 30, 30, 10]
    search_both(np.ones((100, 8), np.float16), np.ones((10, 8), np.float16), 2, progress=seen.append)
    assert sum(seen) == 200


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("side", [0, 1])
def test_a_nan_is_named_by_its_line(value, dtype, side):
    rng = np.random.default_rng(12)
    pair = [oracle.vectors(rng, 50, 8, dtype), oracle.vectors(rng, 5000, 8, dtype)]
    row = (41, 4321)[side]
    pair[side][row, 3] = value
    with pytest.raises(BitextmineError, match=rf"{('source', 'target')[side]} vectors.*line {row + 1} .*NaN"):
        search_both(*pair, 2)


def test_falls_back_to_torch_without_the_compiled_search(monkeypatch):
    monkeypatch.setattr(fused, "library", lambda: None)
    rng = np.random.default_rng(14)
    x, y = oracle.vectors(rng, 30, 8), oracle.vectors(rng, 40, 8)
    assert_same(arrays(search_both(x, y, 3)), oracle.both(x, y, 3))
    with pytest.raises(BitextmineError, match="engine torch"):
        search(x, y, 3, engine=Engine.COMPILED)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_out_of_memory_halves_the_block_and_goes_on(error, monkeypatch):
    rng = np.random.default_rng(15)
    x, y = oracle.corpus(rng, 700, 16, 0.1), oracle.corpus(rng, 1500, 16, 0.1)
    asked: list[tuple[int, int]] = []

    def product(a, b):
        asked.append((len(a), len(b)))
        if len(a) * len(b) > 200 * 300:
            raise error("CUDA out of memory")
        return a @ b.T

    fwd, bwd = TopK.empty(700, 4), TopK.empty(1500, 4)
    left, right = VectorRows(x, x.dtype), VectorRows(y, y.dtype)
    monkeypatch.setattr(blocks, "_product", product)
    engine = BlockSearch(left, right, FLOAT32, 1 << 30)
    for start in range(0, 700, 350):
        engine.block(start, start + 350, fwd, bwd)
    assert_same((fwd.sim, fwd.id, bwd.sim, bwd.id), oracle.both(x, y, 4))
    assert 0 < sum(a * b > 200 * 300 for a, b in asked) < len(asked) / 2


# --- arrays of any kind ---


def test_knn_takes_lists_and_tensors_and_leaves_them_alone():
    rng = np.random.default_rng(2)
    x, y = oracle.vectors(rng, 20, 8), oracle.vectors(rng, 30, 8)
    want = oracle.both(x, y, 3)
    assert_same(arrays(knn(x.tolist(), torch.from_numpy(y), 3)), want)
    grid = rng.integers(-3, 4, (20, 8)).astype(np.int8)
    assert_same(arrays(knn(grid, grid[::-1], 3)), oracle.both(grid, grid[::-1], 3))
    tensor = torch.from_numpy(x).requires_grad_()
    assert_same(arrays(knn(tensor, y, 3)), want)
    coarse = tensor.bfloat16()
    assert_same(arrays(knn(coarse, y, 3)), arrays(knn(coarse.float().detach().numpy(), y, 3)))
    x.flags.writeable = False
    assert_same(arrays(knn(x, y, np.int64(3))), want)


@pytest.mark.parametrize(
    ("x", "k", "message"),
    [
        ([1.0, 2.0], 1, r"x: expected one vector a row \(2 dimensions\), found 1"),
        ([[1.0, 2.0], [3.0]], 1, "x: not a matrix"),
        ([[1j, 2]], 1, "x: expected real numbers, found complex128"),
        ([[1.0, 2.0], [np.nan, 0.0]], 1, "x: the vector of line 2 holds a NaN"),
        ([[1e13, 0.0]], 1, "a vector of length 1.0e[+]13"),
        ([[1.0, 2.0, 3.0]], 1, "different dimensions: x 3, y 2"),
        ([[1.0, 2.0]], 0, "k must be at least 1, found 0"),
        ([[1.0, 2.0]], 10**12, r"k = 10{12}: the result alone takes"),
    ],
)
def test_what_knn_refuses(x, k, message):
    with pytest.raises(BitextmineError, match=message):
        knn(x, [[1.0, 0.0]], k)
