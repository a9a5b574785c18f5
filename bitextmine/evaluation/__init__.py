"""Measures with intervals: retrieval, mining, alignment, similarity, classification."""
