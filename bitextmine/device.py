"""The device to compute on, found without loading torch if there can be no GPU."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bitextmine.errors import BitextmineError, UsageError

if TYPE_CHECKING:
    import torch


def device_name(device: str = "auto") -> str:
    """Return a device as torch calls it; "auto" is the GPU if there is one, else the CPU.

    Raises:
        UsageError: this is no name of a device.
        BitextmineError: the device is not there.
    """
    if not isinstance(device, str):
        raise UsageError(f"device: expected auto, cpu, cuda or cuda:N, found {device!r}")
    return "cpu" if device == "cpu" or (device == "auto" and not _has_driver()) else str(pick_device(device))


def pick_device(device: str = "auto") -> torch.device:
    """Return the same as a torch.device."""
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
    except RuntimeError:
        raise UsageError(
            f"device {device!r}: no such kind of device; use auto, cpu, cuda or cuda:N"
        ) from None
    if picked.type not in ("cpu", "cuda"):
        raise UsageError(f"device {device!r}: only cpu and cuda are supported")
    if picked.type == "cuda" and (picked.index or 0) >= (count := torch.cuda.device_count()):
        raise BitextmineError(f"device {device!r}: this machine shows {count} CUDA devices; use cpu, or auto")
    return picked


def _has_driver() -> bool:
    """Return True if a GPU's driver may be there; asking torch would take a second, most of it for loading it."""
    if "torch" in sys.modules or Path("/dev/kfd").exists():  # the latter is AMD's, which torch calls cuda too
        return True
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True
