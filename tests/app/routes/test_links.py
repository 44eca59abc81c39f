"""POST /links, GET /links/{id} with its QR code, and the page at /s/{id}."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from headlight.serving.links import FILE
from tests.app.conftest import client_of

LINKS = "/api/v1/links"
STATE = "text=caf%C3%A9+%22%0Aa%3Cb&head=0.3&target=%F0%9F%92%A1"
UNKNOWN = "0123456789abcdefghijkl"
KEY = "a-key-of-these-tests"


def shared(client, state=STATE, **options):
    response = client.post(LINKS, json={"state": state}, **options)
    assert response.status_code == 201, response.text
    return response.json()


def test_a_link_restores_the_state(client):
    response = client.post(LINKS, json={"state": STATE})
    link = response.json()
    assert link["path"] == f"/s/{link['id']}"
    assert response.headers["location"] == f"{LINKS}/{link['id']}"
    assert client.get(response.headers["location"]).json() == {"state": STATE}
    remaining = datetime.fromisoformat(link["expires"]) - datetime.now(UTC)
    assert timedelta(days=29) < remaining <= timedelta(days=30)


def test_a_state_may_be_empty_or_as_long_as_a_link_may_be(client):
    for state in ("", "text=" + "a" * (262_144 - 5)):
        assert client.get(f"{LINKS}/{shared(client, state)['id']}").json() == {"state": state}


@pytest.mark.parametrize(
    "state",
    [
        "text=a b",
        "text=a\nb",
        "text=a\u007f",
        "text=a\u0000",
        "text=%00",
        "text=é",
        'text="',
        "text=<b>",
        "text=100%",
        "text=%g1",
        "text=%ff",
        "text=%C3",
        "text=%ED%A0%80",
        "text=%C0%80",
        5,
        None,
        ["text=a"],
    ],
)
def test_what_no_browser_writes_as_a_fragment_is_rejected(client, problem, state):
    body = problem(client.post(LINKS, json={"state": state}), 422, "invalid-request")
    assert body["errors"][0]["field"] == "state"


def test_the_page_is_served_at_a_link(client):
    at_link, page = client.get(shared(client)["path"]), client.get("/")
    assert (at_link.status_code, at_link.text) == (200, page.text.replace('"./', '"../'))
    assert at_link.headers["cache-control"] == page.headers["cache-control"]


def test_an_unknown_link_is_a_problem_and_a_page_to_start_from(client, problem):
    problem(client.get(f"{LINKS}/{UNKNOWN}"), 404, "unknown-link")
    problem(client.get(f"{LINKS}/{UNKNOWN}/qr.svg"), 404, "unknown-link")
    page = client.get(f"/s/{UNKNOWN}")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert page.text == client.get("/").text.replace('"./', '"../')


@pytest.mark.parametrize("link_id", ["short", "a" * 23, "a" * 21 + "é", "' OR 1 --aaaaaaaaaaaaa"])
def test_what_is_no_id_is_rejected(client, problem, link_id):
    problem(client.get(f"{LINKS}/{link_id}"), 422, "invalid-request")
    assert client.get(f"/s/{link_id}").status_code == 404


def test_a_page_shows_no_markup_of_an_address(client):
    page = client.get("/s/%3Cscript%3Ealert(1)")
    assert page.headers["content-type"].startswith("text/html")
    assert page.status_code == 404
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("headlight.localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("127.8.9.1", True),
        ("[::1]:8000", True),
        ("light.example.org", False),
        ("192.0.2.7:8000", False),
        ("localhost.example.org", False),
        ("[2001:db8::1]", False),
    ],
)
def test_a_link_says_whether_it_opens_on_this_machine_only(client_with, host, is_local):
    client = client_with(allowed_hosts=("*",))
    assert shared(client, headers={"host": host})["local"] is is_local


def test_a_qr_code_is_that_of_the_absolute_link(client_with, monkeypatch):
    import segno

    made = []
    real = segno.make_qr
    monkeypatch.setattr(segno, "make_qr", lambda *a, **k: made.append(a[0]) or real(*a, **k))
    client = client_with(allowed_hosts=("light.example.org",))
    host = {"host": "light.example.org:8443"}
    link = shared(client, headers=host)
    response = client.get(f"{LINKS}/{link['id']}/qr.svg", headers=host)
    assert response.headers["content-type"] == "image/svg+xml"
    assert {"immutable", "private"} <= set(response.headers["cache-control"].split(", "))
    assert made == [f"http://light.example.org:8443{link['path']}"]
    drawing = ElementTree.fromstring(response.text)
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert drawing.findtext("{http://www.w3.org/2000/svg}title") == made[0]
    assert "viewBox" in drawing.attrib


def test_a_qr_code_has_the_scheme_that_a_trusted_proxy_names(client_with):
    client = client_with(trusted_proxies=("0.0.0.0/0",))
    client = TestClient(client.app, base_url="http://localhost", client=("10.0.0.1", 5))
    link = shared(client)
    secure = client.get(f"{LINKS}/{link['id']}/qr.svg", headers={"x-forwarded-proto": "https"})
    assert f"https://localhost{link['path']}" in secure.text


def test_a_host_that_is_not_allowed_gets_no_code(client, client_with, problem):
    address = f"{LINKS}/{shared(client)['id']}/qr.svg"
    problem(client.get(address, headers={"host": "evil.example"}), 400, "host-refused")
    anywhere = client_with(allowed_hosts=("*",))
    problem(anywhere.get(address, headers={"host": "a" * 5_000}), 400, "host-refused")


def test_with_keys_the_api_needs_one_and_the_page_does_not(client_with, problem):
    client, key = client_with(api_keys=(SecretStr(KEY),)), {"x-api-key": KEY}
    problem(client.post(LINKS, json={"state": STATE}), 401, "key-missing")
    link = shared(client, headers=key)
    address = f"{LINKS}/{link['id']}"
    for path in (address, f"{address}/qr.svg"):
        problem(client.get(path), 401, "key-missing")
        assert client.get(path, headers=key).status_code == 200
    page = client.get(link["path"])
    assert page.status_code == 200
    assert STATE not in page.text


def test_links_that_are_off_have_a_page_that_says_so(client_with, problem):
    client = client_with(link_days=0)
    problem(client.post(LINKS, json={"state": STATE}), 404, "links-off")
    problem(client.get(f"{LINKS}/{UNKNOWN}"), 404, "links-off")
    assert client.get(f"/s/{UNKNOWN}").status_code == 404
    assert client.get("/api/v1/limits").json()["link_days"]["value"] == 0


def test_a_file_that_cannot_be_used_leaves_the_rest_of_the_server_alone(
    settings, tmp_path, problem
):
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    with client_of(settings, links_dir=tmp_path) as client:
        problem(client.post(LINKS, json={"state": STATE}), 503, "links-unavailable")
        problem(client.get(f"{LINKS}/{UNKNOWN}"), 503, "links-unavailable")
        page = client.get(f"/s/{UNKNOWN}")
        assert page.status_code == 503
        assert page.headers["content-type"].startswith("text/html")
        assert client.get("/").status_code == 200
        assert client.post("/api/v1/tokenize", json={"text": "the cat"}).status_code == 200


def test_a_log_holds_neither_a_state_nor_an_id_which_opens_it(client, caplog):
    with caplog.at_level("DEBUG"):
        link = shared(client, "text=secretword")
        client.get(link["path"])
    lines = "".join(str(vars(record)) for record in caplog.records if "headlight" in record.name)
    assert "/s/{link_id}" in lines
    assert "secretword" not in lines
    assert link["id"] not in lines
