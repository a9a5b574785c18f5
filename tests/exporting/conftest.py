"""The vocabulary of the encoder's tests."""

from ..encoder.conftest import tiny_tokenizer

__all__ = ["tiny_tokenizer"]
