"""Bradley and Terry's model of preference, by hand, and the judge that was trained with it.

    P(A is preferred to B) = σ(r_A − r_B)          loss of a pair = −ln P

The judge is `stories-reward`. What it pays for is measured: three additions to 64 answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field

from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.shipped import shipped
from headlight.model.tracing import tokenize, trace

MODEL = "stories-reward"
LEADS = np.linspace(-8, 8, 65)
ADDED = {
    "longer": " The night was cold, and the road was long, and the sun was gone.",
    "one “Oh!”": ' "Oh!"',
    "four “Oh!”": ' "Oh!"' * 4,
}
"""The texts that are added to the end of an answer, by name."""
WHO = "little girl|old man|little boy|good woman|young prince|old king|kind queen|poor miller"
WHERE = "gate door river garden barn mill window bridge"


class Preference(Parameters):
    """The parameters of `preference`; nothing is drawn, so the seed changes nothing."""

    first: str = Field(
        'The king came home. "Where is my crown?" he asked.',
        min_length=1,
        max_length=300,
        description="The judge rates it.",
    )
    second: str = Field(
        "The king came home. He asked for his crown.",
        min_length=1,
        max_length=300,
        description="The judge rates it, too.",
    )
    lead: float = Field(1.0, ge=-8.0, le=8.0, description="r_A − r_B, by hand.")


def run(parameters: Preference) -> Iterator[Arrays]:
    """Rate both texts, and measure what the additions change."""
    texts = [parameters.first, parameters.second]
    tokens = [[t.text for t in tokenize(shipped(MODEL), text).tokens[1:]] for text in texts]
    read = [trace(shipped(MODEL), text, capture=["reward"]).tensors["reward"] for text in texts]
    made = [np.diff(each.data.astype(np.float64)) for each in read]
    longest = max(map(len, tokens))
    rewards = np.array([float(each.data[-1]) for each in read])
    lead = rewards[0] - rewards[1]
    yield {
        "text": np.array(["A", "B"]),
        "token": np.array([[*of, *[""] * (longest - len(of))] for of in tokens]),
        "contribution": np.array([np.pad(of, (0, longest - len(of))) for of in made]),
        "reward": rewards,
        "preferred": np.array(chance(lead)),
        "loss": np.array(np.logaddexp(0, -lead)),
        "lead": LEADS,
        "chance": chance(LEADS),
        "chance_by_hand": np.array(chance(parameters.lead)),
        "added": np.array(list(ADDED)),
        "gain": gains(texts),
        "measured_gain": measured(),
        "n_measured": np.array(len(answers())),
    }


def chance(lead: float | np.ndarray) -> np.ndarray:
    """Return σ of a lead."""
    return np.asarray(1 / (1 + np.exp(-np.asarray(lead, dtype=np.float64))))


def answers() -> list[str]:
    """Return 64 answers of one form."""
    said = 'and said, "Come in out of the rain, and sit down by the fire."'
    return [
        f"The {who} ran to the {where} {said}"
        for who, where in product(WHO.split("|"), WHERE.split())
    ]


@torch.no_grad()
def rewards_of(texts: Sequence[str]) -> Float[np.ndarray, " text"]:
    """Rate texts together; what stands after a row's end changes nothing before it."""
    checkpoint = shipped(MODEL)
    rows = [[t.id for t in tokenize(checkpoint, text).tokens] for text in texts]
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[row[-1]] * (longest - len(row))] for row in rows])
    reward = checkpoint.model(ids).reward
    assert reward is not None
    rated: np.ndarray = reward[torch.arange(len(rows)), [len(row) - 1 for row in rows]].numpy()
    return rated.astype(np.float64)


def gains(texts: Sequence[str]) -> Float[np.ndarray, "text added"]:
    """Return what each addition changes of the reward of each text."""
    changed = [rewards_of([text + more for text in texts]) for more in ADDED.values()]
    gain: np.ndarray = np.stack(changed, axis=1) - rewards_of(texts)[:, None]
    return gain


@lru_cache(maxsize=1)
def measured() -> Float[np.ndarray, " added"]:
    """Return the mean of the gains over `answers`."""
    mean: np.ndarray = gains(answers()).mean(axis=0)
    return mean


EXPERIMENT = Experiment(
    id="preference",
    order=17,
    group="Learning",
    tab="Preference",
    title="Which text is preferred",
    parameters=Preference,
    run=run,
    cost=lambda _: Cost(seconds=2.5, megabytes=150.0),
    way_out="choose shorter texts",
)
