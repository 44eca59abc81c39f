"""Every example that says where to look shows there what its title promises, by measurement."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from headlight.lab.evaluation.examples import holds
from headlight.model.analysis.head_labels import LABELS, SCORES, head_labels
from headlight.model.checkpoint.card import Example, read_card
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.tracing import trace

# By model and title: what the chosen token looks at most, and the least weight it lays on it.
LOOKS_AT = {
    ("stories", "A phrase that repeats"): (" Mouse", 0.8),
    ("stories", "A verb and its subject"): ("s", 0.8),
    ("stories", "A head that looks at nouns"): (" king", 0.3),
    ("translate", "Words that change places"): (" black", 0.9),
    ("translate", "One word becomes two"): ("'t", 0.7),
    ("translate", "A name, copied piece by piece"): ("of", 0.7),
    ("fill", "A verb of speech"): ('?"', 0.4),
    ("fill", "The token before"): (" the", 0.9),
    ("sums", "The multiplier's tens digit"): ("2", 0.8),
    ("sums", "The multiplier's ones digit"): ("3", 0.9),
    ("sums", "The sum's ones digit"): ("1", 0.98),
    ("sums-imitation", "The multiplier's tens digit"): ("2", 0.85),
    ("sums-imitation", "The multiplier's ones digit"): ("3", 0.95),
    ("sums-imitation", "The sum's ones digit"): ("1", 0.98),
    ("sums-direct", "The multiplier, before the first digit"): ("2", 0.6),
}
# By model: the least mean weight of the head that looks at the token before.
TOKEN_BEFORE = {
    "stories": 0.95,
    "fill": 0.95,
    "positions-sinusoidal": 0.4,
    "positions-learned": 0.5,
    "positions-rotary": 0.55,
    "positions-alibi": 0.25,
}
# By title: what is among the three likeliest tokens where something is predicted.
EXPECTS = {
    "Singular or plural": " is",
    "Both sides tell": " door",
    "A verb agrees with the noun beside it": " were",
    "Two blanks": " time",
}
EXAMPLES = {
    (path.name, title): example
    for path in sorted(ZOO.glob("[!_.]*"))
    if path.is_dir()
    for title, example in read_card(path / "CARD.md").examples.items()
}
OPENED = {name: example for name, example in EXAMPLES.items() if isinstance(example, Example)}
PLACES = {
    "encoder": "encoder.layers.{}.self_attention.weights",
    "decoder": "decoder.layers.{}.self_attention.weights",
    "cross": "decoder.layers.{}.cross_attention.weights",
}


@cache
def checkpoint(model):
    return load(ZOO / model)


def weights_of(model, example):
    """Return the weights of the head that an example opens, and the tokens of rows and columns."""
    kind = checkpoint(model).config.kind
    where = example.where or ("encoder" if kind == "encoder" else "decoder")
    site = PLACES[where].format(example.layer)
    traced = trace(checkpoint(model), example.text, capture=[site])
    source = [token.text for token in traced.tokens]
    target = [token.text for token in traced.target_tokens or traced.tokens]
    rows = source if where == "encoder" else target
    return traced.tensors[site].data[example.head], rows, target if where == "decoder" else source


def test_every_claim_of_an_example_does_better_than_its_control():
    """The figures are those of the cards; tests/slow measures them again."""
    for model, title in OPENED:
        example = OPENED[model, title]
        if example.claim is None:
            assert example.head is None, f"{model}: '{title}' shows a head without a claim"
            continue
        measured = read_card(ZOO / model / "CARD.md").metrics["sample"]["examples"][title]
        assert measured["claim"] == example.claim
        assert holds(measured), f"{model}: '{title}' is no better than its control: {measured}"


def test_every_model_has_examples_that_open_somewhere():
    assert {model for model, _ in OPENED} == {model for model, _ in EXAMPLES}
    assert OPENED.keys() >= LOOKS_AT.keys()


@pytest.mark.parametrize("name", LOOKS_AT, ids=" ".join)
def test_the_chosen_token_looks_where_the_title_says(name):
    word, least = LOOKS_AT[name]
    weights, rows, columns = weights_of(name[0], OPENED[name])
    query = OPENED[name].source if OPENED[name].query is None else OPENED[name].query
    assert query is not None
    assert query < len(rows)
    row = weights[query]
    assert columns[int(np.argmax(row))] == word
    assert row.max() >= least


def test_the_phrase_that_repeats_opens_the_head_that_is_most_called_induction():
    example = OPENED["stories", "A phrase that repeats"]
    by_name = head_labels(
        trace(checkpoint("stories"), example.text, capture=["*.self_attention.weights"])
    )
    paths = [f"decoder.layers.{layer}.self_attention" for layer in range(4)]
    labels, scores = (
        np.stack([by_name[f"{path}.{name}"].data for path in paths])
        for name in ("label", "label_scores")
    )
    is_induction = labels == LABELS.index("induction")
    induction = np.where(is_induction, scores[..., SCORES.index("induction")], 0)
    best = np.unravel_index(induction.argmax(), induction.shape)
    assert is_induction.any()
    assert (example.layer, example.head) == best


@pytest.mark.parametrize("model", TOKEN_BEFORE)
def test_the_head_of_the_token_before_looks_at_it(model):
    weights, *_ = weights_of(model, OPENED[model, "The token before"])
    assert np.diag(weights, -1)[1:].mean() >= TOKEN_BEFORE[model]


def test_an_expert_takes_the_commas_and_stops_of_its_example():
    example = OPENED["stories", "An expert for commas and stops"]
    site = f"decoder.layers.{example.layer}.experts.expert_indices"
    traced = trace(checkpoint("stories"), example.text, capture=[site])
    marks = [
        index
        for index, token in enumerate(traced.tokens)
        if not token.is_special and not any(map(str.isalnum, token.text))
    ]
    chosen = traced.tensors[site].data
    taken = [sum(expert in chosen[index] for index in marks) for expert in range(8)]
    assert max(taken) >= len(marks) - 1 > 3


@pytest.mark.parametrize("name", [name for name in OPENED if name[1] in EXPECTS], ids=" ".join)
def test_what_is_expected_is_among_the_likeliest(name):
    traced = trace(checkpoint(name[0]), OPENED[name].text, capture=["logits"])
    texts = [token.text for token in traced.tokens]
    place = texts.index("[MASK]") if "[MASK]" in texts else -1
    likeliest = np.argsort(traced.tensors["logits"].data[place])[::-1][:3]
    vocabulary: Callable[[int], str] = checkpoint(name[0]).tokenizer.text_of
    assert EXPECTS[name[1]] in [vocabulary(int(token)) for token in likeliest]
