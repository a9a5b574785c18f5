"""Scores of sentence pairs, and rules that keep or reject them."""
