"""Where to compute, found out without loading torch where no GPU can be."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bitextmine.errors import BitextmineError, UsageError

if TYPE_CHECKING:
    import torch

__all__ = ["device_name", "pick_device"]


def device_name(device: str = "auto") -> str:
    """A device as torch calls it: "auto" is the GPU when there is one, else the CPU.

    Loads torch only for a GPU that may be there or that is asked for. Raises UsageError for what is no name of a
    device, BitextmineError for a device that is not there.
    """
    if not isinstance(device, str):
        raise UsageError(f"device: expected auto, cpu, cuda or cuda:N, found {device!r}")
    if device == "auto":
        return "cuda" if _has_driver() and pick_device("auto").type == "cuda" else "cpu"
    return device if device == "cpu" else str(pick_device(device))


def pick_device(device: str = "auto") -> torch.device:
    """The same as torch's own device."""
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
    if picked.type == "cuda":
        count = torch.cuda.device_count()
        if (picked.index or 0) >= count:
            raise BitextmineError(
                f"device {device!r}: this machine shows {count} CUDA devices; use cpu, or auto"
            )
    return picked


def _has_driver() -> bool:
    """Whether a GPU's driver is there, as far as that shows from outside of torch (whose own answer takes a
    second or more, most of it for loading torch)."""
    if "torch" in sys.modules or Path("/dev/kfd").exists():  # the latter is AMD's, which torch calls cuda too
        return True
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True
