"""What training minimises: objectives by name, weighed by the recipe's train.objective table.

`catalogue` names them, without torch; `protocol` is what each of them is; `registry` makes those of a run.
"""
