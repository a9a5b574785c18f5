"""Adapt an encoder to plain text by training on the pairs it mines."""
