"""The vector that each head adds to the residual stream."""

import numpy as np
import pytest

from headlight.model.analysis.head_outputs import head_norms, head_outputs

PATH = "decoder.layers.0.self_attention"
# Head 0 writes its context as it is; head 1 doubles the first feature and turns it into the second.
CONTEXT = [[[3.0, 4], [0, 1]], [[1.0, 5], [-2, 7]]]
PROJECTION = [[[1.0, 0], [0, 1]], [[0.0, 2], [0, 0]]]
BY_HAND = [[[3.0, 4], [0, 1]], [[0.0, 2], [0, -4]]]


@pytest.fixture
def parameters(make_parameters):
    return make_parameters({f"{PATH}.output_projection.weight": PROJECTION})


def test_two_heads_by_hand(make_trace, parameters):
    found = head_outputs(make_trace({f"{PATH}.context": CONTEXT}), parameters)
    assert list(found) == [PATH]
    assert found[PATH].axes == ("head", "query", "d_model")
    assert found[PATH].data.tolist() == BY_HAND


def test_captured_heads_meet_their_own_projection(make_trace, parameters):
    trace = make_trace({f"{PATH}.context": [CONTEXT[1]]}, heads=(1,))
    assert head_outputs(trace, parameters)[PATH].data.tolist() == [BY_HAND[1]]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_the_heads_and_the_bias_add_up_to_the_output(
    make_model, read, parameters_of, kind, has_bias
):
    model = make_model(kind=kind, n_kv_heads=2, attention_bias=has_bias)
    trace = read(model, [5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    found = head_outputs(trace, parameters_of(model))
    assert len(found) == {"decoder": 2, "encoder": 2, "encoder-decoder": 6}[kind]
    for path, written in found.items():
        bias = model.get_submodule(f"{path}.output_projection").bias
        added = 0 if bias is None else bias.detach().numpy()
        output = trace.tensors[f"{path}.output"].data
        np.testing.assert_allclose(written.data.sum(axis=0) + added, output, atol=1e-5)


@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_the_norms_are_the_lengths_of_what_the_heads_write(make_model, read, parameters_of, kind):
    model = make_model(kind=kind, n_kv_heads=2)
    trace = read(model, [5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    written = head_outputs(trace, parameters_of(model))
    found = head_norms(trace, parameters_of(model))
    assert set(found) == set(written)
    for path, norms in found.items():
        assert norms.axes == ("head", "query")
        lengths = np.linalg.norm(written[path].data, axis=-1)
        np.testing.assert_allclose(norms.data, lengths, rtol=1e-5)


def test_the_norms_of_captured_heads_meet_their_own_projection(make_trace, make_parameters):
    path = "decoder.layers.0.self_attention"
    parameters = make_parameters(
        {f"{path}.output_projection.weight": [[[1.0, 0], [0, 1]], [[0.0, 2], [0, 0]]]}
    )
    trace = make_trace({f"{path}.context": [[[3.0, 4], [-2, 7]]]}, heads=(1,))
    assert head_norms(trace, parameters)[path].data.tolist() == [[6.0, 4.0]]
