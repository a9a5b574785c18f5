"""Training objectives by name, weighted by the recipe's train.objective table.

`catalogue` declares them, without torch; `registry` defines what an objective is and makes those of a run.
"""
