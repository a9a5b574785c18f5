"""Sentences in, vectors out: tokeniser, model and model folders. ``load_encoder`` and ``Encoder`` are the way in."""

from bitextmine.encoder.encoder import Encoder, as_encoder, load_encoder

__all__ = ["Encoder", "as_encoder", "load_encoder"]
