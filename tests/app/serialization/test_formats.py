"""One trace in every form it can be sent in: over HTTP, whatever is asked for."""

import json
import time

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given
from hypothesis import settings as run_with
from hypothesis import strategies as st

from headlight.schemas import JSON
from headlight.serialization.compression import SMALL, compressed
from headlight.serialization.formats import MEDIA_TYPES, pack
from tests.app.reading import DECODERS

CONTENT = b'{"tokens":["a","b"]}' * 500
PIECES = [CONTENT[:7], b"", CONTENT[7:4000], CONTENT[4000:]]
HALF_A_STEP = 0.5 / 65535
TEXTS = st.text(min_size=1, max_size=40).filter(
    lambda text: text.strip() and text.isprintable()
) | st.sampled_from(["the cat", "The cat sat on the mat because it was tired.", "<b>&amp; 🦊"])
quickly = run_with(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def ask(client, media_type, coding="identity", **asked):
    """Return the headers and the decoded content of an answer."""
    headers = {"accept": media_type, "accept-encoding": f"{coding}, identity;q=0.1"}
    with client.stream("POST", "/api/v1/trace", json=asked, headers=headers) as response:
        raw = b"".join(response.iter_raw())
    assert response.status_code == 200, raw
    assert int(response.headers["content-length"]) == len(raw)
    used = response.headers.get("content-encoding", "identity")
    return response.headers, DECODERS[used](raw)


def unpack(data, shape, fill):
    full = np.full(shape, -np.inf if fill is None else fill, data.dtype)
    full[..., *np.tril_indices(shape[-1])] = data
    return full


def read(content, media_type):
    """Return an answer's tensors as they are sent, their numbers, and the other members."""
    if media_type == JSON:
        body = json.loads(content)
        sent = {site: described_array(tensor) for site, tensor in body.pop("tensors").items()}
    else:
        sent, body = of_safetensors(content)
    body.pop("timings")
    return sent, {site: meant(*described) for site, described in sent.items()}, body


def described_array(description):
    data = np.array(description.pop("data"), dtype=object)
    data[data == None] = -np.inf  # noqa: E711 - elementwise
    return data.astype(description["dtype"]), description


def of_safetensors(content):
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    body = {key: json.loads(value) for key, value in metadata.items()}
    described = {key: body.pop(key) for key in ("axes", "scale", "packed")}
    arrays = safetensors.numpy.load(content)
    facts = {
        site: {"axes": described["axes"][site], "shape": list(data.shape)}
        | ({"scale": described["scale"][site]} if site in described["scale"] else {})
        | described["packed"].get(site, {})
        for site, data in arrays.items()
    }
    return {site: (data, facts[site]) for site, data in arrays.items()}, body


def meant(data, facts):
    data = unpack(data, facts["shape"], facts["fill"]) if "packed" in facts else data
    return data * np.float64(facts["scale"]) if "scale" in facts else data


@quickly
@given(text=TEXTS, triangle=st.booleans(), media_type=st.sampled_from(MEDIA_TYPES))
def test_rows_sum_to_one_after_uint16_within_its_rounding(client, text, triangle, media_type):
    asked = {"text": text, "capture": ["*.weights", "*.router_probs"], "analyses": []}
    _, exact, _ = read(ask(client, media_type, **asked)[1], media_type)
    options = {"dtype": "uint16", "triangle": triangle}
    sent, rounded, _ = read(ask(client, media_type, **options, **asked)[1], media_type)
    for site, array in rounded.items():
        assert sent[site][0].dtype == np.uint16
        assert np.abs(array - exact[site]).max() <= 8e-6
        n_numbers = np.count_nonzero(array, axis=-1)
        assert (np.abs(array.sum(axis=-1) - 1) <= n_numbers * HALF_A_STEP + 1e-6).all()


@quickly
@given(
    text=TEXTS,
    model=st.sampled_from(["tiny", "translator", "filler", "slanted"]),
    dtype=st.sampled_from(["float32", "uint16"]),
    media_type=st.sampled_from(MEDIA_TYPES),
)
def test_triangles_unpack_to_the_same_numbers(client, text, model, dtype, media_type):
    asked = {"text": text, "model": model, "capture": ["*.weights", "*.scores"], "dtype": dtype}
    asked |= {"target": "a light"} if model == "translator" else {}
    _, whole, body = read(ask(client, media_type, **asked)[1], media_type)
    packed, unpacked, same_body = read(
        ask(client, media_type, triangle=True, **asked)[1], media_type
    )
    assert body == same_body
    for site, array in whole.items():
        np.testing.assert_array_equal(unpacked[site], array)
        is_causal = site.startswith("decoder") and ".self_attention." in site
        size = array.shape[-1]
        assert ("packed" in packed[site][1]) == (is_causal and size > 1)
        if is_causal and size > 1:
            assert packed[site][0].shape == (array.shape[0], size * (size + 1) // 2)


def test_analyses_of_causal_attention_are_packed_as_well(client):
    asked = {"text": "the cat sat on it", "capture": [], "analyses": ["value_weighted", "rollout"]}
    whole = json.loads(ask(client, JSON, **asked)[1])["analyses"]
    packed = json.loads(ask(client, JSON, triangle=True, **asked)[1])["analyses"]
    for name, arrays in whole.items():
        for key, tensor in arrays.items():
            packed_tensor = packed[name][key]
            assert packed_tensor["packed"] == "lower-triangle"
            data, _ = described_array(packed_tensor)
            np.testing.assert_array_equal(
                unpack(data, packed_tensor["shape"], packed_tensor["fill"]),
                described_array(tensor)[0],
            )


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@pytest.mark.parametrize("coding", ["zstd", "br", "gzip"])
def test_every_coding_carries_the_same_answer_in_fewer_bytes(client, coding, media_type):
    asked = {"text": "The cat sat on the mat because it was tired.", "dtype": "uint16"}
    headers, content = ask(client, media_type, coding, **asked)
    plain_headers, plain = ask(client, media_type, **asked)
    assert headers["content-encoding"] == coding
    assert "content-encoding" not in plain_headers
    assert headers["vary"] == plain_headers["vary"] == "Accept, Accept-Encoding"
    assert int(headers["content-length"]) < 0.8 * int(plain_headers["content-length"])
    (_, arrays, body), (_, expected, plain_body) = (read(c, media_type) for c in (content, plain))
    assert body == plain_body
    for site, array in expected.items():
        np.testing.assert_array_equal(arrays[site], array)


AXES = ("head", "query", "key")


def causal(size, fill=0.0, heads=2):
    numbers = np.random.default_rng(size).random((heads, size, size), dtype=np.float32)
    return np.where(np.tri(size, dtype=bool), numbers, np.float32(fill))


def unpacked(packed):
    full = np.full(packed.shape, packed.fill, packed.data.dtype)
    full[..., *np.tril_indices(packed.shape[-1])] = packed.data
    return full


@pytest.mark.parametrize("fill", [0.0, -np.inf])
@pytest.mark.parametrize("size", [2, 3, 17])
def test_a_causal_array_is_packed_row_by_row_and_unpacks_to_itself(size, fill):
    data = causal(size, fill)
    packed = pack(AXES, data)
    assert packed.data.shape == (2, size * (size + 1) // 2)
    assert packed.fill == fill
    np.testing.assert_array_equal(packed.data[0, :3], [data[0, 0, 0], *data[0, 1, :2]])
    np.testing.assert_array_equal(unpacked(packed), data)


def test_an_array_that_looks_ahead_anywhere_is_sent_whole():
    data = causal(5)
    data[1, 2, 3] = 0.001
    assert pack(AXES, data) is None


def test_an_array_of_two_fills_is_sent_whole():
    data = causal(5)
    data[1] = causal(5, -np.inf)[1]
    assert pack(AXES, data) is None


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 1, 1)])
def test_rectangles_and_single_cells_are_sent_whole(shape):
    assert pack(AXES, np.zeros(shape, dtype=np.float32)) is None


def test_axes_of_another_kind_are_no_triangle():
    assert pack(("head", "query", "d_head"), causal(4)) is None


@pytest.mark.parametrize("coding", DECODERS)
def test_equal_bytes_are_compressed_to_equal_bytes_at_any_time(coding, monkeypatch):
    first = list(compressed(PIECES, coding))
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert list(compressed(PIECES, coding)) == first


@pytest.mark.parametrize("coding", ["zstd", "br", "gzip"])
def test_what_is_sent_often_is_made_smaller(coding):
    fast, small = (b"".join(compressed(PIECES, coding, **how)) for how in ({}, {"levels": SMALL}))
    assert len(small) <= len(fast)
    assert DECODERS[coding](small) == CONTENT
