"""A sentence in two orders through attention, and PE(pos + k) as a turn of PE(pos).

Attention knows its tokens only by their vectors: if the rows of X are permuted, so are those of
its output, and nothing else changes. Positions are added to the vectors to break this. In the
sinusoidal encoding the pair (sin, cos) of a frequency ω turns by k·ω from position pos to pos + k,
whatever pos is. Vaswani et al. 2017, section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, model_validator

from headlight.model.attention.kernels import attention_weights
from headlight.model.experiments.experiment import Arrays, Experiment, Parameters
from headlight.model.positions import position_angles

MAX_WORDS = 24
VARIANTS = ("none", "sinusoidal")
N_CLOSE = 64
"""Positions that the chosen one is compared with."""


class Order(Parameters):
    """The parameters of `order`."""

    text: str = Field(
        "the dog that chased the cat saw a bird",
        min_length=1,
        max_length=400,
        description="Words, with spaces between them; at most 24.",
    )
    order: Literal["reversed", "shuffled", "rotated"] = Field(
        "reversed", description="The second order of the words."
    )
    d_model: int = Field(32, ge=4, le=128, multiple_of=4, description="Width of a word's vector.")
    position: int = Field(3, ge=0, le=500, description="The position pos whose encoding is turned.")
    offset: int = Field(5, ge=-500, le=500, description="The distance k that it is turned by.")
    pair: int = Field(
        0, ge=0, le=63, description="The pair of dimensions that is drawn, from the fastest, 0."
    )

    @model_validator(mode="after")
    def _fits(self) -> Order:
        if not 2 <= len(words := self.text.split()) <= MAX_WORDS:
            raise ValueError(f"text has {len(words)} words; 2 to {MAX_WORDS} are needed")
        if self.pair >= self.d_model // 2:
            raise ValueError(
                f"pair ({self.pair}) must be below {self.d_model // 2}, half of d_model "
                f"({self.d_model})"
            )
        if self.position + self.offset < 0:
            raise ValueError(
                f"position ({self.position}) + offset ({self.offset}) is below 0, the first "
                "position"
            )
        return self


def run(parameters: Order) -> Iterator[Arrays]:
    """Attend in both orders, and turn the encoding of the position."""
    words = parameters.text.split()
    places = permutation(len(words), parameters)
    vectors = _vectors(words, parameters)
    rng = np.random.default_rng([parameters.seed, 1])
    d_model = parameters.d_model
    matrices = rng.normal(0, 1 / math.sqrt(d_model), (3, d_model, d_model))
    encoding = positions(len(words), d_model)
    attended = [
        [_attend(vectors[order] + added, matrices) for order in (np.arange(len(words)), places)]
        for added in (np.zeros_like(encoding), encoding)
    ]
    back = np.argsort(places)
    difference = [
        np.linalg.norm(first[1] - second[1][back], axis=1) / np.linalg.norm(first[1], axis=1)
        for first, second in attended
    ]
    yield {
        "word": np.array(words),
        "place": back,
        "variant": np.array(VARIANTS),
        "weights": np.stack([first[0] for first, _ in attended]),
        "permuted_weights": np.stack([second[0][back][:, back] for _, second in attended]),
        "difference": np.stack(difference),
        **_turn(parameters),
    }


def permutation(n_words: int, parameters: Order) -> np.ndarray:
    """Return which word is at each place of the second order; it is not the first order."""
    places = np.arange(n_words)
    if parameters.order == "reversed":
        return places[::-1].copy()
    if parameters.order == "rotated":
        return np.roll(places, 1)
    rng = np.random.default_rng([parameters.seed, 2])
    shuffled = rng.permutation(n_words)
    while (shuffled == places).all():
        shuffled = rng.permutation(n_words)
    return shuffled


def _vectors(words: list[str], parameters: Order) -> Float[np.ndarray, "word d_model"]:
    """Draw a vector for each different word; equal words have equal vectors."""
    known = list(dict.fromkeys(words))
    rng = np.random.default_rng([parameters.seed, 0])
    drawn = rng.normal(size=(len(known), parameters.d_model))
    vectors: np.ndarray = drawn[[known.index(word) for word in words]]
    return vectors


def positions(n_positions: int, d_model: int) -> Float[np.ndarray, "position d_model"]:
    """Return PE(pos, 2i) = sin(pos/10000^(2i/d)) and PE(pos, 2i + 1) = cos of it, in float64."""
    angles = position_angles(n_positions, d_model).numpy()
    encoding: np.ndarray = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(
        n_positions, d_model
    )
    return encoding


def _attend(
    x: Float[np.ndarray, "word d_model"], matrices: Float[np.ndarray, "3 d_model d_model"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and the output of one head."""
    queries, keys, values = (x @ matrix for matrix in matrices)
    scores = queries @ keys.T / math.sqrt(keys.shape[1])
    weights = attention_weights(torch.from_numpy(scores)).numpy()
    return weights, weights @ values


def _turn(parameters: Order) -> dict[str, np.ndarray]:
    """Turn the encoding of the position by k·ω, pair by pair, and compare it with PE(pos + k)."""
    pos, k, d_model = parameters.position, parameters.offset, parameters.d_model
    last = max(pos, pos + k, N_CLOSE - 1)
    encoding = positions(last + 1, d_model)
    pairs = encoding.reshape(last + 1, -1, 2)  # (position, pair, sin and cos)
    frequencies = position_angles(1, d_model, start=1)[0].numpy()
    angles = k * frequencies
    sines, cosines = np.sin(angles), np.cos(angles)
    sin, cos = pairs[pos].T
    turned = np.stack([sin * cosines + cos * sines, cos * cosines - sin * sines], axis=-1)
    near = np.arange(N_CLOSE)
    return {
        "frequency": frequencies,
        "angle": angles,
        "start": pairs[pos],
        "turned": turned,
        "end": pairs[pos + k],
        "position": near,
        "products": np.stack([encoding[near] @ encoding[0], encoding[near] @ encoding[pos]]),
    }


EXPERIMENT = Experiment(
    id="order",
    order=5,
    group="Attention",
    tab="Order",
    title="What attention knows of order",
    parameters=Order,
    run=run,
    way_out="choose fewer words",
)
