"""Formats of files of sentence pairs, a module each, behind one interface.

protocol    what a format offers: rows in blocks, a writer, what is to be written
names       the table of formats, by the suffix of a file's name
tsv         tab-separated text, byte for byte
parquet     Parquet, with pyarrow
jsonl       an object per line: {"translation": {"en": ..., "fr": ...}, "score": ...}
tmx         translation memories (TMX 1.4)
xliff       files of translation tools (XLIFF 1.2 and 2.0), to read
moses       two files of text
records     rows of named values: what the readers and writers of jsonl, tmx and parquet share
"""
