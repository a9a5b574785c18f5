"""Formats of files of sentence pairs, a module each, behind one interface.

protocol    what a format offers: rows in blocks, a writer, what is to be written
names       which format a file has, by its name
tsv         tab-separated text, byte for byte
parquet     Parquet, with pyarrow
jsonl       an object per line: {"translation": {"en": ..., "fr": ...}, "score": ...}
tmx         translation memories (TMX 1.4)
records     rows in memory, which jsonl and tmx are read into
"""
