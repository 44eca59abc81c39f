"""The embedding is √d·E[id] + PE, and the unembedding its transpose."""

import pytest
import torch

from headlight.model.embedding import Embedding
from headlight.model.positions import sinusoidal


@pytest.fixture
def embedding(make_config):
    torch.manual_seed(0)
    return Embedding(make_config())


def test_the_output_is_scaled_tokens_plus_positions(embedding, watch, ids):
    with watch(embedding).capture(["part.*"]) as captured:
        output = embedding(ids)
    tokens, positional = captured["part.tokens"], captured["part.positional"]
    torch.testing.assert_close(tokens, embedding.vectors.weight[ids] * 32**0.5)
    torch.testing.assert_close(positional, sinusoidal(11, 32))
    torch.testing.assert_close(output, tokens + positional)
    assert captured["part.output"] is output


def test_positions_beyond_the_longest_text_follow_the_same_formula(embedding, watch, ids):
    with watch(embedding).capture(["part.positional"]) as captured:
        embedding(ids, start=45)
    torch.testing.assert_close(captured["part.positional"], sinusoidal(56, 32)[45:])


def test_logits_are_products_with_the_embedding_matrix(embedding):
    x = torch.randn(2, 3, 32)
    expected = torch.einsum("bqd,vd->bqv", x, embedding.vectors.weight)
    torch.testing.assert_close(embedding.unembed(x), expected)


# --- other schemes --------------------------------------------------------------------------------


@pytest.fixture
def make_embedding(make_config, randomise):
    def make(**changes):
        torch.manual_seed(0)
        embedding = Embedding(make_config(**changes))
        randomise(embedding)
        return embedding

    return make


def test_learned_positions_are_rows_of_their_own_matrix(make_embedding, watch, ids):
    embedding = make_embedding(positional="learned")
    assert embedding.positions.weight.shape == (48, 32)
    with watch(embedding).capture(["part.*"]) as captured:
        output = embedding(ids, start=37)
    assert captured["part.positional"].equal(embedding.positions.weight[37:])
    torch.testing.assert_close(output, captured["part.tokens"] + captured["part.positional"])


@pytest.mark.parametrize("positional", ["rotary", "alibi", "none"])
def test_schemes_inside_attention_add_nothing(make_embedding, watch, ids, positional):
    embedding = make_embedding(positional=positional)
    with watch(embedding).capture(["part.*"]) as captured:
        embedding(ids, start=400)
    assert list(captured) == ["part.tokens", "part.output"]
    assert captured["part.output"].equal(captured["part.tokens"])


def test_tokens_are_scaled_only_where_the_config_says_so(make_embedding, watch, ids):
    embedding = make_embedding(scales_embedding=False)
    with watch(embedding).capture(["part.tokens"]) as captured:
        embedding(ids)
    assert captured["part.tokens"].equal(embedding.vectors.weight[ids])


def test_an_embedding_norm_acts_on_the_sum(make_embedding, watch, ids):
    embedding = make_embedding(has_embedding_norm=True)
    with watch(embedding).capture(["part.*"]) as captured:
        output = embedding(ids)
    total = captured["part.tokens"] + captured["part.positional"]
    expected = torch.nn.functional.layer_norm(
        total, [32], embedding.norm.scale, embedding.norm.shift
    )
    torch.testing.assert_close(output, expected)
