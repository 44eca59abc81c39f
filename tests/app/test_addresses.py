"""A server under a path of a proxy: what it is told, and the addresses that it gives."""

import re
from urllib.parse import urljoin

import pytest

from headlight.static_files import PLOTLY_URL

STATE = {"state": "text=a"}


@pytest.fixture
def under(client_with):
    return client_with(root_path="/a/b", trusted_proxies=("10.0.0.0/8",))


@pytest.mark.parametrize("prefix", ["", "/a/b"])
def test_a_proxy_may_keep_the_path_or_leave_it_out(under, prefix):
    assert under.get(f"{prefix}/api/v1/limits").status_code == 200
    assert under.get(f"{prefix}{PLOTLY_URL}").status_code == 200
    card = under.get(f"{prefix}/models/tiny/card")
    assert card.status_code == 200
    named = re.findall(r'(?:href|src)="([^"#]+)', card.text)
    assert {urljoin("/a/b/models/tiny/card", each)[:5] for each in named} == {"/a/b/"}


def test_the_path_itself_leads_to_its_pages(under):
    answer = under.get("/a/b", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/a/b/")


def test_links_are_below_the_path(under):
    made = under.post("/api/v1/links", json=STATE)
    link = made.json()
    assert made.headers["location"] == f"/a/b/api/v1/links/{link['id']}"
    assert link["path"] == f"/s/{link['id']}"
    code = under.get(f"/api/v1/links/{link['id']}/qr.svg").text
    assert f"<title>http://localhost/a/b/s/{link['id']}</title>" in code
    assert 'data-root="../"' in under.get(f"/s/{link['id']}").text
    assert 'data-root="./"' in under.get("/").text


def test_a_kept_trace_is_below_the_path(client_with):
    client = client_with(root_path="/a/b", cache_bytes=2**20)
    answer = client.post("/api/v1/trace", json={"text": "the cat"})
    assert answer.headers["content-location"].startswith("/a/b/api/v1/traces/")
    assert client.get(answer.headers["content-location"]).status_code == 200


@pytest.mark.parametrize(
    ("proxy", "told", "root"),
    [
        ("10.1.2.3", "/lens", "/lens"),
        ("10.1.2.3", "/lens/", "/lens"),
        ("10.1.2.3", "//evil.example", "/a/b"),
        ("10.1.2.3", "/\\evil", "/a/b"),
        ("192.0.2.1", "/lens", "/a/b"),
    ],
)
def test_only_a_trusted_proxy_tells_the_path(under, proxy, told, root):
    under._transport.client = (proxy, 4711)
    made = under.post("/api/v1/links", json=STATE, headers={"x-forwarded-prefix": told})
    assert made.headers["location"].partition("/api/")[0] == root


def test_rules_of_the_server_hold_below_the_path(client_with):
    client = client_with(root_path="/a", requests_per_minute=1, allowed_hosts=("x.example",))
    assert client.get("/a/healthz", headers={"host": "1.2.3.4"}).status_code == 200
    assert "ratelimit" not in client.get("/a/docs", headers={"host": "x.example"}).headers
    assert "ratelimit" in client.get("/a/api/v1/limits", headers={"host": "x.example"}).headers
