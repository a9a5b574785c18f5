"""Embeddings on disk: how they are made, written, found and checked.

The embedding of ``corpus.fr`` is ``corpus.fr.npy``, float16 (lines, dim) whose row i is line i, and its manifest
``corpus.fr.json``. Until both are complete the vectors are called ``corpus.fr.npy.part``.

npy         the .npy file: its header, its rows as a map, their digest; what a part of it is called
places      where the vectors of a corpus and a model are
manifest    the .json beside it: what text, model and settings the vectors are of
writer      rows to disk, in order, so that a run killed at any moment is taken up where it stopped
store       finished embeddings: where they are, opened, up to date, intact, described
held        an embedding in use, and whether its file has stayed what it was
embed       the pipeline: a corpus read, tokenised, encoded and written

Of these only embed knows the encoder; npy knows nothing but arrays.
"""
