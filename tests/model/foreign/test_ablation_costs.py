"""The cost of the heads of foreign models, whose passes begin at the layer of a head."""

import pytest
import torch
from torch import nn

from headlight.model.profiles import ablation
from headlight.model.profiles.replay import can_replay, recorded, replayed
from headlight.model.tracing import tokenize

TEXTS = ["The cat sat on the mat.", "The dog’s “door” sat by the cat.", "Ein Hund läuft."]


def costs_of(model, monkeypatch=None):
    target = "Der Hund sitzt." if model.config.kind == "encoder-decoder" else None
    if monkeypatch:
        monkeypatch.setattr(ablation, "can_replay", lambda *_: False)
    facts = {facts.path: facts for facts in model.description.attentions}
    inputs = [tokenize(model, text, target) for text in TEXTS]
    return ablation.ablation_costs(model, inputs, facts, "")


def test_a_cost_is_that_of_whole_passes(model, monkeypatch):
    whole, costs = costs_of(model)
    expected_whole, expected = costs_of(model, monkeypatch)
    assert whole == pytest.approx(expected_whole, rel=1e-6)
    for path, heads in expected.items():
        assert costs[path] == pytest.approx(heads, abs=1e-6), path
    assert max(abs(cost) for heads in expected.values() for cost in heads) > 1e-3


class Adds(nn.Module):
    def __init__(self, memory=None):
        super().__init__()
        self.memory = memory

    def forward(self, x):
        if self.memory is not None:
            self.memory.append(1)
            return x + len(self.memory)
        return x + 1


def through(layers):
    x = torch.zeros(())
    for layer in layers:
        x = layer(x)
    return float(x)


def test_what_layers_returned_is_returned_again():
    layers = [Adds(), Adds(), Adds()]
    with recorded(layers) as returned:
        assert through(layers) == 3
    with replayed(layers[:2], [torch.tensor(5.0), torch.tensor(7.0)]):
        assert through(layers) == 8
    assert through(layers) == 3, "the layers are as they were"
    assert [float(each) for each in returned] == [1, 2, 3]
    assert can_replay(layers, lambda: through(layers))


def test_layers_that_share_a_module_or_hand_on_more_are_not_replayed():
    one = Adds()
    assert not can_replay([one, one], lambda: through([one, one]))
    memory = []
    layers = [Adds(memory), Adds(memory)]
    assert not can_replay(layers, lambda: through(layers))
