"""Embeddings on disk: how they are made, written, found and checked."""
