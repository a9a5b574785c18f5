"""Training an encoder: recipe, vocabulary, data, objectives, trainer."""
