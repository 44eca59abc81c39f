"""The states of a run that are kept as models, in the sub-folders ``step*`` of its folder."""

from __future__ import annotations

from collections.abc import Collection

from headlight.lab.training.loop import Loop
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import save
from headlight.model.tokenizer import Tokenizer

FIRST = 8
"""The first step that is kept after step 0, if the run is longer."""


def kept_steps(count: int, steps: int) -> tuple[int, ...]:
    """Return step 0, `FIRST`, the last step, and others between, evenly spaced in the logarithm."""
    first = min(FIRST, steps)
    spaced = (first * (steps / first) ** (n / max(1, count - 2)) for n in range(count - 1))
    return tuple(sorted({0, *map(round, spaced), steps}))


def keep_step(loop: Loop, *, tokenizer: Tokenizer, kept: Collection[int]) -> dict[str, float]:
    """Write the model of this step, if it is one to keep."""
    if loop.step in kept:
        training = {"steps": loop.step, "tokens": loop.tokens}
        title = f"{loop.out.resolve().name}, step {loop.step:,}"
        card = ModelCard(title=title, licence="not stated", training=training, prose=f"# {title}")
        save(loop.out / f"step{loop.step}", loop.model, tokenizer, card)
    return {}
