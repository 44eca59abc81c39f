"""The norm of the vector that each head adds to the residual stream."""

import numpy as np
import pytest

from headlight.model.analysis.head_norms import head_norms
from headlight.model.analysis.head_outputs import head_outputs


@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_they_are_the_lengths_of_what_the_heads_write(make_model, read, parameters_of, kind):
    model = make_model(kind=kind, n_kv_heads=2)
    trace = read(model, [5, 6, 7, 8], *([[9, 10, 11]] if kind == "encoder-decoder" else []))
    written = head_outputs(trace, parameters_of(model))
    found = head_norms(trace, parameters_of(model))
    assert set(found) == set(written)
    for path, norms in found.items():
        assert norms.axes == ("head", "query")
        lengths = np.linalg.norm(written[path].data, axis=-1)
        np.testing.assert_allclose(norms.data, lengths, rtol=1e-5)


def test_captured_heads_meet_their_own_projection(make_trace, make_parameters):
    path = "decoder.layers.0.self_attention"
    parameters = make_parameters(
        {f"{path}.output_projection.weight": [[[1.0, 0], [0, 1]], [[0.0, 2], [0, 0]]]}
    )
    trace = make_trace({f"{path}.context": [[[3.0, 4], [-2, 7]]]}, heads=(1,))
    assert head_norms(trace, parameters)[path].data.tolist() == [[6.0, 4.0]]
