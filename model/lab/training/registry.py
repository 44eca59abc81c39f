"""The recipes by name: every module of `recipes/`, each with a `RECIPE`."""

from headlight.model.discovery import import_all
from headlight.model.lab.training import recipes
from headlight.model.lab.training.config import Recipe

RECIPES: dict[str, Recipe] = {
    module.__name__.rpartition(".")[2]: module.RECIPE
    for module in import_all(recipes.__name__, recipes.__path__)
}
