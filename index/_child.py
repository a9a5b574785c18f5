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
    written: int | None = None  # bytes, to files and pipes, where the system counts them


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
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        written = _written(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bitextmine {' '.join(arguments)}: exit code {child.returncode}\n{message}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss counts bytes there, kibibytes elsewhere
    seconds = time.perf_counter() - begin
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 2**20, written)


def _written(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), None)
