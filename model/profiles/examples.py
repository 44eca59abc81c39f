"""Sentences that say something about any language model, each kept only if this model shows it.

An example is a pair of texts of as many tokens, each with its answer. A model shows it if either
text makes its own answer at least ten times as likely as the answer of the other.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

from headlight.model.circuits.pairs import PairPasses
from headlight.model.circuits.tasks import TextPair, fitted
from headlight.model.served import Served

LEAST = math.log(10)
"""The least difference of the logits of both answers, after either text."""

_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CANDIDATES = {title: TextPair(**said) for title, said in _SAID.items()}


def shown_examples(model: Served) -> dict[str, str]:
    """Return the texts that a decoder shows clearly, by title; none of another kind of model."""
    if model.config.kind != "decoder":
        return {}
    shown = {}
    for title, texts in CANDIDATES.items():
        try:
            clean, corrupted = PairPasses(model, (fitted(model, texts),)).whole()
        except ValueError:  # an answer is several tokens here, or the text is too long
            continue
        if clean[0] >= LEAST and corrupted[0] <= -LEAST:
            shown[title] = texts.clean
    return shown
