"""Any text of Unicode, lone surrogates included, on every route that reads one: no server error.

`HEADLIGHT_EXAMPLES=2000 pytest tests/app/faults` looks longer; without it the texts are always the
same ones, so that a change is what makes a test fail.
"""

import json
import os
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

N_EXAMPLES = int(os.environ.get("HEADLIGHT_EXAMPLES", "40"))
thorough = settings(
    max_examples=N_EXAMPLES,
    derandomize="HEADLIGHT_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
)
JSON = {"content-type": "application/json"}
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"

# Two surrogates that make a pair are one character once they are sent, and so they are here.
any_text = (
    st.text(st.characters(exclude_categories=()), max_size=40)
    | st.text(
        st.sampled_from("ae \n\0\u0301\u200d\u202e\ufeff\ud800\udfff\uffff\U0001f469[]<>/s"),
        max_size=40,
    )
).map(lambda text: json.loads(json.dumps(text)))


def as_body(value):
    """Return JSON as Python writes it, with NaN and lone surrogates."""
    return json.dumps(value).encode()


def is_text(text):
    return re.search("[\ud800-\udfff]", text) is None


def require_sound(response, text, assert_problem_of):
    """Return True if a text was answered; if it was refused, check the problem."""
    if response.status_code == 200:
        assert is_text(text)
        assert text
        return True
    kind = assert_problem_of(response)
    expected = {"too-many-tokens"}
    expected |= set() if is_text(text) else {"malformed-json"}
    expected |= set() if text.strip() else {"empty-text"}
    assert kind in expected
    return False


@pytest.fixture(scope="session")
def assert_problem_of(problem_schema):
    """Return a function that checks that a response is a problem, and gives its kind."""

    def check(response):
        assert 400 <= response.status_code < 500, response.text
        assert response.headers["content-type"] == "application/problem+json"
        details = response.json()
        problem_schema.validate(details)
        return details["type"].rpartition(":")[2]

    return check


@thorough
@given(text=any_text)
@example(text="e" + "\u0301" * 60)
@example(text=FAMILY * 4)
@example(text="\0")
@example(text="\ufeff")
@example(text="\u2028\u0085\u3000")
@example(text="</s><s>[MASK]")
def test_tokens_tile_the_text(client, assert_problem_of, text):
    response = client.post("/api/v1/tokenize", content=as_body({"text": text}), headers=JSON)
    if not require_sound(response, text, assert_problem_of):
        return
    start, *pieces = response.json()["tokens"]
    assert (start["start"], start["end"], start["is_special"]) == (0, 0, True)
    reached, last = 0, None
    for piece in pieces:
        span = piece["start"], piece["end"]
        assert span == last or span[0] == reached, "no gap, and only a character is shared"
        assert span[0] < span[1]
        reached, last = span[1], span
    assert reached == len(text)


@thorough
@given(text=any_text, dtype=st.sampled_from(["float32", "uint16"]))
@example(text="e" + "\u0301" * 20, dtype="uint16")
@example(text=FAMILY, dtype="float32")
def test_rows_sum_to_one(client, assert_problem_of, from_json, text, dtype):
    body = as_body({"text": text, "dtype": dtype, "capture": ["*.weights"]})
    response = client.post("/api/v1/trace", content=body, headers=JSON)
    if not require_sound(response, text, assert_problem_of):
        return
    trace = response.json()
    assert trace["text"] == text
    for site, weights in from_json(trace).items():
        n_tokens = len(trace["tokens"])
        assert weights.shape[-2:] == (n_tokens, n_tokens), site
        np.testing.assert_allclose(weights.sum(-1), 1, atol=n_tokens * 8e-6 + 1e-5)


@thorough
@given(text=any_text, seed=st.integers(0, 2**63 - 1), temperature=st.floats(0, 1e308))
@example(text="\0", seed=0, temperature=5e-324)
def test_every_text_is_written_on(client, assert_problem_of, text, seed, temperature):
    order = {"text": text, "n_tokens": 2, "seed": seed, "temperature": temperature}
    response = client.post("/api/v1/generate", content=as_body(order), headers=JSON)
    if not require_sound(response, text, assert_problem_of):
        return
    events = re.findall(r"^event: (\w+)", response.text, re.MULTILINE)
    assert events[0] == "start"
    assert events[-1] == "end"


@thorough
@given(text=any_text, target=any_text)
def test_every_pair_of_texts_is_read(client, assert_problem_of, text, target):
    order = {"model": "translator", "text": text, "target": target, "capture": ["*.weights"]}
    response = client.post("/api/v1/trace", content=as_body(order), headers=JSON)
    if response.status_code != 200:
        assert_problem_of(response)
        assert not (is_text(text + target) and text.strip() and target.strip())
