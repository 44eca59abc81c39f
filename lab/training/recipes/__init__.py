"""The training recipes: what a model reads, its config, its schedule and its figures, one a file.

A recipe is a module with a `RECIPE`. `headlight train` offers every module that is here, described
by the first paragraph of its docstring. A program adds its own by appending a folder to
``__path__`` before it imports `headlight.lab.training.recipe_registry`.
"""
