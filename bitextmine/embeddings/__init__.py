"""Embeddings on disk: how they are made, written, found and checked.

The embedding of ``corpus.fr`` is ``corpus.fr.npy``, float16 (lines, dim), whose row i is line i, with the manifest
``corpus.fr.json``. Until both are complete the vectors are called ``corpus.fr.npy.part``, and
``corpus.fr.npy.part.journal`` records the progress.

npy         the .npy file: header, rows, digest
store       finished embeddings and their manifests: open, check, describe
places      the file names for a corpus and a model; a cache folder; shared storage
writer      rows to disk, in order, so that an interrupted run resumes
embed       the pipeline from a corpus to its embedding
vectors     vectors of other tools, adopted as an embedding
"""
