"""Examples of a model that nobody wrote a card for are those that it shows."""

import numpy as np
import pytest

from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.circuits.tasks import TextPair
from headlight.model.profiles import examples
from headlight.model.profiles.examples import shown_examples
from headlight.model.tracing import trace


@pytest.fixture(scope="module")
def stories():
    return load(ZOO / "stories")


def lead(model, text, right, wrong):
    logits = trace(model, text, capture=["logits"]).tensors["logits"].data[-1]
    ids = [
        [token.id for token in model.tokenizer.encode(answer) if token.is_typed]
        for answer in (right, wrong)
    ]
    return logits[ids[0][0]] - logits[ids[1][0]]


def test_an_example_is_kept_if_each_of_its_texts_has_its_own_answer(stories, monkeypatch):
    pairs = {
        "agrees": TextPair("The dogs", "The dog", (" were",), (" was",)),
        "the wrong way round": TextPair("The dogs", "The dog", (" was",), (" were",)),
        "always the same": TextPair("The dog", "The cat", (" was",), (" were",)),
        "two tokens": TextPair("The dogs", "The dog", (" hippopotamus",), (" was",)),
    }
    monkeypatch.setattr(examples, "CANDIDATES", pairs)
    assert shown_examples(stories) == {"agrees": "The dogs"}
    assert lead(stories, "The dogs", " were", " was") > np.log(10)
    assert lead(stories, "The dog", " was", " were") > np.log(10)


def test_a_model_without_these_sentences_has_none():
    assert shown_examples(load(ZOO / "fill")) == {}
    assert shown_examples(load(ZOO / "sums")) == {}
