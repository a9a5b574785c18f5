"""Languages: what a text is in."""
