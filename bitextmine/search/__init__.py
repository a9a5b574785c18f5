"""Exact nearest neighbours in both directions, out of one pass over the similarity matrix.

knn          the function for two arrays, NumPy in, NumPy out
exact        search_both, search_one: memory, progress, checkpoint, the choice of the engine, the loop over blocks
fused        the engine in C, for CPUs: loading it, instruction sets, exact products
blocks       the engine in torch, for CPUs and GPUs
options      SearchOptions: device, memory, threads; engine and arithmetic
neighbours   Neighbours, the result of a search; the k best found so far
rows         VectorRows: rows read block by block; identical ones folded into one; checks of the input
products     exact inner products of given pairs: every similarity in a result
checkpoint   the k best in a file, for a search that is interrupted
"""
