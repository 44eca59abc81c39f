"""Finding attentions in a trace, and who may look at whom."""

from collections.abc import Callable

import numpy as np
import pytest

from headlight.model.analysis.attentions import attentions_of
from headlight.model.trace import Trace

MakeTrace = Callable[..., Trace]


@pytest.fixture
def both(make_trace: MakeTrace) -> Trace:
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


def test_the_encoder_comes_first_and_self_attention_before_cross(both: Trace) -> None:
    assert [attention.path for attention in attentions_of(both)] == [
        "encoder.layers.0.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
    ]


def test_only_a_decoders_self_attention_is_causal(both: Trace) -> None:
    encoder, decoder, cross = attentions_of(both)
    assert encoder.visible.all()
    assert decoder.visible.tolist() == [[True, False], [True, True]]
    assert cross.visible.shape == (2, 3)
    assert cross.visible.all()


def test_rows_and_columns_have_the_tokens_of_their_texts(both: Trace) -> None:
    texts = [
        [[token.text for token in side] for side in attention.tokens(both)]
        for attention in attentions_of(both)
    ]
    source, target = ["<s>", "a", "</s>"], ["<s>", "b"]
    assert texts == [[source, source], [target, target], [target, source]]


def test_one_kind_can_be_asked_for(both: Trace) -> None:
    (cross,) = attentions_of(both, "cross_attention")
    assert cross.is_cross


def test_a_trace_without_weights_is_refused(make_trace: MakeTrace) -> None:
    with pytest.raises(KeyError, match=r"'\*\.self_attention.weights' or '\*\.cross_attention"):
        attentions_of(make_trace({}))
    trace = make_trace({"decoder.layers.0.self_attention.weights": [[[1.0]]]})
    with pytest.raises(KeyError, match=r"no '\*\.cross_attention\.weights'; capture it"):
        attentions_of(trace, "cross_attention")


def test_cross_attention_without_a_target_is_refused(make_trace: MakeTrace) -> None:
    trace = make_trace({"decoder.layers.0.cross_attention.weights": [[[1.0]]]}, "a")
    with pytest.raises(ValueError, match="the trace has no target"):
        attentions_of(trace)[0].tokens(trace)


def test_another_number_of_tokens_is_refused(make_trace: MakeTrace) -> None:
    trace = make_trace({"decoder.layers.0.self_attention.weights": [[[1.0]]]}, "<s> a")
    with pytest.raises(ValueError, match=r"2 tokens that attend and 2 that are attended to"):
        attentions_of(trace)[0].tokens(trace)


def test_all_of_the_encoder_comes_first_and_weights_are_float64(make_trace: MakeTrace) -> None:
    sites = [
        f"{stack}.layers.{n}.self_attention" for stack in ("encoder", "decoder") for n in (0, 1)
    ]
    found = attentions_of(make_trace({f"{site}.weights": [[[1.0]]] for site in sites[::-1]}))
    assert [attention.path for attention in found] == sites
    assert {attention.weights.dtype for attention in found} == {np.dtype(np.float64)}
