"""Every answer leaves with headers that keep the page safe."""

import pytest

SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/api/v1/trace")],
)
def test_every_answer_has_the_security_headers(client, method, path):
    response = client.request(method, path)
    assert {name: response.headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS
