"""The layers and attentions of a trace are found by the names of its sites."""

import numpy as np
import pytest

from headlight.model.analysis._layers import (
    attentions_of,
    layers_of,
)


def test_layers_come_in_the_order_of_their_numbers(make_trace):
    sites = [f"decoder.layers.{layer}.residual.after" for layer in (10, 2, 0, 1)]
    trace = make_trace({site: np.full((1, 1), float(n)) for n, site in enumerate(sites)})
    layers = layers_of(trace, "residual.after")["decoder"]
    assert list(layers) == [0, 1, 2, 10]
    assert [array.item() for array in layers.values()] == [2, 3, 1, 0]


@pytest.fixture
def both(make_trace):
    """One layer of an encoder–decoder: three source tokens and two target tokens."""
    return make_trace(
        {
            "decoder.layers.0.cross_attention.weights": np.ones((1, 2, 3)),
            "decoder.layers.0.self_attention.weights": np.ones((1, 2, 2)),
            "encoder.layers.0.self_attention.weights": np.ones((1, 3, 3)),
        },
        "<s> a </s>",
        target="<s> b",
    )


def test_the_encoder_comes_first_and_self_attention_before_cross(both):
    found = attentions_of(both)
    assert [attention.path for attention in found] == [
        "encoder.layers.0.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
    ]
    assert attentions_of(both, "cross_attention")[0].path == found[2].path
    assert {attention.weights.dtype for attention in found} == {np.dtype(np.float64)}


def test_only_a_decoders_self_attention_is_causal(both):
    encoder, decoder, cross = attentions_of(both)
    assert encoder.visible.all()
    assert decoder.visible.tolist() == [[True, False], [True, True]]
    assert cross.visible.shape == (2, 3)
    assert cross.visible.all()


def test_rows_and_columns_have_the_tokens_of_their_texts(both):
    texts = [
        [[token.text for token in side] for side in attention.tokens(both)]
        for attention in attentions_of(both)
    ]
    source, target = ["<s>", "a", "</s>"], ["<s>", "b"]
    assert texts == [[source, source], [target, target], [target, source]]


def test_cross_attention_without_a_target_is_an_error(make_trace):
    trace = make_trace({"decoder.layers.0.cross_attention.weights": [[[1.0]]]}, "a")
    with pytest.raises(ValueError, match="the trace has no target"):
        attentions_of(trace)[0].tokens(trace)


def test_another_number_of_tokens_is_an_error(make_trace):
    trace = make_trace({"decoder.layers.0.self_attention.weights": [[[1.0]]]}, "<s> a")
    with pytest.raises(ValueError, match=r"2 query tokens and 2 key tokens"):
        attentions_of(trace)[0].tokens(trace)
