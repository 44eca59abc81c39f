"""The recipes by name: every module of `recipes/`, each with a `RECIPE`."""

from headlight.lab.training import recipes
from headlight.lab.training.config import Recipe
from headlight.model.discovery import import_all

RECIPES: dict[str, Recipe] = {
    module.__name__.rpartition(".")[2]: module.RECIPE
    for module in import_all(recipes.__name__, recipes.__path__)
}
