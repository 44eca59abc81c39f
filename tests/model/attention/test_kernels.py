"""The kernels agree with hand-computed numbers, with PyTorch, and with each other."""

import pytest
import torch
import torch.nn.functional as F

from headlight.model.attention.kernels import (
    attention_mask,
    attention_scores,
    attention_weights,
    causal_mask,
    fused_attention,
)
from headlight.model.positions import alibi_bias

# --- why the scores are divided by √d_k -----------------------------------------------------------


@pytest.mark.parametrize("d_head", [4, 64, 1024])
def test_scores_have_variance_1_whatever_the_width(d_head):
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(300, d_head, generator=generator)
    keys = torch.randn(300, d_head, generator=generator)
    assert attention_scores(queries, keys).var().item() == pytest.approx(1, rel=0.1)


# --- scores, weights and the mask -----------------------------------------------------------------


@pytest.fixture
def qkv():
    """Queries, keys and values of two rows, three heads, seven tokens, width 8."""
    queries, keys, values = torch.randn(3, 2, 3, 7, 8, generator=torch.Generator().manual_seed(0))
    return queries, keys, values


def test_attention_is_pytorchs(qkv):
    queries, keys, values = qkv
    for mask in (None, causal_mask(7, 7), torch.eye(7, dtype=torch.bool)):
        context = attention_weights(attention_scores(queries, keys, mask)) @ values
        expected = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        torch.testing.assert_close(context, expected, rtol=0, atol=1e-6)


def test_a_query_may_look_at_itself_and_at_what_came_before():
    mask = causal_mask(3, 5)
    assert mask.tolist() == [
        [True, True, True, False, False],
        [True, True, True, True, False],
        [True, True, True, True, True],
    ]


@pytest.mark.parametrize("is_biased", [False, True])
@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("n_queries", [1, 3, 7])
def test_fused_attention_is_attention_step_by_step(qkv, n_queries, is_causal, is_padded, is_biased):
    queries, keys, values = qkv
    queries = queries[..., -n_queries:, :]
    is_token = IS_TOKEN if is_padded else None
    mask = attention_mask(n_queries, 7, is_causal=is_causal, is_token=is_token)
    bias = alibi_bias(3, n_queries, 7) if is_biased else None
    expected = attention_weights(attention_scores(queries, keys, mask, bias)) @ values
    torch.testing.assert_close(
        fused_attention(queries, keys, values, mask, bias), expected, rtol=0, atol=1e-6
    )


IS_TOKEN = torch.arange(7) < torch.tensor([7, 2])[:, None]


def test_a_mask_hides_padding_and_if_causal_later_tokens():
    assert attention_mask(7, 7, is_causal=False) is None
    ahead = attention_mask(3, 7, is_causal=True)
    assert ahead is not None
    assert ahead.equal(causal_mask(3, 7))
    padding = attention_mask(3, 7, is_causal=False, is_token=IS_TOKEN)
    assert padding is not None
    assert padding.equal(IS_TOKEN[:, None, None].expand(2, 1, 3, 7))
    both = attention_mask(3, 7, is_causal=True, is_token=IS_TOKEN)
    assert both is not None
    assert both.equal(padding & ahead)
