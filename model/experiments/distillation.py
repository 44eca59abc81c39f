"""Distillation: a teacher's softened predictions, the student's, and the loss between them.

    p = softmax(z_teacher / T)      q = softmax(z_student / T)      loss = T² · Σ p · ln(p / q)

The factor T² keeps the gradient's size: that of softened rows falls as 1/T² (Hinton et al. 2015).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import predictions, shipped

MODELS = ("stories", "stories-small")
TEMPERATURES = np.geomspace(0.5, 10, 25)
N_SHOWN = 12


class Distillation(Parameters):
    """The parameters of `distillation`; nothing is drawn, so the seed changes nothing."""

    text: str = Field(
        "Once upon a time there was a little girl who lived in a",
        min_length=1,
        max_length=300,
        description="Teacher and student predict what follows each of its tokens.",
    )
    temperature: float = Field(2.0, ge=0.5, le=10.0, description="T, which softens both rows.")
    tokens_back: int = Field(
        0, ge=0, le=80, description="Tokens back from the last; its row is drawn."
    )


def run(parameters: Distillation) -> Iterator[Arrays]:
    """Let both models read the text, soften what they predict, and compare it."""
    read = [predictions(name, parameters.text) for name in MODELS]
    tokens = [token.text for token in read[0][0]]
    logits = torch.stack([each for _, each in read])  # up to a constant: model token vocab
    place = max(0, len(tokens) - 1 - parameters.tokens_back)
    plain, soft = (rows(logits[:, place], t) for t in (1.0, parameters.temperature))
    shown = soft[0].topk(N_SHOWN).indices
    tokenizer = shipped(MODELS[0]).tokenizer
    yield {
        "token": np.array(tokens),
        "place": np.array(place),
        "loss": loss(logits, parameters.temperature).numpy(),
        "candidate": np.array([tokenizer.text_of(each) for each in shown.tolist()]),
        "plain": plain[:, shown].numpy(),
        "soft": soft[:, shown].numpy(),
        "temperature": TEMPERATURES,
        "divergence": np.array([loss(logits[:, place], t) / t**2 for t in TEMPERATURES]),
        "loss_by_temperature": np.array([loss(logits[:, place], t) for t in TEMPERATURES]),
    }


def rows(logits: Float[Tensor, "*rows vocab"], temperature: float) -> Float[Tensor, "*rows vocab"]:
    """Return the softened probabilities."""
    return (logits / temperature).softmax(-1)


def loss(logits: Float[Tensor, "model *rows vocab"], temperature: float) -> Float[Tensor, "*rows"]:
    """Return T² times the divergence of the student's softened rows from the teacher's, in nats."""
    teacher, student = (logits / temperature).log_softmax(-1)
    divergence: Tensor = (teacher.exp() * (teacher - student)).sum(-1)
    return temperature**2 * divergence.clamp(min=0)


EXPERIMENT = Experiment(
    id="distillation",
    order=19,
    group="Learning",
    tab="Distillation",
    title="A small model learns from a large one",
    parameters=Distillation,
    run=run,
    cost=lambda _: Cost(seconds=1.5, megabytes=150.0),
    way_out="choose a shorter text",
)
