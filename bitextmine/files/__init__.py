"""Bytes, lines and tables in files."""
