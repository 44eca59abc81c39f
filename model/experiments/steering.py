"""Steering: add a direction, made of two small sets of texts, to the stream of a model.

    direction = mean of the stream over the texts of one set − mean over those of the other
    stream ← stream + strength · direction, after one layer, at every token

The control is a random direction of equal length: a stream is changed by whatever is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from jaxtyping import Float
from pydantic import Field, StringConstraints

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import predictions, shipped
from headlight.model.generation.sampling import Sampling, generate
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.tracing import tokenize, trace

MODEL = "stories"
STRENGTHS = np.linspace(-4, 4, 9)
N_RANDOM = 6
N_TOKENS = 16
WAYS = ("as it is", "steered", "random")

Texts = Annotated[str, StringConstraints(max_length=600, pattern=r"[^|\s]")]
Word = Annotated[str, StringConstraints(max_length=30, pattern=r"\S")]


class Steering(Parameters):
    """The parameters of `steering`; the seed draws the random directions."""

    toward: Texts = Field(
        "She was sad and cried all night. | He wept bitterly, for his mother was dead. | "
        "The poor boy was alone, cold and hungry. | Tears ran down her face, and she sobbed.",
        description="Texts, separated by |. The direction leads to their mean.",
    )
    away: Texts = Field(
        "She was glad and laughed all day. | He smiled merrily, for his mother was home. | "
        "The happy boy was warm, and he sang. | Joy shone on her face, and she danced.",
        description="It leads away from the mean of these.",
    )
    text: str = Field(
        "The little girl came home, and then she",
        min_length=1,
        max_length=200,
        description="Is continued.",
    )
    strength: float = Field(
        2.0,
        ge=-4.0,
        le=4.0,
        description="The direction is multiplied by it; below 0 it turns round.",
    )
    layer: int = Field(1, ge=0, le=3, description="It is added after this layer.")
    word: Word = Field("cried", description="Is likelier along the direction.")
    rival: Word = Field("laughed", description="Is likelier against it.")


def run(parameters: Steering) -> Iterator[Arrays]:
    """Find the direction, continue the text in three ways, and measure the lead of one word."""
    checkpoint, site = shipped(MODEL), f"decoder.layers.{parameters.layer}.residual.after"
    direction = _mean(parameters.toward, site) - _mean(parameters.away, site)
    drawn = np.random.default_rng(parameters.seed).normal(size=(N_RANDOM, len(direction)))
    length = np.linalg.norm(direction)
    others = drawn * length / np.linalg.norm(drawn, axis=1, keepdims=True)
    first, second = (
        checkpoint.tokenizer.encode_ids([f" {word.strip()}"])[0][0]
        for word in (parameters.word, parameters.rival)
    )

    def edit(added: Float[np.ndarray, " d_model"], strength: float) -> list[SiteEdit]:
        return [SiteEdit(kind="add", site=site, value=strength * added)]

    def lead(added: Float[np.ndarray, " d_model"], strength: float) -> float:
        check()
        last = predictions(MODEL, parameters.text, edit(added, strength))[1][-1]
        return float(last[first] - last[second])

    ids = [token.id for token in tokenize(checkpoint, parameters.text).tokens]
    written, chances = np.full((3, N_TOKENS), "", dtype=object), np.zeros((3, N_TOKENS))
    for way, added in enumerate((0 * direction, direction, others[0])):
        writer = checkpoint.writer(edit(added, parameters.strength))
        greedy, stop = Sampling(temperature=0.0), checkpoint.end_ids
        made = list(generate(writer, ids, n_tokens=N_TOKENS, sampling=greedy, stop_id=stop))
        written[way, : len(made)] = [checkpoint.tokenizer.text_of(token.id) for token in made]
        chances[way, : len(made)] = [token.model_probability for token in made]
    yield {
        "way": np.array(WAYS),
        "written": written.astype(str),
        "chance": chances,
        "length": np.array(length),
        "lead_now": np.array(
            [lead(added, parameters.strength) for added in (0 * direction, direction, others[0])]
        ),
        "strength": STRENGTHS,
        "lead": np.array([lead(direction, strength) for strength in STRENGTHS]),
        "random_lead": np.array([[lead(each, by) for by in STRENGTHS] for each in others]),
    }


def _mean(texts: str, site: str) -> Float[np.ndarray, " d_model"]:
    """Return the mean of the stream over the tokens of each text but the first, then of all."""
    parts = [part.strip() for part in texts.split("|") if part.strip()]
    streams = [trace(shipped(MODEL), part, capture=[site]).tensors[site].data for part in parts]
    means = np.stack([stream[1:].mean(0, dtype=np.float64) for stream in streams])
    direction: Float[np.ndarray, " d_model"] = means.mean(axis=0)
    return direction


EXPERIMENT = Experiment(
    id="steering",
    order=24,
    group="Around the model",
    tab="Steering",
    title="A direction that steers what is written",
    parameters=Steering,
    run=run,
    cost=lambda _: Cost(seconds=4.0, megabytes=150.0),
    way_out="choose shorter texts",
)
