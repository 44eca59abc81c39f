"""The most likely next tokens after every token."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.logit_lens import last_prediction
from headlight.model.analysis.next_token import next_token
from headlight.model.generation.sampling import Sampling, next_token_distribution
from headlight.model.tracing import trace


def test_it_is_pytorchs_softmax_and_topk(checkpoint):
    traced = trace(checkpoint, "The cat chased the mouse.", capture=["logits"])
    arrays = next_token(traced)
    logits = torch.tensor(traced.tensors["logits"].data, dtype=torch.float64)
    expected = logits.softmax(dim=-1).topk(20)
    assert arrays["ids"].data.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(arrays["probabilities"].data, expected.values, rtol=1e-6)
    assert arrays["ids"].data.dtype == np.int32
    assert arrays["probabilities"].data.dtype == np.float32


def test_the_token_that_follows_has_its_own_probability(checkpoint):
    traced = trace(checkpoint, "The cat chased the mouse.", capture=["logits", "*.residual.after"])
    whole = next_token(traced, top=10**6)
    probabilities = next_token(traced, top=1, following=True)["following"].data
    after = [token.id for token in traced.tokens][1:]
    rows = zip(whole["ids"].data[:-1].tolist(), after, strict=True)
    ranks = [ids.index(token) for ids, token in rows]
    expected = whole["probabilities"].data[np.arange(len(after)), ranks]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-6)  # of an array of another shape
    last = last_prediction(traced, checkpoint.exits, top=1, following=True)["following"].data
    np.testing.assert_allclose(last, expected, rtol=1e-4)


def test_sampled_is_the_distribution_that_generation_samples_from(checkpoint):
    traced = trace(checkpoint, "The cat chased the mouse.", capture=["logits"])
    sampling = Sampling(temperature=0.7, top_k=5, top_p=0.8)
    arrays = next_token(traced, top=10**6, sampling=sampling)
    logits = torch.from_numpy(traced["logits"][-1])
    expected = next_token_distribution(logits, sampling)[arrays["ids"].data[-1].tolist()]
    np.testing.assert_allclose(arrays["sampled"].data[-1], expected, atol=1e-6)
    np.testing.assert_allclose(arrays["sampled"].data.sum(axis=1), 1, atol=1e-5)
    assert (arrays["sampled"].data[:, 5:] == 0).all()
    assert "sampled" not in next_token(traced)


def test_the_top_none_are_an_error(checkpoint):
    with pytest.raises(ValueError, match=r"top \(0\) must be at least 1"):
        next_token(trace(checkpoint, "The cat", capture=["logits"]), top=0)
