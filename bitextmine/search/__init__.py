"""Exact nearest neighbours in both directions."""
