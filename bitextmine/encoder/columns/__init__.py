"""Columns of a sentence vector that piece vectors do not give."""
