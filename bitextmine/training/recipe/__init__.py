"""Recipes: training runs as TOML; `keys` has every key with its type, range and default, template.toml its meaning."""

from bitextmine.training.recipe.check import check_objectives, check_recipe
from bitextmine.training.recipe.keys import Data, Model, PairCorpus, Recipe, Training
from bitextmine.training.recipe.load import load_recipe, resolve_corpora, start_name, with_start

__all__ = [
    "Data",
    "Model",
    "PairCorpus",
    "Recipe",
    "Training",
    "check_objectives",
    "check_recipe",
    "load_recipe",
    "resolve_corpora",
    "start_name",
    "with_start",
]
