"""Files: bytes, lines, tables and JSON in and out, and what keeps them whole.

atomic      files that appear complete or not at all, locks, space set aside, the codes of a full disk
streams     bytes in and out, plain or compressed; ``-`` for stdin and stdout; outputs that appear complete
unpacking   what streams decompress with, in bounded steps
lines       corpora as lines, and digests of them
urls        what is a URL
corpora     corpora by name: their language, the one of a language in a folder
tables      rows of sentence pairs, in any of the formats of formats/ (TSV, JSON Lines, TMX, Parquet)
layout      which column of them holds what
cells       cells of tab-separated lines
jsonfile    JSON objects
"""
