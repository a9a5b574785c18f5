"""Formats of files of sentence pairs, behind one interface.

protocol    what a format offers: rows in blocks, a writer, what is to be written
names       the table of formats, by the suffix of a file's name
tsv         lines of text, byte for byte: tab-separated, or in two files
records     rows of named values, and JSON Lines
tmx         TMX 1.4; XLIFF 1.2 and 2.0, to read
parquet     Parquet, with pyarrow
"""
