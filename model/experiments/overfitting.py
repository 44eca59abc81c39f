"""A small network learns a text of the reader's: overfitting, early stopping, dropout and tying.

    last 4 characters → vectors → a hidden layer, ReLU → dropout → scores of the next character

In training, dropout sets each hidden number to 0 with probability p and multiplies the others by
1/(1 − p), so that their mean stays; in reading nothing is dropped (Srivastava et al. 2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import descend, frames_of

N_BEFORE, WIDTH, N_HIDDEN = 4, 12, 48
N_MASKS, N_SHOWN = 6, 12
HELD_OUT = 0.25
TEXT = (
    "Once upon a time there was a poor miller who had a daughter. The king heard of her and said:"
    " Bring the girl to me. The miller took his daughter by the hand and led her to the king. The"
    " king showed her a room full of straw and said: Spin this straw to gold, or you must die. "
    "Then he locked the door, and the girl sat there alone and wept. At once the door opened, and"
    " a little man came in and said: Good evening, miller’s daughter, why do you weep so? Alas, "
    "said the girl, I have to spin straw to gold, and I do not know how. What will you give me, "
    "said the little man, if I spin it for you? My necklace, said the girl. The little man took "
    "the necklace."
)


class Overfitting(Parameters):
    """The parameters of `overfitting`; the seed draws weights and what is dropped."""

    text: str = Field(
        TEXT,
        min_length=100,
        max_length=4000,
        description="Its first three quarters are learned, the rest is held out.",
    )
    steps: int = Field(
        400, ge=1, le=1500, description="Training steps, each on all that is learned."
    )
    dropout: float = Field(0.2, ge=0.0, le=0.9, description="p, the chance to be dropped.")
    is_tied: bool = Field(
        False, description="Whether the scores are products with the vectors that are read."
    )
    learning_rate: float = Field(0.003, ge=1e-4, le=0.1, description="Rate of Adam.")


Weights = dict[str, Tensor]


def run(parameters: Overfitting) -> Iterator[Arrays]:
    """Train, and measure after each part of the steps what is learned and what is held out."""
    alphabet = sorted(set(parameters.text))
    ids = torch.tensor([alphabet.index(each) for each in parameters.text])
    cut = round((1 - HELD_OUT) * len(ids))
    learned, held = ids[:cut], ids[cut - N_BEFORE :]
    weights = _weights(parameters, len(alphabet))
    optimizer = torch.optim.Adam(weights.values(), lr=parameters.learning_rate)
    generator = torch.Generator().manual_seed(parameters.seed + 1)

    def loss() -> Tensor:
        return cost_of(weights, learned, parameters.dropout, generator)

    yield {
        "n_parameters": np.array(sum(each.numel() for each in weights.values())),
        "n_learned": np.array(cut),
        **_frame(weights, learned, held, 0),
    }
    for steps in frames_of(parameters.steps):
        list(descend(list(weights.values()), loss, len(steps), optimizer))
        yield _frame(weights, learned, held, steps.stop)
    row = hidden(weights, learned[:N_BEFORE])[:, :N_SHOWN].detach()
    masks = [dropped(row, parameters.dropout, generator)[0] for _ in range(1000)]
    yield {
        "row": row[0].numpy(),
        "in_training": torch.stack(masks[:N_MASKS]).numpy(),
        "mean": torch.stack(masks).mean(0).numpy(),
    }


def _weights(parameters: Overfitting, n_letters: int) -> Weights:
    generator = torch.Generator().manual_seed(parameters.seed)
    shapes = {
        "vectors": (n_letters, WIDTH),
        "first": (N_BEFORE * WIDTH, N_HIDDEN),
        "second": (N_HIDDEN, WIDTH),
        "scores": (WIDTH, n_letters),
    }
    if parameters.is_tied:
        del shapes["scores"]
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float64)
        .div_(math.sqrt(shape[0] if name != "vectors" else 1))
        .requires_grad_()
        for name, shape in shapes.items()
    }


def hidden(weights: Weights, ids: Int[Tensor, " letter"]) -> Float[Tensor, "place hidden"]:
    """Return the hidden numbers at every place that has enough letters before what follows it."""
    read = weights["vectors"][ids.unfold(0, N_BEFORE, 1)].flatten(1)
    return F.relu(read @ weights["first"])


def dropped(
    x: Float[Tensor, "place hidden"], p: float, generator: torch.Generator | None
) -> Float[Tensor, "place hidden"]:
    """Set numbers to 0 with probability p, and divide the others by 1 − p; None: as in reading."""
    if generator is None:
        return x
    kept = torch.rand(x.shape, generator=generator, dtype=x.dtype) >= p
    return x * kept / (1 - p)


def cost_of(
    weights: Weights,
    ids: Int[Tensor, " letter"],
    p: float = 0.0,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Return the mean of −log₂ P of each letter after the first few."""
    x = dropped(hidden(weights, ids[:-1]), p, generator) @ weights["second"]
    scores = x @ weights.get("scores", weights["vectors"].T)
    return F.cross_entropy(scores, ids[N_BEFORE:]) / math.log(2)


@torch.no_grad()
def _frame(weights: Weights, learned: Tensor, held: Tensor, step: int) -> dict[str, np.ndarray]:
    losses = [cost_of(weights, ids).item() for ids in (learned, held)]
    return {"frame": np.array([step]), "loss": np.array(losses)[:, None]}


EXPERIMENT = Experiment(
    id="overfitting",
    order=20,
    group="Learning",
    tab="When to stop",
    title="Overfitting, and when to stop",
    parameters=Overfitting,
    run=run,
    cost=lambda p: Cost(seconds=0.01 * p.steps * (0.3 + len(p.text) / 1500), megabytes=30.0),
    is_streamed=True,
    way_out="choose fewer steps or a shorter text",
)
