"""The quality of a document: a calibrated logistic regression on features of its text.

The features count words, sentences and repeats and read nothing else
(`headlight.lab.data.features`). The classifier is scikit-learn's logistic regression on
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

from headlight.lab.data.features import features_of

SHIPPED = Path(__file__).parent / "quality.json"
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

    def probability(self, features: Float[np.ndarray, "*text feature"]) -> Any:
        """Return the probability that texts with these features are good."""
        standard = (features - np.array(self.mean)) / np.array(self.scale)
        # A text unlike all others, such as one sentence of 2 MB, is not judged by one feature.
        standard = np.clip(standard, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        score = standard @ np.array(self.weights) + self.bias
        return 1 / (1 + np.exp(-np.clip(self.slope * score + self.offset, -700, 700)))

    def score(self, text: str) -> float:
        """Return the probability that a text is good."""
        return float(self.probability(features_of(text)))


def read_classifier() -> Classifier:
    """Read the classifier that ships."""
    members: dict[str, Any] = json.loads(SHIPPED.read_text(encoding="utf-8"))
    for name in ("features", "mean", "scale", "weights"):
        members[name] = tuple(members[name])
    return Classifier(**members)
