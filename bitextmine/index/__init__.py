"""FAISS indexes, for what is too large to compare exactly."""
