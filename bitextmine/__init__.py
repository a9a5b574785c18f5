"""bitextmine: sentence pairs out of two piles of text."""

__version__ = "0.2.0"
