"""What each head writes to the residual stream."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from headlight.model.analysis.head_outputs import head_outputs
from headlight.model.trace import NamedArray, Trace
from headlight.model.transformer import Transformer

MakeTrace = Callable[..., Trace]
MakeParameters = Callable[[Mapping[str, object]], dict[str, NamedArray]]

PATH = "decoder.layers.0.self_attention"
# Head 0 writes its context as it is; head 1 doubles the first feature and turns it into the second.
CONTEXT = [[[3.0, 4], [0, 1]], [[1.0, 5], [-2, 7]]]
PROJECTION = [[[1.0, 0], [0, 1]], [[0.0, 2], [0, 0]]]
BY_HAND = [[[3.0, 4], [0, 1]], [[0.0, 2], [0, -4]]]


@pytest.fixture
def parameters(make_parameters: MakeParameters) -> dict[str, NamedArray]:
    return make_parameters({f"{PATH}.output_projection.weight": PROJECTION})


def test_two_heads_by_hand(make_trace: MakeTrace, parameters: dict[str, NamedArray]) -> None:
    found = head_outputs(make_trace({f"{PATH}.context": CONTEXT}), parameters)
    assert list(found) == [PATH]
    assert found[PATH].axes == ("head", "query", "d_model")
    assert found[PATH].data.tolist() == BY_HAND


def test_captured_heads_meet_their_own_projection(
    make_trace: MakeTrace, parameters: dict[str, NamedArray]
) -> None:
    trace = make_trace({f"{PATH}.context": [CONTEXT[1]]}, heads=(1,))
    assert head_outputs(trace, parameters)[PATH].data.tolist() == [BY_HAND[1]]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_the_heads_and_the_bias_add_up_to_the_output(
    make_model: Callable[..., Transformer],
    read: Callable[..., Trace],
    parameters_of: Callable[[Transformer], dict[str, NamedArray]],
    kind: str,
    has_bias: bool,
) -> None:
    model = make_model(kind=kind, n_kv_heads=2, attention_bias=has_bias)
    trace = read(model, [5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    found = head_outputs(trace, parameters_of(model))
    assert len(found) == {"decoder": 2, "encoder": 2, "encoder-decoder": 6}[kind]
    for path, written in found.items():
        bias = model.get_submodule(f"{path}.output_projection").bias
        added = 0 if bias is None else bias.detach().numpy()
        output = trace.tensors[f"{path}.output"].data
        np.testing.assert_allclose(written.data.sum(axis=0) + added, output, atol=1e-5)


def test_a_trace_without_contexts_is_refused(
    make_trace: MakeTrace, parameters: dict[str, NamedArray]
) -> None:
    with pytest.raises(KeyError, match=r"holds no '\*_attention\.context'; capture it"):
        head_outputs(make_trace({}), parameters)


def test_a_missing_projection_is_refused(make_trace: MakeTrace) -> None:
    with pytest.raises(KeyError, match=r"output_projection\.weight is missing"):
        head_outputs(make_trace({f"{PATH}.context": CONTEXT}), {})


def test_a_projection_of_other_heads_is_refused(
    make_trace: MakeTrace, parameters: dict[str, NamedArray]
) -> None:
    trace = make_trace({f"{PATH}.context": [CONTEXT[0]]}, heads=(2,))
    with pytest.raises(ValueError, match="has 2 heads, but the trace holds those of 1"):
        head_outputs(trace, parameters)
