"""Cross-entropy and perplexity of a text, against PyTorch's loss of the model's own logits."""

import numpy as np
import pytest
import torch

from headlight.model.checkpoint.loading import load
from headlight.model.experiments.surprise import EXPERIMENT

TEXT = "The red fox ran home. The red fox ran home."


@pytest.mark.parametrize("place", [0, 1])
def test_the_costs_are_the_cross_entropy_of_pytorch(place):
    result = EXPERIMENT.result({"text": TEXT})
    checkpoint = load(result["reader"].data[place])
    tokenizer = checkpoint.tokenizer
    ids = torch.tensor([[tokenizer.start_id, *tokenizer.encode_ids([TEXT])[0]]])
    with torch.no_grad():
        logits = checkpoint.model(ids).logits[0, :-1]
    losses = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")
    np.testing.assert_allclose(result["nats"].data[place], losses, rtol=1e-4, atol=1e-4)
    assert result["cross_entropy"].data[place] == pytest.approx(losses.mean().item(), rel=1e-4)
    assert result["perplexity"].data[place] == pytest.approx(losses.mean().exp().item(), rel=1e-3)
    assert result["perplexity_so_far"].data[place, 1] == pytest.approx(
        losses[:2].mean().exp().item(), rel=1e-3
    )
    assert result["guess"].data[place, 0] == tokenizer.text_of(int(logits[0].argmax()))


def test_a_text_that_returns_costs_less_the_second_time():
    result = EXPERIMENT.result({"text": TEXT})
    tokens = "".join(result["token"].data.tolist())
    assert tokens.strip() == TEXT
    half = len(result["token"].data) // 2
    assert result["nats"].data[0, half + 1 :].mean() < 0.5 * result["nats"].data[0, :half].mean()
