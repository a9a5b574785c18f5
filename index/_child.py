"""Run a command and say how long it took, and how much memory, alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    seconds: float
    processor_seconds: float
    peak_mib: float


def bitextmine(arguments: Sequence[str], folder: Path) -> Cost:
    """`bitextmine ARGUMENTS` in a folder; its output is thrown away. Exits with its message if it fails.

    The peak is the highest resident memory of that process, files that it maps included.
    """
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "bitextmine", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        message = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bitextmine {' '.join(arguments)}: exit code {child.returncode}\n{message}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss counts bytes there, kibibytes elsewhere
    return Cost(time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 2**20)
