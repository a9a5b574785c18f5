"""The model folders of the encoder's tests."""

from __future__ import annotations

from ..encoder.conftest import make_folder, tiny_tokenizer

__all__ = ["make_folder", "tiny_tokenizer"]
