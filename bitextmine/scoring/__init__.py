"""Noisy pairs: scores by columns, rules that keep or reject."""
