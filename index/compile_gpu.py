"""Compile every kernel that an exact search launches on a GPU, without a GPU, and say what each takes of one.

Example:  python index/compile_gpu.py
          python index/compile_gpu.py --arch 90 --dim 512,1024 --k 4,16,64 --json kernels.json

A small search is run on the CPU whose kernels are compiled for the GPU instead of launched, so that what is compiled
is what a search launches: triton's compiler and NVIDIA's assembler, which come with it, need no card. Every
configuration that `configs()` offers on such a card is compiled, for vectors stored as float16 and as float32.

registers and spilled bytes are of a thread, shared bytes of a block. `quiet`: instructions of the machine code of
_hits behind the products, before the first atomic: what a tile costs in which nothing is found.
Needs triton and this package: installed, or with PYTHONPATH=. from a checkout.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from bitextmine.search.engines import gpu

ROWS = 4096
SHARED_BYTES = {80: 166_912, 90: 232_448}  # that a block can have
TYPES = {"float16": torch.float16, "float32": torch.float32}


@dataclass(frozen=True)
class Kernel:
    """What one kernel, compiled for one configuration, takes."""

    arch: int
    name: str
    config: str
    dim: int
    k: int
    stored: str
    registers: int
    spilled: int
    shared: int
    shared_limit: int
    instructions: int
    quiet: int | None


class NoCard:
    """What triton asks of a GPU's driver before it compiles."""

    def __init__(self, arch: int) -> None:
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget("cuda", arch, 32)

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return self.target.arch

    def get_current_stream(self, device: int) -> int:
        return 0


@contextmanager
def compiling(arch: int, seen: Callable[[str, Any], None]) -> Iterator[None]:
    """Kernels that are launched meanwhile are compiled for a card of that architecture, and not launched."""
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    launch = JITFunction.run

    def compile_only(self: Any, *args: Any, warmup: bool, **options: Any) -> Any:
        found = launch(self, *args, warmup=True, **options)
        seen(self.fn.__name__, found)
        return found

    driver.set_active(NoCard(arch))
    with mock.patch.object(JITFunction, "run", compile_only):
        yield


def compiled(arch: int, config: Any, dim: int, k: int, stored: str, known: set[str]) -> list[Kernel]:
    """Every kernel of a search in both directions on one card, and of its joining what several found, but for
    those that are known from other searches."""
    from bitextmine.search.engines.triton_topk import NOTHING, Sweep, SweepSide

    found: list[Kernel] = []
    words = ",".join(f"{n}={v}" for n, v in asdict(config).items() if v != getattr(type(config)(), n))

    def seen(name: str, kernel: Any) -> None:
        if kernel.hash not in known:
            known.add(kernel.hash)
            registers, spilled, instructions, quiet = resources(kernel)
            found.append(
                Kernel(
                    arch=arch,
                    name=name,
                    config=words or "default",
                    dim=dim,
                    k=k,
                    stored=stored,
                    registers=registers,
                    spilled=spilled,
                    shared=kernel.metadata.shared,
                    shared_limit=SHARED_BYTES[arch],
                    instructions=instructions,
                    quiet=quiet if name == "_hits" else None,
                )
            )

    device, padded = torch.device("cpu"), -(-dim // max(config.depth, 32)) * max(config.depth, 32)
    sweep = Sweep(padded, k, device, config)

    def side() -> SweepSide:
        near = torch.zeros((ROWS + sweep.padding, padded), dtype=torch.float16)
        keys = torch.full((ROWS, k), NOTHING)
        bar, lost = torch.full((ROWS,), -torch.inf), torch.zeros(ROWS, dtype=torch.int32)
        return SweepSide(near, near.to(TYPES[stored]), torch.arange(ROWS), keys, bar, lost)

    with compiling(arch, seen):
        x, y = side(), side()
        sweep.run(x, y, 1e-3, True)
        sweep.join(y, [y.keys])
    return found


def resources(kernel: Any) -> tuple[int, int, int, int]:
    """Registers, spilled bytes (of a thread), instructions, and those from the last product to the first atomic."""
    tools = Path(__import__("triton").__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(kernel.asm["cubin"])

        def tool(name: str, *options: str) -> str:
            command = [tools / name, *options, cubin]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        use, code = tool("cuobjdump", "--dump-resource-usage"), tool("nvdisasm", "-c")
    number = {name: int(value) for name, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", use)}
    lines = [line for line in code.splitlines() if re.match(r"\s*/\*[0-9a-f]{4,}\*/", line)]
    products = [i for i, line in enumerate(lines) if re.search(r"\bH?G?MMA\b|\bHGMMA|\bHMMA", line)]
    last = products[-1] if products else 0
    atomic = next((i for i in range(last, len(lines)) if re.search(r"\b(ATOM|RED)G?\b", lines[i])), last)
    return number["REG"], number["STACK"] + number["LOCAL"], len(lines), atomic - last


def offered(arch: int) -> list[Any]:
    """The configurations that a card of that architecture is offered."""
    capability = divmod(arch, 10)
    with mock.patch.object(torch.cuda, "get_device_capability", lambda *_: capability):
        return gpu.configs(torch.device("cuda", 0))


def table(archs: list[int], dims: list[int], ks: list[int], changes: dict[str, Any]) -> Iterator[Kernel]:
    known: set[str] = set()
    for arch, dim, k in itertools.product(archs, dims, ks):
        for config, stored in itertools.product(offered(arch), TYPES):
            yield from compiled(arch, replace(config, **changes), dim, k, stored, known)


def whole_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", type=whole_numbers, default=[80, 90], help="with commas: 80,90")
    parser.add_argument("--dim", type=whole_numbers, default=[512])
    parser.add_argument("--k", type=whole_numbers, default=[4, 16])
    parser.add_argument("--json", type=Path, help="write all numbers here")
    parser.add_argument("--descriptors", action="store_true", help="tiles loaded by Hopper's bulk copies")
    parser.add_argument("--persistent", action="store_true", help="one program a multiprocessor")
    args = parser.parse_args()
    import triton

    print(f"triton {triton.__version__}")
    changes = {name: True for name in ("descriptors", "persistent") if getattr(args, name)}
    heads = ("kernel", "sm", "d", "k", "stored", "registers", "spilled", "shared", "code", "quiet")
    print("{:9}{:>3}{:>5}{:>4} {:8}{:>10}{:>8}{:>8}{:>6}{:>6}  sizes".format(*heads))
    rows = []
    for kernel in table(args.arch, args.dim, args.k, changes):
        rows.append(asdict(kernel))
        print(
            f"{kernel.name:9}{kernel.arch:3}{kernel.dim:5}{kernel.k:4} {kernel.stored:8}{kernel.registers:10}"
            f"{kernel.spilled:8}{kernel.shared:8}{kernel.instructions:6}{kernel.quiet or '':>6}  {kernel.config}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
