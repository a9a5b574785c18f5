"""Files: bytes, lines, tables and JSON in and out, and what keeps them whole.

atomic      files that appear complete or not at all, locks, space set aside, the codes of a full disk
streams     bytes in and out, plain or compressed; ``-`` for stdin and stdout; outputs that appear complete
unpacking   what streams decompress with, in bounded steps
lines       corpora as lines, and digests of them
corpora     corpora by name: their language, the one of a language in a folder
tables      rows of sentence pairs, as tab-separated text or Parquet
jsonfile    JSON objects
"""
