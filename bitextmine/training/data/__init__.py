"""Training text: pairs read, tokenised, filtered, kept on disk and drawn in batches; the vocabulary made of them."""
