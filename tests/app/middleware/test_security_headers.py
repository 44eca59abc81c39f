"""Every response has the headers that keep the page safe."""

import hashlib
import re
from base64 import b64encode

import httpx
import pytest

SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
}
SAFE_POLICY = {
    "default-src": "'self'",
    "style-src-attr": "'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def policy_of(response):
    return response.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/api/v1/trace")],
)
def test_every_response_has_the_security_headers(client, method, path):
    response = client.request(method, path)
    assert {name: response.headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS
    policy = dict(part.split(" ", 1) for part in policy_of(response).split("; "))
    assert re.fullmatch(r"'self' 'sha256-[^' ]+'", policy.pop("script-src"))
    assert policy == SAFE_POLICY


@pytest.mark.parametrize("path", ["/", "/experiments", "/models/{}/card"])
def test_the_policy_names_the_only_inline_script_of_a_page(client, path):
    model = client.get("/api/v1/models").json()["models"][0]["id"]
    response = client.get(path.format(model))
    inline = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    hashes = [b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in inline]
    assert len(hashes) == 1
    assert f"script-src 'self' 'sha256-{hashes[0]}';" in policy_of(response)


def test_the_page_may_use_the_clipboard_and_no_sensor(client):
    policy = client.get("/").headers["permissions-policy"]
    assert {"camera=()", "microphone=()", "geolocation=()"} <= set(policy.split(", "))
    assert "clipboard" not in policy


def test_no_header_names_the_software(server):
    answer = httpx.get(f"{server.url}/")
    assert {"server", "x-powered-by"} & set(answer.headers) == set()
