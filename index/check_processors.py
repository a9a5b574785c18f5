"""Does exact search give the same bytes on other processors, and by other compilers?

Example:  python index/check_processors.py
          python index/check_processors.py --only aarch64

fused.c is built with each compiler that is here and run for every instruction set that its processor has, on the cases
of the tests and on random ones; the answer is compared with NumPy's, to the byte. aarch64 runs under QEMU. On Debian:
  apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user clang
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bitextmine.search.fused import ISA
from bitextmine.search.neighbours import best_first
from bitextmine.search.products import products

DRIVER = Path(__file__).with_name("_search_driver.c")
X86, ARM = ("portable", "avx2", "avxvnni", "avx512vnni", "amx"), ("portable", "neon", "dotprod")
# name: compiler and its options, what runs the program, instruction sets
BUILDS: dict[str, tuple[list[str], list[str], tuple[str, ...]]] = {
    "gcc": (["gcc", "-O3"], [], X86),
    "clang": (
        ["clang", "-O3", "-std=c11", "-D_POSIX_C_SOURCE=200809L"],
        [],
        X86,
    ),  # as macOS has it: without GNU's
    "x86 without AVX": (["gcc", "-O3", "-static"], ["qemu-x86_64", "-cpu", "qemu64"], ("portable",)),
    "aarch64": (["aarch64-linux-gnu-gcc", "-O3", "-static"], ["qemu-aarch64", "-cpu", "max"], ARM),
    "aarch64 without dot products": (
        ["aarch64-linux-gnu-gcc", "-O3", "-static"],
        ["qemu-aarch64", "-cpu", "cortex-a53"],
        ("portable", "neon"),
    ),
}

Case = tuple[str, np.ndarray, np.ndarray, int]


def unit(rng: np.random.Generator, n: int, d: int, dtype: type = np.float16) -> np.ndarray:
    v = rng.standard_normal((n, d))
    return (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)).astype(dtype)


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    shapes = [
        (1, 1, 1, 1),
        (3, 70, 16, 4),
        (70, 3, 16, 4),
        (40, 30, 8, 50),
        (129, 200, 33, 1),
        (65, 161, 100, 32),
    ]
    for dtype in (np.float16, np.float32):
        for n, m, d, k in shapes:
            yield f"{n} x {m}, d = {d}, k = {k}", unit(rng, n, d, dtype), unit(rng, m, d, dtype), k
        x, y = unit(rng, 150, 70, dtype), unit(rng, 280, 70, dtype)
        y[100:150] = x[:50]
        y[::9] = 0
        x[::7] = 0
        yield "zero rows and copies", x, y, 4
        yield "all equal", np.repeat(x[1:2], 80, 0), np.repeat(x[1:2], 140, 0), 3
        yield (
            "one-hot",
            np.eye(64, dtype=dtype)[rng.integers(64, size=90)],
            np.eye(64, dtype=dtype)[::-1].copy(),
            4,
        )
        few = (rng.integers(-1, 2, (200, 40)) / 8).astype(dtype)
        yield "few values, which tie", few, few[::-1].copy(), 5
        near = (np.repeat(x[1:2].astype(np.float32), 90, 0) + 2e-4 * rng.standard_normal((90, 70))).astype(
            dtype
        )
        yield "within the bounds' error", near, near[::-1].copy(), 5
        tiny = (unit(rng, 60, 50, np.float32) * np.float32(1e-6)).astype(dtype)
        yield "subnormal float16, small float32", tiny, unit(rng, 90, 50, dtype), 4
        yield "of many lengths", (x.astype(np.float32) * rng.uniform(0.01, 4, (150, 1))).astype(dtype), y, 4
        for number in range(10):
            n, m, d, k = (int(rng.integers(1, most)) for most in (160, 300, 140, 9))
            yield f"random {number}", unit(rng, n, d, dtype), unit(rng, m, d, dtype), k


def oracle(x: np.ndarray, y: np.ndarray, k: int) -> bytes:
    sims = products(np.repeat(x, len(y), 0), np.tile(y, (len(x), 1))).reshape(len(x), len(y))
    out = b""
    for side in (sims, sims.T):
        ids = np.broadcast_to(np.arange(side.shape[1]), side.shape)
        sim, found = best_first(np.ascontiguousarray(side), ids, k)
        out += sim.tobytes() + found.tobytes()
    return out


def run(command: list[str], case: Case, isa: str, wide: bool) -> bytes | None:
    _, x, y, k = case
    head = struct.pack("<6i3q", ISA[isa], x.dtype == np.float32, wide, 1, k, 0, len(x), len(y), x.shape[1])
    done = subprocess.run(command, input=head + x.tobytes() + y.tobytes(), capture_output=True, check=False)
    if done.returncode == 3:
        return None
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode} {done.stderr.decode()}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(BUILDS))
    args = parser.parse_args()
    known = [(case, oracle(*case[1:])) for case in cases()]
    wrong = 0
    for name, (compiler, emulator, sets) in BUILDS.items():
        if args.only not in (None, name):
            continue
        if missing := [tool for tool in (compiler[0], *emulator[:1]) if not shutil.which(tool)]:
            print(f"{name:30} left out: no {missing[0]}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/search"
            subprocess.run([*compiler, "-Wall", "-Werror", str(DRIVER), "-o", program, "-lm"], check=True)
            for isa in sets:
                for wide in (False, True):
                    found = [run([*emulator, program], case, isa, wide) for case, _ in known]
                    if found[0] is None:
                        print(f"{name:30} {isa:11} not on this processor")
                        break
                    bad = [c[0] for (c, want), got in zip(known, found, strict=True) if got != want]
                    wrong += len(bad)
                    words = f"DIFFERENT: {', '.join(bad)}" if bad else "the same bytes as NumPy"
                    print(
                        f"{name:30} {isa:11} {'float32' if wide else 'int8':8} {len(known)} cases: {words}",
                        flush=True,
                    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
