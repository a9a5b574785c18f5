"""Recipes: training runs as TOML; every key has a type, a range, a default and a meaning."""

from __future__ import annotations

from bitextmine.training.recipe.check import check_objectives, check_recipe
from bitextmine.training.recipe.keys import Corpus, Data, Distil, Model, Recipe, Teacher, Training, Vocabulary
from bitextmine.training.recipe.load import load_recipe, recipe_from_pairs, recipe_names, recipe_path
from bitextmine.training.recipe.start import start_name, with_start
from bitextmine.training.recipe.template import recipe_settings, recipe_template, recipe_text

__all__ = [
    "Corpus",
    "Data",
    "Distil",
    "Model",
    "Recipe",
    "Teacher",
    "Training",
    "Vocabulary",
    "check_objectives",
    "check_recipe",
    "load_recipe",
    "recipe_from_pairs",
    "recipe_names",
    "recipe_path",
    "recipe_settings",
    "recipe_template",
    "recipe_text",
    "start_name",
    "with_start",
]
