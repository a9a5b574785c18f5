"""FAISS indexes, for corpora too large for exact search; the only room that imports FAISS."""
