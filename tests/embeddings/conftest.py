"""The model folders of the encoder's tests."""

from ..encoder.conftest import make_folder, tiny_tokenizer

__all__ = ["make_folder", "tiny_tokenizer"]
