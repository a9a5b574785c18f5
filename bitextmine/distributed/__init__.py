"""Work on a cluster.

options     the executor that options or keywords ask for
ray         a Ray cluster as executor; the only module that imports Ray
models      an encoder's files sent to the workers, by their content
encoding    shards of a corpus encoded by workers, for `embeddings.embed`
shards      size and bounds of shards
parts       shards of rows: the driver's description, and the worker's view
grid        tiles of a search, and how their results are merged
tiles       exact search over tiles

Results of tasks lie in files, in folders that workers and driver share; only texts, limits and models are sent. A
worker that dies costs the tasks it had in hand.
"""
