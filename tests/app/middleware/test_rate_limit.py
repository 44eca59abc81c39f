"""Who asks too often is told when to come back; who asks seldom notices nothing."""

import httpx
import pytest

from headlight.middleware.rate_limit import client_of


@pytest.fixture
def strict(client_with):
    return client_with(requests_per_minute=3)


def test_a_client_is_told_how_often_it_may_still_ask(strict):
    left = [strict.get("/api/v1/limits").headers["ratelimit"] for _ in range(2)]
    assert left == ['"client";r=2;t=20', '"client";r=1;t=40']
    assert strict.get("/api/v1/limits").headers["ratelimit-policy"] == '"client";q=3;w=60'


def test_one_request_too_many_is_refused(strict, problem):
    for _ in range(3):
        assert strict.get("/api/v1/limits").status_code == 200
    answer = strict.post("/api/v1/trace", json={"text": "a"})
    body = problem(answer, 429, "too-many-requests")
    assert body["limit"] == 3
    assert answer.headers["retry-after"] == "20"
    assert answer.headers["ratelimit"] == '"client";r=0;t=20', "the moment of Retry-After"


def test_who_asked_too_often_may_still_read_the_metrics(strict, problem):
    for _ in range(4):
        strict.get("/api/v1/limits")
    for _ in range(3):
        assert strict.get("/metrics").status_code == 200
    problem(strict.get("/metrics"), 429, "too-many-requests")


def test_what_is_refused_is_counted_by_the_route_that_was_asked_for(strict):
    for _ in range(4):
        strict.get("/api/v1/models/tiny")
    registry = strict.app.state.services.metrics.registry
    labels = {"route": "/api/v1/models/{model}", "method": "GET", "status": "429"}
    assert registry.get_sample_value("headlight_requests_total", labels) == 1


def test_the_page_and_the_probes_are_never_refused(strict):
    for _ in range(5):
        strict.get("/api/v1/limits")
        for path in ("/healthz", "/", "/static/css/page.css"):
            answer = strict.get(path)
            assert answer.status_code == 200
            assert "ratelimit" not in answer.headers


def test_without_a_limit_nobody_is_counted(client):
    for _ in range(5):
        answer = client.get("/api/v1/limits")
        assert answer.status_code == 200
        assert "ratelimit" not in answer.headers


def test_guessing_a_key_is_asking_too(client_with, problem):
    from pydantic import SecretStr

    client = client_with(requests_per_minute=2, api_keys=(SecretStr("k" * 16),))
    for _ in range(2):
        problem(client.get("/metrics", headers={"x-api-key": "wrong"}), 401, "key-refused")
    problem(client.get("/metrics", headers={"x-api-key": "k" * 16}), 429, "too-many-requests")


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unknown", "unknown"),
    ],
)
def test_a_client_is_an_address_or_the_network_it_may_take_any_from(address, client):
    assert client_of(address) == client


def ask(url, **headers):
    return httpx.get(f"{url}/api/v1/limits", headers=headers)


def test_an_address_that_anybody_may_claim_is_not_believed(serving, settings):
    """The connection comes from this machine, which some servers believe by default."""
    with serving(settings.model_copy(update={"requests_per_minute": 2})) as server:
        statuses = [
            ask(server.url, **{"x-forwarded-for": f"192.0.2.{n}"}).status_code for n in range(3)
        ]
    assert statuses == [200, 200, 429]


def test_a_trusted_proxy_says_who_asks(serving, settings):
    changed = {"requests_per_minute": 1, "trusted_proxies": ("127.0.0.0/8", "10.0.0.0/8")}
    with serving(settings.model_copy(update=changed)) as server:

        def status(forwarded):
            return ask(server.url, **{"x-forwarded-for": forwarded}).status_code

        assert status("192.0.2.1") == 200
        assert status("192.0.2.1") == 429
        assert status("192.0.2.2") == 200
        assert status("8.8.8.8, 192.0.2.2") == 429, "what stands before the last hop is made up"
        assert status("192.0.2.3, 10.1.1.1") == 200, "the last hop is a proxy of ours"
        assert status("<b>nobody</b>") == 200
        assert status("sesame") == 429, "all that are no addresses are one client"
