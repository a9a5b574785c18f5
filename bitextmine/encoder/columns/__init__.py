"""Columns of a sentence vector that are no sums of piece vectors."""
