"""FAISS indexes, for corpora too large for exact search. FAISS is imported in this room only.

file         corpus.fr.faiss beside corpus.fr.npy: index_corpus, open_index, load_index, and the manifest
build        an index on disk, shard by shard
options      IndexOptions, and the named kinds
faiss_index  Index: the factory string of each kind, and a search of one index with exact similarities
recall       the share of the exact answer that an index finds, and raising it
lists        inverted lists: their centres, and many queries against them, list by list
both         both directions through the indexes of both sides
on_cluster   its passes by the workers of an executor
"""
