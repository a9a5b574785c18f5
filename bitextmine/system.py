"""Memory and processors that this process may use, and a thread that works ahead."""

import contextlib
import ctypes
import os
import re
from collections.abc import Generator, Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TypeVar

from bitextmine.errors import BitextmineError

Item = TypeVar("Item")

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", re.IGNORECASE)
_BFLOAT16 = frozenset(("avx512_bf16", "amx_tile", "bf16"))  # flags in /proc/cpuinfo; the last one is ARM's
_DIGITS = 6 + 1 + 6  # of an amount: a million terabytes, to the byte
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt(3)
_UNKNOWN = 4 << 30  # taken to be free where the system does not tell


def parse_size(text: str) -> int:
    """Return the bytes of "512M", "2G" or "1.5GiB" (powers of 1,024); raises BitextmineError for anything else.

    A number alone is refused: some programs take it for bytes, some for megabytes.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise BitextmineError(f"{text!r} is not a size; give a number with a unit, such as 512M or 2G")
    if len(match[1]) > _DIGITS:
        raise BitextmineError(f"a size of {len(match[1])} digits; give a shorter one, such as 512M or 2G")
    return int(Fraction(match[1]) * _UNITS[match[2].upper()])


def size(count: int) -> str:
    """Return bytes as `parse_size` reads them, rounded up: 2.5G, 300M, 12K."""
    for unit in ("T", "G", "M"):
        if count >= _UNITS[unit]:
            tenths = -(-count * 10 // _UNITS[unit])
            whole = tenths >= 1000 or tenths % 10 == 0
            return f"{-(-tenths // 10)}{unit}" if whole else f"{tenths // 10}.{tenths % 10}{unit}"
    return f"{max(1, -(-count // 1024))}K"


def available() -> int:
    """Return the bytes that this process could take without swapping: what the system and control groups leave it."""
    return min([_system(), *(max(0, limit - used) for limit, used in _limits())])


def budget(given: int | None = None) -> int:
    """Return the bytes given, else half of `available`."""
    return available() // 2 if given is None else given


def _system() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return _UNKNOWN


def _limits(root: str = "/sys/fs/cgroup", of: str = "/proc/self/cgroup") -> list[tuple[int, int]]:
    """Return (limit, used) of each control group of this process: version 2, and version 1's memory groups."""
    try:
        lines = Path(of).read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            base, names = Path(root), ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            base, names = Path(root, "memory"), ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        group = Path(path.lstrip("/"))
        for each in (group, *group.parents):
            with contextlib.suppress(OSError, ValueError):  # "max": no limit
                limit, used = (int((base / each / name).read_text()) for name in names)
                limits.append((limit, used))
    return limits


_MOST_THREADS = 1024


def processors() -> int:
    """Return the number of threads to use: OMP_NUM_THREADS if set, else the available processors."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return min(int(given), max(available, _MOST_THREADS))
    return available


def limit_threads() -> None:
    """Lower OMP_NUM_THREADS to what `processors` returns: libraries that read it abort if threads cannot be made."""
    if os.environ.get("OMP_NUM_THREADS", "").isdigit():
        os.environ["OMP_NUM_THREADS"] = str(processors())


@cache
def processor_flags() -> frozenset[str]:
    """Return the processor's instruction sets by their names in /proc/cpuinfo; none on a system without it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    flags = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    return frozenset(flags.split())


@cache
def bfloat16_instructions() -> frozenset[str]:
    """Return the processor's flags for bfloat16 products (`_BFLOAT16`); without any, torch emulates them, slowly."""
    return _BFLOAT16 & processor_flags()


def keep_freed_memory() -> None:
    """Have glibc's allocator keep freed memory instead of returning it to the system.

    Large blocks are otherwise mapped anew each time, and every page is zeroed when it is first touched: a training step
    spends a quarter of its processor time there. Other C libraries are left as they are.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)


def return_freed_memory() -> None:
    """Have glibc's allocator return freed memory to the system, for a stage that needs other sizes of blocks."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def ahead(items: Iterable[Item]) -> Generator[Item]:
    """Yield the items (none is None), the next one made on a thread while one is used."""
    from concurrent.futures import ThreadPoolExecutor  # here: --help does without

    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        made = thread.submit(next, source, None)
        while (item := made.result()) is not None:
            made = thread.submit(next, source, None)
            yield item
