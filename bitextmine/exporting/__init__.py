"""Encoders for other libraries: folders that sentence-transformers loads, and graphs for ONNX Runtime."""

# Imports nothing, as `--help` is made from it.
SENTENCE_TRANSFORMERS, ONNX = "sentence-transformers", "onnx"
FORMATS = (SENTENCE_TRANSFORMERS, ONNX)
