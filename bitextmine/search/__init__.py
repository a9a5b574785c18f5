"""Exact nearest neighbours in both directions, out of one pass over the similarity matrix."""
