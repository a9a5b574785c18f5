"""Exact nearest neighbours in both directions, out of one pass over the similarity matrix.

knn          the function for two arrays, NumPy in, NumPy out
exact        search_both, search_one: memory, progress, checkpoint, and the loop over blocks of rows
options      SearchOptions: device, memory, threads; engine and arithmetic
neighbours   Neighbours, the result of a search
rows         VectorRows: rows read block by block; identical ones folded into one; checks of the input
products     exact inner products of given pairs: every similarity in a result
topk         the k best found so far, and merging more in
checkpoint   the same in a file, for a search that is interrupted
pages        memory-mapped vectors that do not pile up in memory
native       the compiled part: loading it, the processor's instruction sets
engines/     select: the choice; compiled (C, CPU), blocks (torch, CPU or GPU)
"""
