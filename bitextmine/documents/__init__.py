"""Documents: their text, cut into sentences, one per line."""
