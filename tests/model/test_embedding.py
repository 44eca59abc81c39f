"""Token embeddings, scaled, plus positions; and the same matrix back to logits."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from model.config import TransformerConfig
from model.embedding import Embedding
from model.hooks import HookedModule
from model.positions import sinusoidal


@pytest.fixture
def embedding(make_config: Callable[..., TransformerConfig]) -> Embedding:
    torch.manual_seed(0)
    return Embedding(make_config())


def test_the_output_is_scaled_tokens_plus_positions(
    embedding: Embedding, watch: Callable[[nn.Module], HookedModule], ids: Tensor
) -> None:
    with watch(embedding).capture(["part.*"]) as captured:
        output = embedding(ids)
    tokens, positional = captured["part.tokens"], captured["part.positional"]
    torch.testing.assert_close(tokens, embedding.vectors.weight[ids] * 32**0.5)
    torch.testing.assert_close(positional, sinusoidal(11, 32))
    torch.testing.assert_close(output, tokens + positional)
    assert captured["part.output"] is output


def test_positions_count_from_the_start_given(
    embedding: Embedding, watch: Callable[[nn.Module], HookedModule], ids: Tensor
) -> None:
    with watch(embedding).capture(["part.positional"]) as captured:
        embedding(ids, start=6)
    torch.testing.assert_close(captured["part.positional"], sinusoidal(17, 32)[6:])


def test_positions_beyond_the_longest_text_follow_the_same_formula(
    embedding: Embedding, watch: Callable[[nn.Module], HookedModule], ids: Tensor
) -> None:
    with watch(embedding).capture(["part.positional"]) as captured:
        embedding(ids, start=45)
    torch.testing.assert_close(captured["part.positional"], sinusoidal(56, 32)[45:])


def test_logits_are_products_with_the_embedding_matrix(embedding: Embedding) -> None:
    x = torch.randn(2, 3, 32)
    expected = torch.einsum("bqd,vd->bqv", x, embedding.vectors.weight)
    torch.testing.assert_close(embedding.unembed(x), expected)


def test_there_is_one_matrix_and_no_saved_encoding(embedding: Embedding) -> None:
    assert list(embedding.state_dict()) == ["vectors.weight"]
