"""Measures with intervals: retrieval, mining, classification."""
