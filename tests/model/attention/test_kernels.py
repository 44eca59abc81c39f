"""The kernels agree with hand-computed numbers, with PyTorch, and with each other."""

import pytest
import torch
import torch.nn.functional as F

from headlight.model.attention import points as points_module
from headlight.model.attention.kernels import (
    Kernels,
    attend,
    attention_mask,
    attention_scores,
    attention_weights,
    causal_mask,
    fused_attention,
)
from headlight.model.attention.layer import MultiHeadAttention
from headlight.model.attention.scores import ScoreTerms
from headlight.model.positions import alibi_bias, alibi_slopes

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
    """Return queries, keys and values of two rows, three heads, seven tokens, width 8."""
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


# --- the choice of a kernel -----------------------------------------------------------------------

CAUSAL = ScoreTerms(scale=8**-0.5, is_causal=True)


@pytest.fixture
def part(make_config, watch):
    """Return an attention of four heads, of which any point can be captured or edited."""
    torch.manual_seed(0)
    return watch(MultiHeadAttention(make_config(positional="alibi")))


@pytest.fixture
def tensors():
    return torch.randn(3, 2, 4, 9, 8, generator=torch.Generator().manual_seed(2))


@pytest.fixture
def chosen(part, tensors):
    """Attend while some sites are captured, and return the kernel that was chosen."""

    def choose(*sites, terms=CAUSAL, n_queries=9, heads=None):
        names = []

        def note(name):
            return lambda queries, *_: names.append(name) or queries

        queries, keys, values = tensors
        with part.capture_sites([f"part.{site}" for site in sites], heads):
            context = attend(
                queries[..., -n_queries:, :],
                keys,
                values,
                terms,
                part.part.points,
                Kernels(note("blocks"), note("whole")),
            )
        assert context.shape == (2, 4, n_queries, 8)
        return names or ["fused"]

    return choose


@torch.inference_mode()
def test_the_cheapest_kernel_is_chosen_that_shows_what_is_asked_for(chosen):
    assert chosen() == ["fused"]
    assert chosen("queries", "context") == ["fused"]
    assert chosen("entropy") == ["blocks"]
    assert chosen("rows", "mean_map") == ["blocks"]
    assert chosen("weights") == ["whole"]
    assert chosen("scores", heads=(1,)) == ["whole"]
    assert chosen("weights", "entropy") == ["whole"]
    assert chosen("bias", "entropy") == ["whole"]


@torch.inference_mode()
def test_a_step_of_decoding_is_never_read_in_blocks(chosen):
    assert chosen("entropy", n_queries=1) == ["whole"]
    assert chosen("entropy", n_queries=1, terms=ScoreTerms(scale=8**-0.5)) == ["blocks"]


def test_a_pass_with_gradients_is_never_read_in_blocks(chosen):
    assert chosen("entropy") == ["whole"]


@torch.inference_mode()
def test_a_matrix_that_is_too_large_is_never_made(chosen, monkeypatch):
    is_token = torch.arange(9) < torch.tensor([9, 4])[:, None]
    biased = ScoreTerms(scale=8**-0.5, is_causal=True, slopes=alibi_slopes(4))
    padded = ScoreTerms(scale=8**-0.5, is_causal=True, is_token=is_token)
    assert chosen(terms=biased) == chosen(terms=padded) == ["fused"]
    monkeypatch.setattr(points_module, "WHOLE_ELEMENTS", 80)
    assert chosen(terms=biased) == chosen(terms=padded) == ["blocks"]
    assert chosen() == ["fused"]  # the kernel has the causal mask built in


@torch.inference_mode()
@pytest.mark.parametrize("n_queries", [9, 4])
def test_every_kernel_gives_the_same_context(part, tensors, n_queries):
    queries, keys, values = tensors
    points, results = part.part.points, []
    terms = ScoreTerms(scale=8**-0.5, is_causal=True, slopes=alibi_slopes(4))
    for sites in ([], ["part.entropy"], ["part.weights"]):
        with part.capture_sites(sites):
            results.append(attend(queries[..., -n_queries:, :], keys, values, terms, points))
    for context in results[1:]:
        torch.testing.assert_close(context, results[0], rtol=0, atol=1e-6)


@torch.inference_mode()
def test_groups_of_heads_may_share_keys_in_the_fused_kernel(tensors):
    queries, keys, values = tensors
    keys, values = keys[:, :2], values[:, :2]
    repeated = (each.repeat_interleave(2, dim=1) for each in (keys, values))
    mask = causal_mask(9, 9)
    context = fused_attention(queries, keys, values, mask, None)
    expected = fused_attention(queries, *repeated, mask, None)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-6)
