"""Parallel documents: which sentences of one belong to which of the other."""
