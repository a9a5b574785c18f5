"""Work over more than one machine: what it takes (plan)."""
