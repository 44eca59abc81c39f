"""Finding the heads that do something: put one in by hand, and see it found."""

import pytest
import torch
from torch import Tensor

from headlight.model.evaluation.attention_heads import induction_head, previous_token_head

VOCAB = 300


def looking_at(offset, head, weight):
    """An edit that lets one head look `offset` tokens back, and the others nowhere near."""

    def edit(weights):
        n_tokens = weights.shape[-1]
        edited = torch.zeros_like(weights)
        edited[..., 0] = 1
        edited[:, head] = torch.zeros(n_tokens, n_tokens)
        edited[:, head, :, 0] = 1 - weight
        places = torch.arange(offset, n_tokens)
        edited[:, head, places, places - offset] += weight
        return edited

    return edit


@pytest.fixture
def rows():
    return torch.randint(2, VOCAB, (3, 20), generator=torch.Generator().manual_seed(0))


def test_the_previous_token_head_is_that_of_a_slow_loop(checkpoint, rows):
    start = torch.full((3, 1), checkpoint.tokenizer.start_id)
    with torch.inference_mode(), checkpoint.model.capture(["*.weights"]) as captured:
        checkpoint.model(torch.cat([start, rows], dim=1))
    means = {
        (layer, head): sum(
            float(weights[row, head, place, place - 1])
            for row in range(3)
            # Place 0 is the start token, and place 1 has nothing but it to look back at.
            for place in range(2, 21)
        )
        / (3 * 19)
        for layer, weights in enumerate(captured.values())
        for head in range(4)
    }
    best = max(means, key=means.__getitem__)
    score = previous_token_head(checkpoint, rows)
    assert (score.layer, score.head) == best
    assert score.weight == pytest.approx(means[best], rel=1e-4)


def test_a_head_that_looks_after_the_earlier_occurrence_is_found(checkpoint):
    site = "decoder.layers.0.self_attention.weights"
    # In the second round of 12 tokens the token after the earlier occurrence is 11 back.
    with checkpoint.model.edit(site, looking_at(11, head=3, weight=0.6)):
        score, _ = induction_head(checkpoint, n_rows=4, segment=12)
    assert (score.layer, score.head) == (0, 3)
    assert score.weight == pytest.approx(0.6)


@pytest.mark.parametrize("offset", [10, 12])
def test_a_head_that_looks_beside_it_is_not_an_induction_head(checkpoint, offset):
    sites = "*.self_attention.weights"
    with checkpoint.model.edit(sites, looking_at(offset, head=3, weight=1.0)):
        score, _ = induction_head(checkpoint, n_rows=4, segment=12)
    assert score.weight < 0.1


def test_a_model_that_copies_copies_everything(checkpoint):
    seen: list[Tensor] = []

    def note(tokens):
        seen.append(tokens)
        return tokens

    def copy(logits):
        """Predict what followed the token's earlier occurrence, 12 tokens back."""
        vectors = checkpoint.model.decoder.embedding.vectors.weight * 32**0.5
        ids = torch.cdist(seen[-1], vectors.expand(len(logits), -1, -1)).argmin(dim=-1)
        edited = torch.zeros_like(logits)
        places = torch.arange(12, logits.shape[1])
        edited[:, places] = torch.eye(VOCAB)[ids[:, places - 11]]
        return edited

    model = checkpoint.model
    with model.edit("decoder.embedding.tokens", note), model.edit("logits", copy):
        _, accuracy = induction_head(checkpoint, n_rows=4, segment=12)
    assert accuracy == 1
    _, accuracy = induction_head(checkpoint, n_rows=4, segment=12)
    assert accuracy < 0.2


def test_the_rows_are_a_random_segment_twice(checkpoint):
    seen: list[Tensor] = []
    read = checkpoint.model.forward

    def note(ids):
        seen.append(ids)
        return read(ids)

    checkpoint.model.forward = note  # type: ignore[method-assign]
    try:
        induction_head(checkpoint, n_rows=6, segment=15, seed=4)
        induction_head(checkpoint, n_rows=6, segment=15, seed=4)
        induction_head(checkpoint, n_rows=6, segment=15, seed=5)
    finally:
        del checkpoint.model.forward
    first, again, other = seen
    assert first.shape == (6, 31)
    assert (first[:, 0] == checkpoint.tokenizer.start_id).all()
    assert first[:, 1:16].equal(first[:, 16:])
    special = torch.tensor([checkpoint.tokenizer.start_id, checkpoint.tokenizer.end_id])
    assert not torch.isin(first[:, 1:], special).any()
    assert first[:, 1:16].unique().numel() > 60
    assert first.equal(again)
    assert not first.equal(other)
