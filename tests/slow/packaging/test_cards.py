"""The figures on the shipped models' cards are what their weights give, on anybody's machine.

`headlight evaluate NAME` measures a model on texts of the project's own and writes the figures to
its card under ``sample``; here they are measured again. The other figures need text that does not
come with the project.
"""

import pytest
import torch

from headlight.lab.evaluation.figures import recipe_of, sample_figures
from headlight.lab.evaluation.moe import count_taken
from headlight.model.checkpoint.card import flatten, read_card
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.corpus import TokenStream, read_documents
from headlight.model.profiles.folder import SAMPLE

MODELS = sorted(path.name for path in ZOO.glob("[!_.]*") if path.is_dir())
# Processors add up in different orders, which moves a logit by some 1e-6: a mean stays within the
# fourth digit of a card, but where two answers are nearly equal another one may win, and one of
# five hundred is 2e-3.
TOLERANCE = 2e-3
# BLEU is a rate in hundredths.
TOLERANCES = {"bleu.text": 100 * TOLERANCE}


@pytest.mark.parametrize("name", MODELS)
def test_a_card_tells_what_the_weights_give(name):
    told = read_card(ZOO / name / "CARD.md").metrics.get("sample")
    assert told, f"the card has no sample figures; run: headlight evaluate {name}"
    told, measured = dict(flatten(told)), dict(flatten(sample_figures(load(ZOO / name))))
    assert told.keys() == measured.keys()
    for figure, value in told.items():
        is_float = isinstance(value, float) or isinstance(measured[figure], float)
        near = pytest.approx(value, abs=TOLERANCES.get(figure, TOLERANCE)) if is_float else value
        assert measured[figure] == near, figure


# `headlight evaluate` counts the tokens of each expert only for models of the recipe stories.
ROUTED = [
    name
    for name in MODELS
    if (checkpoint := load(ZOO / name)).config.moe and recipe_of(checkpoint) == "stories"
]


@pytest.mark.parametrize("name", ROUTED)
def test_a_card_says_of_every_expert_what_it_takes(name):
    tokens = read_card(ZOO / name / "CARD.md").expert_tokens
    checkpoint = load(ZOO / name)
    moe = checkpoint.config.moe
    command = read_card(ZOO / name / "CARD.md").training["evaluation"]
    assert all(f"--corpus {file}" in command for file in tokens["text"])
    assert list(tokens["layers"]) == [f"decoder.layers.{layer}" for layer in moe.layers]
    for experts in tokens["layers"].values():
        assert len(experts) == moe.n_experts
        assert sum(expert["share"] for expert in experts) == pytest.approx(moe.top_k, abs=1e-3)
        assert all(0 < len(expert["tokens"]) <= 12 for expert in experts)


@pytest.mark.parametrize("name", ROUTED)
def test_the_experts_have_the_habits_that_a_card_tells_in_any_text(name):
    """The training text does not come with the project; what the experts took there shows here."""
    checkpoint = load(ZOO / name)
    tokenizer = checkpoint.tokenizer
    ids = {tokenizer.text_of(token): token for token in range(tokenizer.vocab_size)}
    stream = TokenStream.encode(read_documents([SAMPLE]), tokenizer).ids
    length = checkpoint.config.max_tokens - 1
    taken = count_taken(checkpoint, stream[: len(stream) // length * length].view(-1, length))
    told = read_card(ZOO / name / "CARD.md").expert_tokens["layers"]
    kept = seen = expected = 0.0
    for layer, experts in told.items():
        for number, expert in enumerate(experts):
            listed = [ids[token["text"]] for token in expert["tokens"]]
            shares = torch.tensor([token["share"] for token in expert["tokens"]])
            kept += int(taken[layer].tokens[listed, number].sum())
            seen += int(taken[layer].all_tokens[listed].sum())
            expected += float((taken[layer].all_tokens[listed] * shares).sum())
    assert seen > 500
    assert kept / seen == pytest.approx(expected / seen, abs=0.05)
