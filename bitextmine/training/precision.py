"""In which precision products are computed."""

from __future__ import annotations

import torch

from bitextmine.system import bfloat16_instructions

__all__ = ["layer_precision", "product_precision"]


def product_precision(name: str, device: torch.device) -> torch.dtype:
    """Of the losses' products: "auto" is bfloat16 where the device multiplies it natively, float32 elsewhere."""
    if name == "auto" and device.type != "cuda":
        return torch.bfloat16 if "avx512_bf16" in bfloat16_instructions() else torch.float32
    return layer_precision(name, device)


def layer_precision(name: str, device: torch.device) -> torch.dtype:
    """Of the products inside the layers: "auto" is bfloat16 on a GPU that multiplies it natively, float32 elsewhere."""
    if name == "auto":
        native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if native else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
