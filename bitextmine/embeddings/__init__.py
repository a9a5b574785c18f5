"""Embeddings on disk: how they are made, written, found and checked.

The embedding of ``corpus.fr`` is ``corpus.fr.npy``, float16 (lines, dim), whose row i is line i, with the manifest
``corpus.fr.json``. Until both are complete the vectors are called ``corpus.fr.npy.part``, and
``corpus.fr.npy.part.journal`` records the progress.
"""
