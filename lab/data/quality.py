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

TWINS = 0.25
MOST_DEVIATIONS = 8.0
_MOST_COMPARED = 20_000  # characters of a document


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


class Extremes:
    """The best and the worst documents of a stream, no two of which are near-twins.

    Twins have a Jaccard similarity of at least `TWINS` of their runs of three words; of two the
    earlier is kept, or the one that is better or worse.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.best: list[dict[str, Any]] = []
        self.worst: list[dict[str, Any]] = []
        self._runs: dict[str, frozenset[tuple[str, ...]]] = {}

    def add(self, score: float, source: str, text: str) -> None:
        """Offer a document; ties keep the earlier one."""
        score = round(score, 4)
        for items, sign in ((self.best, -1), (self.worst, 1)):
            if len(items) == self._size and sign * score >= sign * items[-1]["score"]:
                continue
            runs = _runs(text)
            twins = [item for item in items if _are_twins(self._runs[item["source"]], runs)]
            if any(sign * item["score"] <= sign * score for item in twins):
                continue
            for item in twins:
                items.remove(item)
            items.append({"score": score, "source": source, "text": _excerpt(text)})
            self._runs[source] = runs
            items.sort(key=lambda item: sign * item["score"])
            del items[self._size :]
        shown = {item["source"] for item in (*self.best, *self.worst)}
        self._runs = {source: runs for source, runs in self._runs.items() if source in shown}


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = text[:_MOST_COMPARED].lower().split()
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset({tuple(words)})


def _are_twins(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> bool:
    common = len(first & second)
    return common >= TWINS * (len(first) + len(second) - common)


def _excerpt(text: str) -> str:
    """Return the beginning and the end of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 240 else f"{line[:160]} … {line[-70:]}"
