"""Work on a cluster.

Results of tasks lie in files, in folders that workers and driver share; only texts, limits and models are sent. A
worker that dies costs the tasks it had in hand.
"""
