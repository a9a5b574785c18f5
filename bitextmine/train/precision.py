"""In which precision large products are computed."""

from __future__ import annotations

import torch

__all__ = ["product_precision"]


def product_precision(name: str) -> torch.dtype:
    """ "auto" is bfloat16 where the processor multiplies it natively, float32 elsewhere."""
    if name == "auto":
        native = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
        return torch.bfloat16 if native or torch.cuda.is_available() else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
