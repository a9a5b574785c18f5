"""Training objectives: `catalogue` declares them, without torch; `registry` makes those of a run."""
