"""In what torch multiplies, where the products are only there to say which ones are worth computing exactly."""

from __future__ import annotations

import torch

from bitextmine.search.options import Arithmetic
from bitextmine.system import bfloat16_instructions

__all__ = ["TORCH_TYPES", "default_arithmetic"]

TORCH_TYPES = {
    Arithmetic.FLOAT32: torch.float32,
    Arithmetic.BFLOAT16: torch.bfloat16,
    Arithmetic.FLOAT16: torch.float16,
}


def default_arithmetic(device: str) -> Arithmetic:
    """float16 on CUDA, where stored float16 vectors enter unrounded; bfloat16 on a CPU whose matrix product has
    instructions for it; else float32."""
    if torch.device(device).type == "cuda":
        return Arithmetic.FLOAT16
    if bfloat16_instructions() & {"avx512_bf16", "amx_tile"}:
        return Arithmetic.BFLOAT16
    return Arithmetic.FLOAT32
