"""Encoders for other libraries: folders that sentence-transformers loads, and graphs for ONNX Runtime."""
