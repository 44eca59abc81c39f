"""Cross-entropy and perplexity: what each token of a text costs a model.

    cross-entropy    H = −1/n · Σ ln P(tokenᵢ | tokens before)          perplexity    e^H

The second model has the same tokens, so that both can be compared token by token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from pydantic import Field

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import predictions, shipped

Reader = Literal["stories", "stories-small", "stories-preferred"]


class Surprise(Parameters):
    """The parameters of `surprise`; nothing is drawn, so the seed changes nothing."""

    text: str = Field(
        "The old man and the little boy went down to the sea, and the old man slept.",
        min_length=1,
        max_length=400,
        description="Each of its tokens is predicted from those before it.",
    )
    first_model: Reader = Field("stories", description="Reads the text.")
    second_model: Reader = Field("stories-small", description="Reads it, too.")


def run(parameters: Surprise) -> Iterator[Arrays]:
    """Let both models read the text."""
    read = [
        predictions(name, parameters.text)
        for name in (parameters.first_model, parameters.second_model)
    ]
    ids = torch.tensor([token.id for token in read[0][0]])
    log_probs = torch.stack([each[:-1] for _, each in read])  # reader token vocab
    nats = -log_probs[:, torch.arange(len(ids) - 1), ids[1:]].numpy()
    means = nats.cumsum(1) / np.arange(1, len(ids))
    share, guess = log_probs.exp().max(-1)
    vocabulary = shipped(parameters.first_model).tokenizer
    yield {
        "reader": np.array([parameters.first_model, parameters.second_model]),
        "token": np.array([token.text for token in read[0][0][1:]]),
        "nats": nats,
        "guess": np.array([[vocabulary.text_of(each) for each in row] for row in guess.tolist()]),
        "guess_share": share.numpy(),
        "cross_entropy": means[:, -1],
        "perplexity": np.exp(means[:, -1]),
        "perplexity_so_far": np.exp(means),
        "n_vocabulary": np.array(log_probs.shape[-1]),
    }


EXPERIMENT = Experiment(
    id="surprise",
    order=23,
    group="Around the model",
    tab="Perplexity",
    title="Cross-entropy and perplexity",
    parameters=Surprise,
    run=run,
    cost=lambda _: Cost(seconds=1.5, megabytes=150.0),
    way_out="choose a shorter text",
)
