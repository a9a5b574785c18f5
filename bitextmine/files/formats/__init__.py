"""Formats of files of sentence pairs, behind the interface of `protocol`; `names` has the table of them."""
