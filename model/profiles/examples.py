"""Sentences that say something about any language model, each kept only if this model shows it.

An example is a pair of texts of as many tokens, each with its answer. A model shows it if either
text makes its own answer at least ten times as likely as the answer of the other.
"""

from __future__ import annotations

import math

from headlight.model.circuits.pairs import PairPasses
from headlight.model.circuits.tasks import TextPair, fitted
from headlight.model.served import Served

LEAST = math.log(10)
"""The least difference of the logits of both answers, after either text."""

CANDIDATES = {
    "Two names": TextPair(
        "When Mary and John went to the store, John gave a drink to",
        "When Mary and John went to the store, Mary gave a drink to",
        (" Mary",),
        (" John",),
    ),
    "A repeated list": TextPair(
        "red blue green white black, red blue green",
        "red blue green black white, red blue green",
        (" white",),
        (" black",),
    ),
    "A capital": TextPair(
        "The capital of France is", "The capital of Italy is", (" Paris",), (" Rome",)
    ),
    "A bracket to close": TextPair(
        "He came back (after a long time", 'He came back "after a long time', (")",), ('"',)
    ),
    "A subject far from its verb": TextPair(
        "The keys to the old wooden cabinet",
        "The key to the old wooden cabinet",
        (" are",),
        (" is",),
    ),
}


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
