"""The rewards, their σ, and the gains of additions, against the model itself."""

from functools import cache

import pytest
import torch

from headlight.model.checkpoint.loading import load
from headlight.model.experiments import preference
from headlight.model.experiments.preference import ADDED, EXPERIMENT

TEXTS = {"first": "“Oh!” cried the king’s son.", "second": 'The king said, "Come in."'}


load_once = cache(load)


def reward_of(text):
    checkpoint = load_once("stories-reward")
    tokenizer = checkpoint.tokenizer
    ids = torch.tensor([[tokenizer.start_id, *tokenizer.encode_ids([text])[0]]])
    with torch.no_grad():
        return checkpoint.model(ids).reward[0, -1].item()


def test_a_text_is_preferred_by_the_sigmoid_of_its_lead():
    result = EXPERIMENT.result({**TEXTS, "lead": 2.0})
    first, second = (reward_of(text) for text in TEXTS.values())
    assert result["reward"].data == pytest.approx([first, second], abs=1e-3)
    lead = torch.tensor(first - second)
    assert result["preferred"].data == pytest.approx(torch.sigmoid(lead).item(), abs=1e-4)
    assert result["loss"].data == pytest.approx(-torch.sigmoid(lead).log().item(), rel=1e-3)
    assert result["chance_by_hand"].data == pytest.approx(0.880797, abs=1e-6)
    start = reward_of("")
    assert result["contribution"].data.sum(1) + start == pytest.approx([first, second], abs=1e-3)


def test_the_gains_are_those_of_each_text_alone_and_are_measured_over_64():
    result = EXPERIMENT.result(TEXTS)
    for row, text in enumerate(TEXTS.values()):
        expected = [reward_of(text + more) - reward_of(text) for more in ADDED.values()]
        assert result["gain"].data[row] == pytest.approx(expected, abs=1e-2)
    assert result["n_measured"].data == len(set(preference.answers())) == 64
    some = preference.answers()[::8]
    gains = [reward_of(text + ' "Oh!"' * 4) - reward_of(text) for text in some]
    assert result["measured_gain"].data[2] == pytest.approx(sum(gains) / len(gains), abs=1.0)
    assert result["measured_gain"].data.min() > 5  # each of the three is a shortcut
