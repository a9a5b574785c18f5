"""Work over more than one machine: what it takes, and how the nodes of a Ray cluster do it. Without --ray nothing of
Ray is imported.

plan        what embedding and mining will take, by arithmetic; how many rows a shard has
planned     plans of corpora
options     RayOptions: which cluster, what a worker gets
cluster     connecting, and what is wrong with a cluster or a node, told before the work
probe       what a node says of itself; runs where this package may be missing, and so imports nothing of it
worker      the actor: runs functions of this package by name
pool        workers on all nodes; calls in order, made again when a worker dies
models      an encoder's files sent to the workers, by their content
encoding    shards of a corpus encoded by workers, for `embeddings.embed`
parts       shards of rows: what a worker is told of them, and its view of them
grid        tiles, some rows of each side: who is told what, and how what was found is merged
tiles       exact search over tiles: a shard of one side compared with a shard of the other
stages      what a stage of a command took, in the log and for --ray-report
shards      where shards begin and end

A node that dies costs what its workers had in hand. What they had finished is in files, in folders that nodes and
driver share; only texts, limits and models go through Ray's object store.
"""
