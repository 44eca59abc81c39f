"""Quality of a text as a filter of training text sees it, and the topics of a small pile.

    P(good) = σ(Σ weight · (feature − mean) / deviation + intercept)       the shipped classifier
    P(word | text) = Σ over topics P(topic | text) · P(word | topic)       the topics

The topics are those of probabilistic latent semantic analysis: expectation–maximisation from random
starts, of which the likeliest is kept (Hofmann 1999). scikit-learn's NMF with the Kullback–Leibler
loss finds the same; it is no dependency, and a test compares both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from pydantic import Field, field_validator

from headlight.model.cancellation import check
from headlight.model.distributions import entropy, normalise
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.text_quality.classifier import read_classifier
from headlight.model.text_quality.features import FEATURES, FUNCTION_WORDS, Text, features_of

FEWEST_TEXTS, MOST_TEXTS = 3, 8
FEWEST_WORDS = 3
N_STARTS, N_STEPS = 60, 200
LEAST = 1e-9
"""A share of a topic below it is 0."""
N_SHOWN = 5
_GOOD = (
    "The miller’s daughter carried two sacks of flour to the bridge. “Is anybody there?” she "
    "called. An old man came out of the mist and took the heavier one. They walked to the village "
    "without a word, and the bells began to ring when they reached the church."
)
_BAD = _GOOD.removesuffix(" when they reached the church.").replace("out of", "outof")
"""The same, cut off, with two words run together."""


class Quality(Parameters):
    """The parameters of `quality`; the seed draws the starts of the topics."""

    text: str = Field(
        _GOOD, min_length=1, max_length=4000, description="Its features are counted and weighed."
    )
    other: str = Field(
        _BAD, min_length=1, max_length=4000, description="A second text, or the first one damaged."
    )
    pile: str = Field(
        "The ship left the harbour, and the sailors set the sails against the wind. | "
        "A storm broke the mast, and the sailors prayed until the ship reached a harbour. | "
        "Knead the dough, let the bread rise, and bake the loaf in a hot oven. | "
        "The oven was hot, and the baker took the bread and the loaf out. | "
        "Snow fell on the forest, and the wolf followed the deer over the frozen river. | "
        "The sailors ate bread on the ship, and the baker watched the wind in the sails.",
        max_length=6000,
        description="Three to eight texts, separated by | or by empty lines.",
    )
    n_topics: int = Field(2, ge=2, le=4, description="Topics of the pile.")

    @field_validator("pile")
    @classmethod
    def _has_texts(cls, pile: str) -> str:
        texts = texts_of(pile)
        if not FEWEST_TEXTS <= len(texts) <= MOST_TEXTS:
            raise ValueError(
                f"the pile has {len(texts)} texts; separate {FEWEST_TEXTS} to {MOST_TEXTS} by |"
            )
        for number, words in enumerate(map(words_of, texts), start=1):
            if len(words) < FEWEST_WORDS:
                raise ValueError(
                    f"text {number} of the pile needs {FEWEST_WORDS} words besides the most "
                    f"frequent ones, with spaces between them; it has {len(words)}"
                )
        return pile


def texts_of(pile: str) -> list[str]:
    """Split a pile into its texts."""
    return [text.strip() for text in re.split(r"\||\n\s*\n", pile) if text.strip()]


def words_of(text: str) -> list[str]:
    """Return the words that tell what a text is about."""
    return [word for word in Text(text).lower if word not in FUNCTION_WORDS and len(word) > 1]


def run(parameters: Quality) -> Iterator[Arrays]:
    """Weigh the features of both texts, and find the topics of the pile."""
    classifier = read_classifier()
    amounts = np.stack([features_of(text) for text in (parameters.text, parameters.other)])
    texts = texts_of(parameters.pile)
    counted = [Counter(words_of(text)) for text in texts]
    words = sorted(set().union(*counted))
    counts = np.array([[float(of[word]) for word in words] for of in counted])
    topics = find_topics(counts, parameters.n_topics, parameters.seed)
    best = int(topics.log_likelihood.argmax())
    sizes = counts.sum(1) / counts.sum()
    pile = np.einsum("t,stk->sk", sizes, topics.of_text)
    order = (-pile[best]).argsort(kind="stable")
    of_word = topics.of_word[best][order]
    top = (-of_word).argsort(axis=1, kind="stable")[:, :N_SHOWN]
    yield {
        "feature": np.array(list(FEATURES)),
        "amount": amounts,
        "contribution": classifier.contributions(amounts),
        "intercept": np.array(classifier.intercept),
        "probability": classifier.probability(amounts),
        "opening": np.array([" ".join(text.split()[:4]) for text in texts]),
        "share": topics.of_text[best][:, order],
        "entropy": entropy(topics.of_text[best], "bits"),
        "pile_share": pile[best][order],
        "pile_entropy": np.array(entropy(pile[best], "bits")),
        "start_entropy": entropy(pile, "bits"),
        "word": np.array(words)[top],
        "word_chance": np.take_along_axis(of_word, top, 1),
        "n_shared": np.array(int(((counts > 0).sum(0) > 1).sum())),
        "n_words": np.array(len(words)),
    }


class Topics(NamedTuple):
    """The topics that each random start came to; ``log_likelihood`` in nats."""

    of_text: Float[np.ndarray, "start text topic"]
    of_word: Float[np.ndarray, "start topic word"]
    log_likelihood: Float[np.ndarray, " start"]


def find_topics(counts: Float[np.ndarray, "text word"], n_topics: int, seed: int) -> Topics:
    """Fit P(word | text) = Σ P(topic | text) · P(word | topic) by expectation–maximisation.

    Args:
        counts: of each word in each text; no text is empty.
        n_topics: at least 1.
        seed: of the starts.
    """
    rng = np.random.default_rng(seed)
    n_texts, n_words = counts.shape
    of_text = rng.dirichlet(np.ones(n_topics), (N_STARTS, n_texts))
    of_word = rng.dirichlet(np.ones(n_words), (N_STARTS, n_topics))
    for _ in range(N_STEPS):
        check()
        ratio = counts / np.maximum(of_text @ of_word, 1e-300)
        claimed = of_text * (ratio @ of_word.swapaxes(1, 2))
        of_word = normalise(of_word * (of_text.swapaxes(1, 2) @ ratio))
        of_text = normalise(claimed)
    of_text = normalise(np.where(of_text < LEAST, 0, of_text))
    fitted = np.log(np.maximum(of_text @ of_word, 1e-300))
    return Topics(of_text, of_word, (counts * fitted).sum((1, 2)))


EXPERIMENT = Experiment(
    id="quality",
    order=27,
    group="Around the model",
    tab="Quality and topic",
    title="The quality of a text, and the topics of a pile",
    parameters=Quality,
    run=run,
    cost=lambda _: Cost(seconds=2.0, megabytes=30.0),
    way_out="choose shorter texts",
)
