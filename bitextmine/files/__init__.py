"""Files: bytes, lines, tables and JSON in and out, and what keeps them whole.

atomic      files that appear complete or not at all, locks, space set aside, the codes of a full disk
streams     bytes in and out, plain or compressed; ``-`` for stdin and stdout; outputs that appear complete
unpacking   what streams decompress with, in bounded steps
lines       corpora as lines, and digests of them
urls        what is a URL
corpus      the lines of a text, read once; corpora by name
journal     the progress of work that resumes
ours        files that this program made
storage     files by URL
tables      rows of sentence pairs, in any of the formats of formats/ (TSV, JSON Lines, TMX, Parquet)
layout      which column of them holds what
cells       cells of tab-separated lines
jsonfile    JSON objects
"""
