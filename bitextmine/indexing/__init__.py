"""FAISS indexes, for what is too large to compare exactly. Exact search is search/'s matter, and FAISS is imported here
only.

    file         corpus.fr.faiss beside corpus.fr.npy: index_corpus, open_index, load_index, and the manifest
    build        an index in memory, or on disk, shard by shard
    mapped       lists that are read from the file where they lie: what if it loses its end
    merge        the lists of several shards in one file
    choose       which kind pays (--type auto), by times measured on the vectors
    kinds        the kinds that have a name
    faiss_index  Index: what each kind is, and a search of one index with exact similarities
    both         both directions through the indexes of both sides
    on_cluster   the passes of that by the workers of an executor
    lists        many queries against inverted lists, list by list
    clusters     the centres of lists: finding them, and which are near to a row
    kmeans       the k-means inside FAISS, and its warnings
    recall       how much of the exact answer an index finds, and turning it up
"""
