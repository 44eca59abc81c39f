"""No answer becomes larger than was reserved for it, whatever is in it and however it is sent."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headlight.model.trace import NamedArray, Token, Trace
from headlight.serialization.formats import MEDIA_TYPES, SAFETENSORS, Form
from headlight.serialization.trace import Analysis, Answer, Arrays, encode
from headlight.serialization.upper_bound import upper_bound

AXES = ("layer", "head", "query", "key")
SHAPES = arrays.array_shapes(max_dims=4, max_side=5)
# Down to a millionth numbers are written without an exponent.
LONGEST = -0.0000010000001
FLOATS = arrays.arrays(
    np.float32, SHAPES, elements=st.just(np.float32(LONGEST)) | st.floats(width=32, allow_nan=False)
)
INTEGERS = arrays.arrays(np.int64, SHAPES, elements=st.integers(-(2**31), 2**31 - 1))
UNITS = arrays.arrays(np.float32, SHAPES, elements=st.floats(0, 1, width=32))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
FORMS = st.builds(
    Form,
    media_type=st.sampled_from(MEDIA_TYPES),
    dtype=st.sampled_from(["float32", "uint16"]),
    triangle=st.booleans(),
    coding=st.sampled_from(["identity", "zstd", "br", "gzip"]),
)


def named(array):
    return NamedArray(AXES[-array.ndim :], array)


def answer_of(text, numbers, integers, units):
    numbers = np.nan_to_num(numbers, posinf=1, neginf=-1)
    trace = Trace(
        model="tiny",
        revision="r",
        precision="float32",
        text=text,
        tokens=tuple(
            Token(id=n, text=mark, start=n, end=n + 1, word=None, is_special=False)
            for n, mark in enumerate(text)
        ),
        tensors={
            "decoder.layers.0.self_attention.weights": named(units),
            "logits": named(numbers),
            "decoder.layers.0.experts": named(integers),
        },
        heads=(0, 1),
        timings={"pass": 1.0},
    )
    found = Analysis(arrays={"scores": named(numbers)}, beside={"texts": [text]})
    return Answer(id="0" * 32, trace=trace, analyses={"next_token": found})


@settings(max_examples=150, deadline=None)
@given(TEXTS, FLOATS, INTEGERS, UNITS, FORMS)
def test_no_answer_is_larger(text, numbers, integers, units, form):
    answer = answer_of(text, numbers, integers, units)
    assert len(encode(answer, form)) <= upper_bound(answer, form)


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_it_is_enough_for_the_longest_numbers_and_hardly_more(media_type):
    numbers = np.full((8, 8, 40, 40), LONGEST, np.float32)
    answer, form = (
        Arrays(tensors={"numbers": named(numbers)}, beside={}),
        Form(media_type=media_type),
    )
    n_bytes = len(encode(answer, form))
    assert n_bytes <= upper_bound(answer, form) < 1.05 * n_bytes


@pytest.mark.parametrize("coding", ["zstd", "br", "gzip"])
def test_it_is_enough_for_numbers_that_nothing_compresses(coding):
    numbers = np.random.default_rng(0).standard_normal((8, 8, 40, 40), np.float32)
    form = Form(media_type=SAFETENSORS, coding=coding)
    answer = Arrays(tensors={"numbers": named(numbers)}, beside={})
    assert len(encode(answer, form)) <= upper_bound(answer, form)


def test_a_trace_that_is_served_is_not_much_smaller(client):
    """What is reserved in vain is refused to others."""
    asked = {"text": "the cat sat " * 8, "capture": ["*"]}
    answer = client.post("/api/v1/trace", json=asked, headers={"accept-encoding": "identity"})
    shapes = [found["shape"] for found in json.loads(answer.content)["tensors"].values()]
    tensors = {str(n): named(np.zeros(shape[-4:])) for n, shape in enumerate(shapes)}
    bound = upper_bound(Arrays(tensors=tensors, beside={}), Form())
    assert bound < 3 * len(answer.content)
