"""What can be said about a sentence pair: a module per kind of column; `names` lists and `catalogue` computes them."""
