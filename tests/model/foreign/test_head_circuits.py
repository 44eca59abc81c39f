"""The QK and OV circuits of foreign models, compared with what passes of their first layer show."""

import numpy as np
import pytest

from headlight.analyses.attention import HeadCircuits
from headlight.model.analysis.head_circuits import head_circuits, token_embeddings
from headlight.model.foreign.model import serve_module
from headlight.model.trace import Token
from headlight.model.tracing import ModelInput, PassSpec, run_batch
from tests.tiny_checkpoints import make_model
from tests.trained_traits import trained_like

IDS = [5, 9, 201, 31, 7, 9]
TOKEN = 17


def circuits_of(model, top):
    tokens = tuple(
        Token(id=token, text=str(token), start=at, end=at + 1, word=at, is_special=False)
        for at, token in enumerate(IDS)
    )
    ends = ("residual.after", ".weights", ".scores", ".values", ".gain")
    sites = tuple(site for site in model.description.site_names if site.endswith(ends))
    (trace,) = run_batch(model, PassSpec(sites), [ModelInput("", tokens)])
    embeddings = token_embeddings(model.weights(), model.config)
    graph = model.graph_weights()
    return trace, head_circuits(trace, graph, embeddings, model.linear_exit, model.config, top)


def of_token(result, name, unit, token):
    """(head, position): the value of one token of the vocabulary."""
    ids, values = (result.arrays[f"{name}_{end}"].data for end in ("ids", unit))
    return np.take_along_axis(values, np.argmax(ids == token, axis=-1)[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize("make", [make_model, trained_like])
@pytest.mark.parametrize("name", ["llama", "mixtral", "qwen3", "gpt_neox"])
def test_circuits_of_the_first_layer_are_those_of_a_pass(name, make):
    model = serve_module(make(name), "causal", name)
    assert HeadCircuits().reason_against(model.description) is None
    trace, result = circuits_of(model, model.config.vocab_size)
    path = "decoder.layers.0.self_attention"
    for at, token in enumerate(IDS):  # a token is not rotated against itself
        sought = of_token(result, f"{path}.sought", "scores", token)[:, at]
        np.testing.assert_allclose(sought, trace[f"{path}.scores"][:, at, at], rtol=1e-4, atol=1e-4)
    stream = trace["decoder.layers.1.residual.after"][-1]
    exact = model.linear_exit("decoder", stream, [TOKEN]).directions[0]
    values = trace[f"{path}.values"].astype(np.float64)
    bias = model.graph_weights().inputs(f"{path}.values").bias
    if bias is not None:
        values = values - bias[:, None].numpy()
    made = np.einsum("hkd,hde,e->hk", values, model.output_weights(path).data, exact)
    written = of_token(result, f"{path}.written", "logits", TOKEN)
    np.testing.assert_allclose(written, made, rtol=1e-3, atol=1e-3 * np.abs(made).max())


def test_a_head_that_copies_is_the_one_that_is_said_to():
    _, result = circuits_of(serve_module(trained_like("gpt2"), "causal", "gpt2"), 10)
    copying = result.arrays["decoder.layers.1.self_attention.copying"].data
    assert copying[1] > 0.9 > np.delete(copying, 1).max()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bloom", "more than a factor lies between the embedding of a token and the stream"),
        ("olmo2", "reads is more than a norm of the stream and a matrix"),
    ],
)
def test_circuits_that_are_more_than_algebra_are_left_out_with_the_reason(name, reason):
    model = serve_module(make_model(name), "causal", name)
    assert reason in HeadCircuits().reason_against(model.description)


def test_a_norm_behind_the_heads_leaves_what_they_look_for():
    trace, result = circuits_of(serve_module(make_model("gemma2"), "causal", "gemma2"), 10)
    assert "decoder.layers.0.self_attention.sought_ids" in result.arrays
    assert "decoder.layers.0.self_attention.written_ids" not in result.arrays
    assert trace.attentions.keys() == {name.removesuffix(".written") for name in result.omitted}
