"""The numbers of a step are counted, and a request may ask for as much as the limits say."""

import pytest

from headlight.model.tracing import count_elements, pass_spec, tokenize, trace

TEXT = "the cat sat on the mat"


@pytest.mark.parametrize("heads", [None, [2, 0]])
def test_the_numbers_of_a_step_are_those_of_one_row_of_a_trace(tiny, heads):
    traced = trace(tiny, TEXT, capture=["*"], heads=heads)
    n_tokens, model_input = len(traced.tokens), tokenize(tiny, TEXT[:7])
    for site, array in traced.tensors.items():
        spec = pass_spec(tiny.description, capture=[site], heads=heads)
        n_rows = n_tokens if {"query", "position"} & set(array.axes) else 1
        size = count_elements(tiny.description, spec, model_input, n_queries=1, n_keys=n_tokens)
        assert size == array.data.size // n_rows, site


def test_all_that_the_limits_allow_is_generated(client_with, problem):
    client = client_with(max_new_tokens=2)
    asked = {"text": TEXT, "n_tokens": 2, "forced": [40, 41], "skip": 2}
    assert client.post("/api/v1/generate", json=asked).status_code == 200
    answer = client.post("/api/v1/generate", json={"text": TEXT, "n_tokens": 3})
    assert problem(answer, 422, "too-many-new-tokens")["limit"] == 2
