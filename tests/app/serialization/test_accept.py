"""The media type and the content coding that the Accept headers choose."""

import pytest
from starlette.datastructures import Headers

from headlight.problems import Problem
from headlight.serialization.accept import negotiate, negotiate_coding

JSON, FILE = "application/json", "application/x-safetensors"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", JSON),
        ("*/*", JSON),
        (FILE, FILE),
        ("Application/X-Safetensors", FILE),
        (f"{FILE}, {JSON}", JSON),
        (f"{JSON};q=0.1, */*;q=0.5", FILE),
        (f"{JSON};q=0, application/*", FILE),
        (f"{FILE}; charset=utf-8; q=1", FILE),
        (f"{JSON};q=much, {FILE};q=0.1", FILE),
        (" , ,", JSON),
    ],
)
def test_the_wanted_type_of_highest_quality_is_chosen(accept, chosen):
    assert negotiate(accept, (JSON, FILE)) == chosen


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};q=0", "*/*;q=0", f"{JSON};q=nan"])
def test_a_client_that_takes_none_is_told_what_there_is(accept):
    with pytest.raises(Problem, match="ask for one of these") as caught:
        negotiate(accept, (JSON, FILE))
    assert caught.value.status_code == 406
    assert caught.value.members == {"offered": [JSON, FILE]}


LARGE = 10_000


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "br"),
        ("x-gzip", "gzip"),
        ("*", "zstd"),
        ("zstd;q=0.4, gzip;q=0.8", "gzip"),
        ("*, zstd;q=0", "br"),
        ("gzip;q=0.5, *;q=0.4", "gzip"),
        ("identity;q=0.2, gzip;q=0.2", "gzip"),
        ("gzip;q=0", "identity"),
        ("gzip;q=much", "identity"),
        ("*;q=0, identity", "identity"),
        (" , ", "identity"),
    ],
)
def test_the_wanted_coding_of_highest_quality_is_chosen(accept, chosen):
    assert negotiate_coding(Headers({"accept-encoding": accept}), LARGE) == chosen


def test_who_says_nothing_gets_an_answer_as_it_is():
    assert negotiate_coding(Headers({}), LARGE) == "identity"


def test_an_answer_that_is_offered_in_no_coding_is_sent_as_it_is():
    assert negotiate_coding(Headers({"accept-encoding": "gzip"}), LARGE, offered=()) == "identity"


def test_lists_in_two_headers_are_one_list():
    headers = Headers(raw=[(b"accept-encoding", b"deflate"), (b"accept-encoding", b"br")])
    assert negotiate_coding(headers, LARGE) == "br"


def test_a_small_answer_is_compressed_only_for_who_takes_no_other():
    assert negotiate_coding(Headers({"accept-encoding": "gzip"}), 100) == "identity"
    assert negotiate_coding(Headers({"accept-encoding": "gzip, identity;q=0"}), 100) == "gzip"


@pytest.mark.parametrize("accept", ["identity;q=0", "*;q=0", "deflate, identity;q=0"])
def test_a_client_that_takes_no_coding_at_all_is_told_what_there_is(accept):
    with pytest.raises(Problem, match="takes none of zstd, br, gzip, identity") as caught:
        negotiate_coding(Headers({"accept-encoding": accept}), LARGE)
    assert caught.value.status_code == 406
    assert caught.value.members == {"offered": ["zstd", "br", "gzip", "identity"]}
