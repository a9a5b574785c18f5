"""Sentences in, vectors out: tokeniser, model, model folders and the embedding pipeline.

``load_encoder`` and ``Encoder`` are the way in for every other stage; ``embed_corpus`` turns a corpus file into
an embedding file.
"""

from __future__ import annotations

from bitextmine.encoder.encoder import Encoder, load_encoder
from bitextmine.encoder.pipeline import embed_corpus

__all__ = ["Encoder", "embed_corpus", "load_encoder"]
