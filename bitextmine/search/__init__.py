"""Nearest neighbours of two sets of vectors, in both directions: exact, or through FAISS indexes."""
