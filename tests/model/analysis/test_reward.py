"""The reward of a text by token."""

import numpy as np
import pytest
import torch

from headlight.model import tracing
from headlight.model.analysis.reward import reward

TEXT = "The cat chased the mouse."


def test_contributions_sum_to_the_reward_of_the_text(make_checkpoint):
    rater = make_checkpoint(has_reward=True)
    trace = tracing.trace(rater, TEXT, capture=["reward"])
    arrays = reward(trace)
    ids = torch.tensor([[token.id for token in trace.tokens]])
    rewards = rater.model(ids).reward[0].detach().numpy()
    np.testing.assert_allclose(arrays["rewards"].data, rewards, atol=1e-5)
    np.testing.assert_allclose(arrays["contributions"].data.cumsum(), rewards, atol=1e-5)
    assert arrays["contributions"].data[0] == pytest.approx(rewards[0], abs=1e-5)
    assert arrays["rewards"].axes == arrays["contributions"].axes == ("query",)


def test_other_models_have_no_reward(make_checkpoint):
    language_model = make_checkpoint()
    assert "reward" not in [site.name for site in language_model.description.sites]
    trace = tracing.trace(language_model, TEXT, capture=["logits"])
    with pytest.raises(KeyError, match="reward"):
        reward(trace)


@pytest.mark.parametrize("kind", ["encoder", "encoder-decoder"])
def test_only_a_decoder_has_a_reward(make_config, kind):
    with pytest.raises(ValueError, match="has no reward; use a decoder"):
        make_config(kind=kind, has_reward=True)
