"""The model while it learns: its start, the spelling of its pieces, passes over a batch, and its optimiser."""
