"""Learning from another encoder.

`source` opens the teacher, `store` keeps its vectors on disk, and `lessons` chooses the pairs it teaches on and gives
them to training with their vectors.
"""
