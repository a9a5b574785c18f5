"""Work on a cluster.

ray          a Ray cluster as executor, and the options that ask for it; the only module that imports Ray
encoding     an encoder's files sent to the workers, and shards of a corpus encoded by them
shards       shards of rows: their bounds, the driver's description, and the worker's view
tiles        exact search over tiles; tiles of any search, and how their results are merged

Results of tasks lie in files, in folders that workers and driver share; only texts, limits and models are sent. A
worker that dies costs the tasks it had in hand.
"""
