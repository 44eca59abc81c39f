"""The vector that each head adds to the residual stream."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.head_outputs import head_norms, head_outputs, value_weighted

PATH = "decoder.layers.0.self_attention"
# Head 0 writes its context as it is; head 1 doubles the first feature and turns it into the second.
CONTEXT = [[[3.0, 4], [0, 1]], [[1.0, 5], [-2, 7]]]
PROJECTION = [[[1.0, 0], [0, 1]], [[0.0, 2], [0, 0]]]
BY_HAND = [[[3.0, 4], [0, 1]], [[0.0, 2], [0, -4]]]
# Head 0 writes its values as they are, of lengths 5 and 1; head 1 doubles the first feature and
# turns it into the second, of lengths 2 and 0.
WEIGHTS = [[1.0, 0], [0.25, 0.75]]
VALUES = [[[3.0, 4], [0, 1]], [[1.0, 0], [0, 2]]]
WEIGHTED = [[[5.0, 0], [1.25, 0.75]], [[2.0, 0], [0.5, 0]]]


@pytest.fixture
def parameters(make_parameters):
    return make_parameters({f"{PATH}.output_projection.weight": PROJECTION})


def test_two_heads_by_hand(make_trace, parameters):
    arrays = head_outputs(make_trace({f"{PATH}.context": CONTEXT}), parameters)
    assert list(arrays) == [PATH]
    assert arrays[PATH].axes == ("head", "query", "d_model")
    assert arrays[PATH].data.tolist() == BY_HAND


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_the_heads_and_the_bias_add_up_to_the_output(
    make_model, read, parameters_of, kind, has_bias
):
    model = make_model(kind=kind, n_kv_heads=2, attention_bias=has_bias)
    trace = read(model, [5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    arrays = head_outputs(trace, parameters_of(model))
    assert len(arrays) == {"decoder": 2, "encoder": 2, "encoder-decoder": 6}[kind]
    for path, written in arrays.items():
        bias = model.get_submodule(f"{path}.output_projection").bias
        added = 0 if bias is None else bias.detach().numpy()
        output = trace.tensors[f"{path}.output"].data
        np.testing.assert_allclose(written.data.sum(axis=0) + added, output, atol=1e-5)


@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_the_norms_are_the_lengths_of_what_the_heads_write(make_model, read, parameters_of, kind):
    model = make_model(kind=kind, n_kv_heads=2)
    trace = read(model, [5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    written = head_outputs(trace, parameters_of(model))
    arrays = head_norms(trace, parameters_of(model))
    assert set(arrays) == set(written)
    for path, norms in arrays.items():
        assert norms.axes == ("head", "query")
        lengths = np.linalg.norm(written[path].data, axis=-1)
        np.testing.assert_allclose(norms.data, lengths, rtol=1e-5)


# --- values by key --------------------------------------------------------------------------------


def test_two_value_weighted_heads_by_hand(make_trace, parameters):
    trace = make_trace({f"{PATH}.weights": [WEIGHTS, WEIGHTS], f"{PATH}.values": VALUES})
    arrays = value_weighted(trace, parameters)
    assert list(arrays) == [PATH]
    assert arrays[PATH].axes == ("head", "query", "key")
    assert arrays[PATH].data.tolist() == WEIGHTED


@pytest.mark.parametrize("heads", [None, (3, 0)])
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_value_weighted_norms_are_those_of_what_adds_up_to_the_output(
    make_model, read, parameters_of, kind, heads
):
    model = make_model(kind=kind, n_kv_heads=2, moe=None)
    inputs = ([5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    arrays = value_weighted(read(model, *inputs, heads=heads), parameters_of(model))
    assert len(arrays) == {"decoder": 2, "encoder": 2, "encoder-decoder": 6}[kind]
    everything = read(model, *inputs).tensors
    for path, norms in arrays.items():
        written = _written(everything, path, model)
        output = everything[f"{path}.output"].data
        np.testing.assert_allclose(written.sum(dim=(0, 2)), output, atol=1e-5)
        chosen = written if heads is None else written[list(heads)]
        np.testing.assert_allclose(norms.data, chosen.norm(dim=-1), atol=1e-5)


def _written(tensors, path, model):
    """Return what every key contributes to every query: (head, query, key, d_model)."""
    weights, values = (
        torch.tensor(tensors[f"{path}.{part}"].data) for part in ("weights", "values")
    )
    projection = model.get_submodule(f"{path}.output_projection").weight.detach()
    n_heads, d_head = values.shape[0], values.shape[-1]
    blocks = [projection[:, head * d_head : (head + 1) * d_head] for head in range(n_heads)]
    return torch.stack(
        [weights[head][..., None] * (values[head] @ blocks[head].T) for head in range(n_heads)]
    )


def test_missing_values_or_projections_are_an_error(make_trace, parameters):
    weights = {f"{PATH}.weights": [WEIGHTS, WEIGHTS]}
    with pytest.raises(KeyError, match=r"lacks .*self_attention\.values"):
        value_weighted(make_trace(weights), parameters)
    with pytest.raises(KeyError, match=r"lack .*output_projection\.weight"):
        value_weighted(make_trace(weights | {f"{PATH}.values": VALUES}), {})


@pytest.mark.parametrize("heads", [None, (2,)])
def test_a_projection_of_other_heads_is_an_error(make_trace, parameters, heads):
    trace = make_trace({f"{PATH}.weights": [WEIGHTS], f"{PATH}.values": [VALUES[0]]}, heads=heads)
    with pytest.raises(ValueError, match="has 2 heads, but the trace holds 1"):
        value_weighted(trace, parameters)
