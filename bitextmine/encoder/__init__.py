"""Sentences in, vectors out: tokeniser, model and model folders. ``load_encoder`` and ``Encoder`` are the way in."""

from bitextmine.encoder.encoder import Encoder, load_encoder

__all__ = ["Encoder", "load_encoder"]
