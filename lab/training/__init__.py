"""Training: one loop for all recipes, which lie in `recipes/`; `run` ties a run together."""
