"""Headers, bodies and their time are limited; each client has a quota that refills steadily."""

import asyncio

import httpx
import pytest
from pydantic import SecretStr

from headlight.middleware.limits import BodyTimeout, RateLimiter, client_of, header_bytes
from headlight.problems import Problem
from headlight.settings import MAX_HEADER_BYTES

ADA, GRACE = "ada-0123456789abcdef", "grace-0123456789abcdef"


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_minute_of_requests_may_come_at_once(clock):
    limiter = RateLimiter(3, 10, clock)
    assert [limiter.take("ada").remaining for _ in range(3)] == [2, 1, 0]
    rejected = limiter.take("ada")
    assert (rejected.remaining, rejected.wait) == (0, pytest.approx(20))
    assert limiter.take("grace").wait == 0


def test_a_quota_refills_steadily(clock):
    limiter = RateLimiter(3, 10, clock)
    for _ in range(3):
        limiter.take("ada")
    for _ in range(5):
        clock.now += 20.001
        assert limiter.take("ada").wait == 0
        assert limiter.take("ada").wait > 0
    clock.now += 3600
    quota = limiter.take("ada")
    assert (quota.remaining, quota.full_after) == (2, pytest.approx(20))


def test_a_rejected_request_costs_nothing(clock):
    limiter = RateLimiter(1, 10, clock)
    limiter.take("ada")
    for _ in range(100):
        assert limiter.take("ada").wait == pytest.approx(60)
    clock.now += 60.001
    assert limiter.take("ada").wait == 0


def test_a_request_less_than_a_second_too_early_is_rejected_and_costs_nothing(clock):
    limiter = RateLimiter(3, 10, clock)
    for _ in range(3):
        limiter.take("ada")
    clock.now += 19.5
    quota = limiter.take("ada")
    assert (quota.remaining, quota.wait) == (0, pytest.approx(0.5))
    assert quota.full_after == pytest.approx(40.5)


def test_the_least_recent_client_is_forgotten(clock):
    limiter = RateLimiter(1, 3, clock)
    for client in ("ada", "grace", "edith", "joan"):
        limiter.take(client)
    assert len(limiter.full_at) == 3
    assert limiter.take("joan").wait > 0
    assert limiter.take("ada").wait == 0


@pytest.fixture
def strict(client_with):
    return client_with(requests_per_minute=3)


def test_the_state_of_the_quota_is_sent(strict):
    left = [strict.get("/api/v1/limits").headers["ratelimit"] for _ in range(2)]
    assert left == ['"client";r=2;t=20', '"client";r=1;t=40']
    assert strict.get("/api/v1/limits").headers["ratelimit-policy"] == '"client";q=3;w=60'


def test_one_request_too_many_is_rejected(strict, problem):
    for _ in range(3):
        assert strict.get("/api/v1/limits").status_code == 200
    answer = strict.post("/api/v1/trace", json={"text": "a"})
    assert problem(answer, 429, "too-many-requests")["limit"] == 3
    wait = answer.headers["retry-after"]
    assert wait in ("19", "20"), "a second may pass on a busy machine"
    assert answer.headers["ratelimit"] == f'"client";r=0;t={wait}'


def test_metrics_have_their_own_quota(strict, problem):
    for _ in range(4):
        strict.get("/api/v1/limits")
    for _ in range(3):
        assert strict.get("/metrics").status_code == 200
    problem(strict.get("/metrics"), 429, "too-many-requests")


def test_the_page_and_the_probes_are_not_limited(strict):
    for _ in range(5):
        strict.get("/api/v1/limits")
    for path in ("/healthz", "/"):
        answer = strict.get(path)
        assert answer.status_code == 200
        assert "ratelimit" not in answer.headers


def test_a_valid_key_is_a_client_and_an_invalid_one_is_its_address(client_with, problem):
    client = client_with(requests_per_minute=2, api_keys=(SecretStr(ADA), SecretStr(GRACE)))

    def status(key):
        return client.get("/api/v1/limits", headers={"x-api-key": key}).status_code

    assert [status(ADA) for _ in range(3)] == [200, 200, 429]
    assert status(GRACE) == 200
    assert [status(f"guess {n}") for n in range(3)] == [401, 401, 429]
    assert status(GRACE) == 200


def test_a_rejected_key_is_told_its_quota_and_an_unknown_host_comes_first(client_with, problem):
    client = client_with(requests_per_minute=2, api_keys=(SecretStr(ADA),))
    wrong_host = client.get("/api/v1/limits", headers={"host": "evil.example"})
    problem(wrong_host, 400, "host-refused")
    rejected = client.get("/api/v1/limits")
    problem(rejected, 401, "key-missing")
    assert rejected.headers["ratelimit"] == '"client";r=1;t=30'


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("<b>nobody</b>", ""),
    ],
)
def test_a_client_is_an_address_or_its_network(address, client):
    assert client_of({"client": (address, 1)}) == client


def ask(url, forwarded):
    headers = {"x-forwarded-for": forwarded}
    return httpx.get(f"{url}/api/v1/limits", headers=headers).status_code


def test_a_forwarded_address_is_not_believed_by_default(serving, settings):
    with serving(settings.model_copy(update={"requests_per_minute": 2})) as server:
        assert [ask(server.url, f"192.0.2.{n}") for n in range(3)] == [200, 200, 429]


def test_a_trusted_proxy_names_the_client(serving, settings):
    changed = {"requests_per_minute": 1, "trusted_proxies": ("127.0.0.0/8", "10.0.0.0/8")}
    with serving(settings.model_copy(update=changed)) as server:
        assert ask(server.url, "192.0.2.1") == 200
        assert ask(server.url, "192.0.2.1") == 429
        assert ask(server.url, "192.0.2.2") == 200
        assert ask(server.url, "8.8.8.8, 192.0.2.2") == 429, "only the last hop is believed"
        assert ask(server.url, "192.0.2.3, 10.1.1.1") == 200, "the last hop is a trusted proxy"
        assert ask(server.url, "<b>nobody</b>") == 200
        assert ask(server.url, "sesame") == 429, "all that are not addresses are one client"


# --- headers and bodies ---------------------------------------------------------------------------


def scope_of(*headers):
    return {"type": "http", "path": "/", "query_string": b"", "headers": list(headers)}


def run(layer, scope, receive=None):
    async def send(message):
        pass

    asyncio.run(layer(scope, receive, send))


async def read_body(scope, receive, send):
    while (await receive()).get("more_body"):
        pass


def test_target_query_and_headers_count():
    scope = {
        "path": "/é",
        "raw_path": b"/%c3%a9",
        "query_string": b"a=b",
        "headers": [(b"x", b"y")],
    }
    assert header_bytes(scope) == 7 + 3 + 2
    assert header_bytes({**scope, "raw_path": None}) == 2 + 3 + 2


def test_headers_that_are_too_large_are_rejected(client, problem):
    response = client.get("/healthz", headers={"x-a": "a" * MAX_HEADER_BYTES})
    assert problem(response, 431, "headers-too-large")["limit"] == MAX_HEADER_BYTES
    assert response.headers["connection"] == "close"
    assert client.get("/healthz", headers={"x-a": "a" * 20_000}).status_code == 200


def test_a_body_that_does_not_arrive_is_rejected():
    async def never():
        await asyncio.Event().wait()

    with pytest.raises(Problem) as caught:
        run(BodyTimeout(read_body, 0.01), scope_of((b"content-length", b"9")), never)
    assert (caught.value.status_code, caught.value.kind) == (408, "body-too-slow")
    assert caught.value.members["limit"] == 0.01


def test_the_deadline_ends_with_the_body():
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive():
        if len(messages) == 1:
            await asyncio.sleep(0.05)
        return messages.pop(0)

    async def application(scope, receive, send):
        await receive()
        await receive()

    run(BodyTimeout(application, 0.02), scope_of((b"content-length", b"0")), receive)
    assert messages == []
