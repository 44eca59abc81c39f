"""Every response has the headers that keep the page safe."""

import httpx
import pytest

SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/api/v1/trace")],
)
def test_every_response_has_the_security_headers(client, method, path):
    response = client.request(method, path)
    assert {name: response.headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS


def test_the_page_may_use_the_clipboard_and_no_sensor(client):
    policy = client.get("/").headers["permissions-policy"]
    assert {"camera=()", "microphone=()", "geolocation=()"} <= set(policy.split(", "))
    assert "clipboard" not in policy


def test_no_header_names_the_software(server):
    answer = httpx.get(f"{server.url}/")
    assert {"server", "x-powered-by"} & set(answer.headers) == set()
