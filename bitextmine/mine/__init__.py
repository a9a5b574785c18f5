"""Mining: neighbours in, sentence pairs out."""
