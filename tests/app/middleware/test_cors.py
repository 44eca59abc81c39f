"""Scripts of other pages may ask only where their origin was listed."""

import pytest

NOTEBOOK = "https://notebook.example.org"
PREFLIGHT = {
    "origin": NOTEBOOK,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type, authorization, x-request-id",
}


@pytest.fixture
def open_client(client_with):
    return client_with(cors_origins=(NOTEBOOK,))


def test_no_origin_may_ask_by_default(client):
    for answer in (
        client.get("/api/v1/limits", headers={"origin": NOTEBOOK}),
        client.options("/api/v1/trace", headers=PREFLIGHT),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_an_origin_that_is_listed_may_ask_and_read_what_it_needs(open_client):
    answer = open_client.get("/api/v1/limits", headers={"origin": NOTEBOOK})
    assert answer.headers["access-control-allow-origin"] == NOTEBOOK
    assert "Origin" in answer.headers["vary"]
    exposed = set(answer.headers["access-control-expose-headers"].split(", "))
    assert {"ETag", "X-Request-ID", "Content-Location", "Retry-After"} <= exposed
    assert "access-control-allow-credentials" not in answer.headers


def test_a_preflight_is_answered(open_client):
    answer = open_client.options("/api/v1/trace", headers=PREFLIGHT)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == NOTEBOOK
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-max-age"] == "600"


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"origin": "https://evil.example"}, "origin"),
        ({"origin": "null"}, "origin"),
        ({"origin": NOTEBOOK + ".evil.example"}, "origin"),
        ({"access-control-request-method": "DELETE"}, "method"),
        ({"access-control-request-headers": "x-anything"}, "headers"),
    ],
)
def test_a_preflight_that_asks_for_more_is_a_problem(open_client, problem, changed, refused):
    answer = open_client.options("/api/v1/trace", headers=PREFLIGHT | changed)
    assert refused in problem(answer, 400, "preflight-refused")["detail"]
    assert answer.headers.get("access-control-allow-origin") in (None, NOTEBOOK)


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_another_origin_may_not_read_an_answer(open_client, origin):
    answer = open_client.get("/api/v1/limits", headers={"origin": origin})
    assert "access-control-allow-origin" not in answer.headers


def test_a_refusal_can_be_read_too(client_with):
    from pydantic import SecretStr

    client = client_with(cors_origins=(NOTEBOOK,), api_keys=(SecretStr("k" * 16),))
    answer = client.get("/api/v1/limits", headers={"origin": NOTEBOOK})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == NOTEBOOK
    assert client.options("/api/v1/trace", headers=PREFLIGHT).status_code == 200


def test_any_origin_may_ask_where_that_was_told_but_never_with_cookies(client_with):
    client = client_with(cors_origins=("*",))
    answer = client.get("/api/v1/limits", headers={"origin": "null", "cookie": "a=b"})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
