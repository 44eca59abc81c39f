"""The training recipes: what a model reads, its config and its schedule, one recipe per file.

To add one, define a `RECIPE` in a new file and name it here; `headlight train` offers it.
"""

from headlight.model.lab.training.config import Recipe
from headlight.model.lab.training.recipes import (
    distill,
    fill,
    positions,
    reasoning,
    reward,
    rlhf,
    stories,
    translate,
)

RECIPES: dict[str, Recipe] = {
    "stories": stories.RECIPE,
    "translate": translate.RECIPE,
    "fill": fill.RECIPE,
    "positions": positions.RECIPE,
    "distill": distill.RECIPE,
    "reward": reward.RECIPE,
    "rlhf": rlhf.RECIPE,
    "reasoning": reasoning.RECIPE,
}
