"""The quality of a document: a calibrated logistic regression on features of its text.

The features count words, sentences and repeats and read nothing else
(`headlight.model.text_quality.features`). The classifier is scikit-learn's logistic regression on
standardized features, calibrated by Platt's method: its score passes through a sigmoid fitted on
folds that it was not trained on (Platt 1999). Its parameters are ``quality.json``; ``quality.md``
says what it was trained on and what it knows. Scoring needs no scikit-learn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from headlight.model.text_quality.features import features_of

SHIPPED = Path(__file__).with_name("quality.json")
"""The classifier that ships; its card is ``quality.md`` next to it."""

MOST_DEVIATIONS = 8.0


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """A calibrated logistic regression: P(good) = σ(slope·(w·(x − mean)/scale + b) + offset).

    ``mean``, ``scale`` and ``weights`` (feature) are in the order of ``features``. ``figures``
    are those on the held-out part, and ``about`` says how it was made.
    """

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    slope: float
    offset: float
    about: dict[str, Any]
    figures: dict[str, Any]

    @property
    def intercept(self) -> float:
        """The log odds of a text whose features are all at their means."""
        return self.slope * self.bias + self.offset

    def contributions(
        self, features: Float[np.ndarray, "*text feature"]
    ) -> Float[np.ndarray, "*text feature"]:
        """Return what each feature adds to the log odds, in which P(good) is their σ."""
        standard = (features - np.array(self.mean)) / np.array(self.scale)
        # A text unlike all others, such as one sentence of 2 MB, is not judged by one feature.
        standard = np.clip(standard, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        added: np.ndarray = self.slope * standard * np.array(self.weights)
        return added

    def probability(self, features: Float[np.ndarray, "*text feature"]) -> Any:
        """Return the probability that texts with these features are good."""
        log_odds = self.contributions(features).sum(-1) + self.intercept
        return 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))

    def score(self, text: str) -> float:
        """Return the probability that a text is good."""
        return float(self.probability(features_of(text)))


def read_classifier() -> Classifier:
    """Read the classifier that ships."""
    members: dict[str, Any] = json.loads(SHIPPED.read_text(encoding="utf-8"))
    for name in ("features", "mean", "scale", "weights"):
        members[name] = tuple(members[name])
    return Classifier(**members)
