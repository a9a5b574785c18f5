"""FAISS indexes, for corpora too large for exact search. FAISS is imported in this room only.

file         corpus.fr.faiss beside corpus.fr.npy: index_corpus, open_index, load_index, and the manifest
build        an index in memory, or on disk, shard by shard
ondisk       inverted lists in a file: merging shards, noticing a change
choose       the kind that pays (--type auto), by times measured on the vectors
options      IndexOptions, and the named kinds
faiss_index  Index: the factory string of each kind, and a search of one index with exact similarities
both         both directions through the indexes of both sides
on_cluster   its passes by the workers of an executor
lists        many queries against inverted lists, list by list
clusters     centres of lists: finding them, and the nearest ones to a row
kmeans       the k-means inside FAISS, and its warnings
recall       the share of the exact answer that an index finds, and raising it
"""
