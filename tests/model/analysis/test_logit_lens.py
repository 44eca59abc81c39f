"""The next-token distribution after each layer."""

import numpy as np
import pytest

from headlight.model.analysis.logit_lens import logit_lens
from headlight.model.analysis.next_token import next_token
from headlight.model.checkpoint.exits import norm_and_unembedding

SITE = "decoder.layers.{}.residual.after"
VECTORS = {"decoder.embedding.vectors.weight": [[1.0, 0], [0, 1]]}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "rms_norm"},
        {"norm_place": "post"},
        {"kind": "encoder"},
        {"kind": "encoder", "has_embedding_norm": True, "norm_place": "post"},
        {"kind": "encoder-decoder"},
    ],
    ids=str,
)
def test_the_last_layer_gives_what_the_model_predicts(make_model, read, parameters_of, changes):
    model = make_model(n_layers=3, **changes)
    target = [[9, 10, 11]] if changes.get("kind") == "encoder-decoder" else []
    trace = read(model, [5, 6, 7, 8], *target)
    arrays = logit_lens(trace, norm_and_unembedding(parameters_of(model)), top=7)
    expected = next_token(trace, top=7)
    assert arrays["ids"].data.shape[0] == 3
    assert arrays["ids"].data[-1].tolist() == expected["ids"].data.tolist()
    np.testing.assert_allclose(
        arrays["probabilities"].data[-1], expected["probabilities"].data, rtol=1e-4
    )
    assert arrays["ids"].data[0].tolist() != expected["ids"].data.tolist()


def test_the_norms_epsilon_is_the_models(make_model, read, parameters_of):
    model = make_model(norm_epsilon=0.5)
    trace = read(model, [5, 6, 7])
    parameters = parameters_of(model)
    right, wrong = (
        logit_lens(trace, norm_and_unembedding(parameters, epsilon))["probabilities"].data[-1]
        for epsilon in (0.5, 1e-5)
    )
    expected = next_token(trace)["probabilities"].data
    np.testing.assert_allclose(right, expected, rtol=1e-4)
    assert not np.allclose(wrong, expected, rtol=1e-4)


def test_without_a_norm_by_hand(make_trace, make_parameters):
    streams = {SITE.format(0): np.log([[0.3, 0.7]]), SITE.format(1): np.log([[0.9, 0.1]])}
    arrays = logit_lens(make_trace(streams), norm_and_unembedding(make_parameters(VECTORS)))
    assert arrays["ids"].axes == arrays["probabilities"].axes == ("layer", "query", "rank")
    assert arrays["ids"].data.tolist() == [[[1, 0]], [[0, 1]]]
    np.testing.assert_allclose(
        arrays["probabilities"].data, [[[0.7, 0.3]], [[0.9, 0.1]]], rtol=1e-6
    )


def test_a_missing_embedding_is_an_error(make_trace):
    with pytest.raises(KeyError, match=r"decoder\.embedding\.vectors\.weight is missing"):
        logit_lens(make_trace({SITE.format(0): [[1.0, 3]]}), norm_and_unembedding({}))
