"""The head of a request is bounded, and its end is plain."""

import pytest

from headlight.middleware.framing import head_bytes
from headlight.settings import Settings


def test_target_query_and_headers_count():
    scope = {
        "path": "/é",
        "raw_path": b"/%c3%a9",
        "query_string": b"a=b",
        "headers": [(b"x", b"yz")],
    }
    assert head_bytes(scope) == 7 + 3 + 3
    assert head_bytes({**scope, "raw_path": None}) == 2 + 3 + 3


@pytest.mark.parametrize(("letters", "status"), [(500, 200), (2_000, 431)])
def test_a_head_may_be_as_long_as_the_settings_say(client_with, letters, status):
    client = client_with(max_header_bytes=1_024)
    assert client.get("/healthz", headers={"x-a": "a" * letters}).status_code == status


def test_the_limit_is_told(client_with, problem):
    answer = client_with(max_header_bytes=1_024).get(f"/{'a' * 2_000}")
    found = problem(answer, 431, "headers-too-large")
    assert found["detail"].startswith("the target and the headers are longer than 1,024 bytes")
    assert found["limit"] == 1_024
    assert answer.headers["connection"] == "close"


def test_there_is_a_least_head(monkeypatch):
    with pytest.raises(ValueError, match="max_header_bytes"):
        Settings(max_header_bytes=10)
