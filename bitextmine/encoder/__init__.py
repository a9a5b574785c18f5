"""Sentences in, vectors out: tokeniser, model and model folders. ``load_encoder`` and ``Encoder`` are the way in."""

from __future__ import annotations

from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.load import load_encoder

__all__ = ["Encoder", "load_encoder"]
