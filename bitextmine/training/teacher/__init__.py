"""Learning from another encoder: on which pairs it teaches, what it makes of them, and where that is kept.

`source` opens the teacher, `choosing` says which lines of the corpora it reads, `store` keeps its vectors on disk, and
`lessons` puts these together: pairs that have a teacher's vectors, for training to draw from.
"""
