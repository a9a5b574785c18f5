"""Engines of the exact search: select.py chooses one; all give the same answer, to the byte."""
