import os
import subprocess
import sys

import pytest

from bitextmine.search import faiss_library
from bitextmine.search.faiss_library import openblas_kernel

HASWELL = {"sse2", "avx2", "fma"}
SKYLAKE = HASWELL | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.mark.parametrize(
    ("flags", "kernel"),
    [
        (SKYLAKE, "SkylakeX"),
        (SKYLAKE - {"avx512vl"}, "Haswell"),
        (HASWELL, "Haswell"),
        ({"sse2"}, None),
        (set(), None),
    ],
)
def test_the_kernel_follows_the_processor(flags, kernel, monkeypatch):
    monkeypatch.setattr(faiss_library, "processor_flags", lambda: frozenset(flags))
    assert openblas_kernel() == kernel


@pytest.mark.skipif(openblas_kernel() is None, reason="OpenBLAS chooses for this processor")
@pytest.mark.parametrize("given", [None, "Prescott"])
def test_faiss_loads_with_the_kernel(given):
    variables = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    variables |= {"OPENBLAS_VERBOSE": "2"} | ({"OPENBLAS_CORETYPE": given} if given else {})
    code = "import os, bitextmine.search.faiss_library; print(os.environ.get('OPENBLAS_CORETYPE'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True, timeout=100
    )
    lines = done.stdout.splitlines()
    kernels = [
        line.split()[1]
        for text in (done.stdout, done.stderr)
        for line in text.splitlines()
        if "Core:" in line
    ]
    if not kernels:
        pytest.skip("this faiss is built with another BLAS")
    assert kernels[-1] == (given or openblas_kernel())
    assert str(given) in lines
