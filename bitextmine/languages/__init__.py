"""Languages: the table of their properties, their codes, identification, normalisation of text."""
