"""Training an encoder: recipe, vocabulary, data, objectives; a job makes steps."""
