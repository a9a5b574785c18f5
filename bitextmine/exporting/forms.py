"""What an encoder can be exported to. Imports nothing: `--help` is made from it."""

from __future__ import annotations

__all__ = ["FORMS", "ONNX", "SENTENCE_TRANSFORMERS"]

SENTENCE_TRANSFORMERS, ONNX = "sentence-transformers", "onnx"
FORMS = (SENTENCE_TRANSFORMERS, ONNX)
