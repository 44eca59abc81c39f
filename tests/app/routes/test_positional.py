"""GET /api/v1/positional: the encoding of any scheme, without a text."""

import math
import re

import numpy as np
import pytest

from headlight.model.checkpoint.loading import load


def get(client, accept="application/json", **asked):
    return client.get("/api/v1/positional", params=asked, headers={"accept": accept})


def test_sinusoidal_by_length_and_width(client, from_json):
    body = get(client, scheme="sinusoidal", length=5, width=6).json()
    assert {name: body[name] for name in ("scheme", "model", "length", "width", "heads")} == {
        "scheme": "sinusoidal",
        "model": None,
        "length": 5,
        "width": 6,
        "heads": None,
    }
    assert body["tensors"]["encoding"]["axes"] == ["position", "d_model"]
    assert body["tensors"]["frequencies"]["axes"] == ["pair"]
    encoding = from_json(body)["encoding"]
    assert encoding[3, 2] == pytest.approx(math.sin(3 / 10_000 ** (2 / 6)))
    assert encoding[3, 3] == pytest.approx(math.cos(3 / 10_000 ** (2 / 6)))


def test_a_models_own_learned_table(client, zoo, from_json):
    body = get(client, model="filler", length=10).json()
    assert (body["scheme"], body["width"]) == ("learned", 16)
    table = load(zoo / "filler").model.encoder.embedding.positions.weight.detach().numpy()
    np.testing.assert_array_equal(from_json(body)["encoding"], table[:10])


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("tiny", {"scheme": "sinusoidal", "width": 16, "heads": None}),
        ("turning", {"scheme": "rotary", "width": 4, "heads": None}),
        ("slanted", {"scheme": "alibi", "width": None, "heads": 4}),
    ],
)
def test_a_model_gives_the_scheme_and_its_sizes(client, model, sizes):
    body = get(client, model=model, length=3).json()
    assert {name: body[name] for name in sizes} == sizes
    named = {name: value for name, value in sizes.items() if value is not None}
    assert get(client, length=3, **named).json()["tensors"] == body["tensors"]
    assert get(client, model=model, scheme=sizes["scheme"], length=3).status_code == 200


def test_what_is_sent_is_what_a_trace_of_that_length_holds(client, from_json):
    asked = {"text": "the cat sat", "capture": ["decoder.embedding.positional"]}
    (captured,) = from_json(client.post("/api/v1/trace", json=asked).json()).values()
    encoding = from_json(get(client, model="tiny", length=len(captured)).json())["encoding"]
    np.testing.assert_array_equal(encoding, captured)


def test_safetensors_hold_the_same(client, from_json, from_safetensors):
    response = get(client, "application/x-safetensors", scheme="rotary", length=4, width=8)
    assert response.headers["content-type"] == "application/x-safetensors"
    assert response.headers["vary"] == "Accept, Accept-Encoding"
    arrays, metadata = from_safetensors(response.content)
    expected = from_json(get(client, scheme="rotary", length=4, width=8).json())
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert metadata["scheme"] == "rotary"
    assert metadata["axes"]["cos"] == ["position", "pair"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"length": 3}, "name a scheme, or a model"),
        ({"scheme": "learned", "length": 3, "width": 4}, "those of a model"),
        ({"scheme": "sinusoidal", "length": 3}, "width is missing; .* an even number, the d_model"),
        ({"scheme": "rotary", "length": 3, "width": 7}, r"width \(7\) is odd; .* the d_head"),
        ({"scheme": "alibi", "length": 3}, "heads is missing; .* a slope each"),
        ({"scheme": "alibi", "length": 3, "heads": 2, "width": 4}, "leave width out"),
        ({"model": "tiny", "scheme": "alibi", "length": 3}, "are sinusoidal, not alibi"),
        ({"model": "tiny", "width": 16, "length": 3}, "those of the model; leave them out"),
        (
            {"scheme": "sinusoidal", "length": 0, "width": 4},
            r"length: must be at least 1 and at most 2\^20",
        ),
        (
            {"scheme": "sinusoidal", "length": "many", "width": 4},
            "length: 'many' is not a whole number; it must be at least 1",
        ),
        (
            {"scheme": "alibi", "length": 3, "heads": 2, "slope": 1},
            "slope: unknown parameter; the parameters are scheme, model, length, width, heads",
        ),
    ],
)
def test_what_makes_no_encoding_is_refused_with_the_way_out(client, problem, asked, said):
    body = problem(get(client, **asked), 422, "invalid-request")
    assert re.search(said, body["detail"]), body["detail"]


def test_a_table_ends_where_its_model_does(client, problem):
    body = problem(get(client, model="filler", length=65), 422, "too-many-positions")
    assert (body["limit"], body["actual"]) == (64, 65)
    assert "has learned no more" in body["detail"]
    assert get(client, model="tiny", length=65).status_code == 200


@pytest.mark.parametrize(
    ("asked", "cells"),
    [
        ({"scheme": "sinusoidal", "length": 5, "width": 6}, 33),
        ({"scheme": "rotary", "length": 5, "width": 6}, 45),
        ({"scheme": "alibi", "length": 5, "heads": 2}, 52),
        ({"model": "filler", "length": 3}, 48),
    ],
)
def test_numbers_are_counted_before_any_is_computed(client_with, problem, asked, cells):
    body = problem(get(client_with(max_cells=cells - 1), **asked), 422, "too-many-cells")
    assert (body["limit"], body["actual"]) == (cells - 1, cells)
    tensors = get(client_with(max_cells=cells), **asked).json()["tensors"]
    assert sum(math.prod(tensor["shape"]) for tensor in tensors.values()) == cells


@pytest.mark.parametrize("coding", ["identity", "br"])
def test_a_client_that_has_it_is_told_so(client, coding):
    asked = {"params": {"scheme": "rotary", "length": 40, "width": 8}}
    headers = {"accept": "application/json", "accept-encoding": coding}
    first = client.get("/api/v1/positional", headers=headers, **asked)
    assert first.headers["cache-control"] == "no-cache"
    known = {"if-none-match": first.headers["etag"]}
    again = client.get("/api/v1/positional", headers=headers | known, **asked)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert "content-encoding" not in again.headers
    gzipped = client.get(
        "/api/v1/positional", headers=headers | known | {"accept-encoding": "gzip"}, **asked
    )
    assert (gzipped.status_code, gzipped.json()) == (200, first.json())
