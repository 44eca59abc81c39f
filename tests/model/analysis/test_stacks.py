"""Finding a stack's layers in a trace by their names."""

from collections.abc import Callable

import numpy as np
import pytest

from headlight.model.analysis.stacks import layers_of, require_all_layers, tokens_of
from headlight.model.trace import Trace

MakeTrace = Callable[..., Trace]


def test_layers_come_in_the_order_of_their_numbers(make_trace: MakeTrace) -> None:
    sites = [f"decoder.layers.{layer}.residual.after" for layer in (10, 2, 0, 1)]
    trace = make_trace({site: np.full((1, 1), float(n)) for n, site in enumerate(sites)})
    layers = layers_of(trace, "residual.after")["decoder"]
    assert list(layers) == [0, 1, 2, 10]
    assert [array.item() for array in layers.values()] == [2, 3, 1, 0]


def test_the_encoder_comes_before_the_decoder(make_trace: MakeTrace) -> None:
    part = "self_attention.weights"
    trace = make_trace({f"{stack}.layers.0.{part}": [[[1.0]]] for stack in ("decoder", "encoder")})
    assert list(layers_of(trace, part)) == ["encoder", "decoder"]


def test_only_the_very_part_is_found(make_trace: MakeTrace) -> None:
    sites = ("decoder.layers.0.cross_attention.weights", "decoder.layers.0.self_attention.weights")
    trace = make_trace({site: np.ones((1, n + 1, 1)) for n, site in enumerate(sites)})
    assert layers_of(trace, "cross_attention.weights")["decoder"][0].shape == (1, 1, 1)


def test_a_trace_without_the_part_is_refused(make_trace: MakeTrace) -> None:
    with pytest.raises(KeyError, match=r"holds no '\*\.layers\.\*\.residual\.after'; capture it"):
        layers_of(make_trace({"logits": [[0.0]]}), "residual.after")


def test_a_gap_between_layers_is_refused() -> None:
    require_all_layers({0: None, 1: None}, "decoder", "residual.after")
    with pytest.raises(ValueError, match=r"lacks decoder\.layers\.1\.residual\.after"):
        require_all_layers({0: None, 2: None}, "decoder", "residual.after")
    with pytest.raises(ValueError, match=r"lacks encoder\.layers\.0\.residual\.after"):
        require_all_layers({1: None}, "encoder", "residual.after")


def test_the_decoder_of_an_encoder_decoder_reads_the_target(make_trace: MakeTrace) -> None:
    both = make_trace({}, "<s> a", target="<s> b c")
    assert [token.text for token in tokens_of(both, "encoder")] == ["<s>", "a"]
    assert [token.text for token in tokens_of(both, "decoder")] == ["<s>", "b", "c"]
    assert [token.text for token in tokens_of(make_trace({}, "<s> a"), "decoder")] == ["<s>", "a"]
