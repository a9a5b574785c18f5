"""Exact nearest neighbours in both directions, out of one pass over the similarity matrix. FAISS is index/'s matter.

knn          the whole of it for two arrays, numpy in, numpy out
exact        search_both, search_one: memory, progress, checkpoint, and the loop over blocks of rows
options      SearchOptions: device, memory, threads; which engine, in which arithmetic
neighbours   Neighbours: what a search returns
rows         VectorRows: rows read block by block; identical ones folded into one; checks of what comes in
products     exact inner products of given pairs: what every similarity in a result is
topk         the k best found so far, and how more are merged in
checkpoint   the same in a file, for a search that is killed
records      what of it was found between two saves, as bytes, and back
pages        memory-mapped vectors that do not pile up in memory
protocols    what an engine is
precision    what torch multiplies in
native       the compiled part: loading it, what the processor can do
engines/     select: which one; compiled (C, CPU), blocks (torch, CPU or GPU), gpu and triton_topk (Triton, GPU)
"""
