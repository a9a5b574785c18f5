"""What training minimises: objectives by name, weighed by the recipe's train.objective table."""

from __future__ import annotations

from bitextmine.train.objectives.registry import OBJECTIVES, Objectives, check_objectives, make_objectives

__all__ = ["OBJECTIVES", "Objectives", "check_objectives", "make_objectives"]
