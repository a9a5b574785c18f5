"""Export formats; imports nothing, as `--help` is made from it."""

from __future__ import annotations

__all__ = ["FORMS", "ONNX", "SENTENCE_TRANSFORMERS"]

SENTENCE_TRANSFORMERS, ONNX = "sentence-transformers", "onnx"
FORMS = (SENTENCE_TRANSFORMERS, ONNX)
