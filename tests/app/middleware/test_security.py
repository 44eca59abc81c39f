"""Allowed hosts, API keys, listed origins, and the headers that keep the page safe."""

import hashlib
import hmac
import re
from base64 import b64encode

import httpx
import pytest
from pydantic import SecretStr

from headlight.routes import ROUTERS
from headlight.static_files import STATIC_URL
from tests.app.conftest import client_of

ADA, GRACE = "ada-0123456789abcdef", "grace-0123456789abcdef"
NOTEBOOK = "https://notebook.example.org"
PREFLIGHT = {
    "origin": NOTEBOOK,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type, authorization, x-request-id",
}


@pytest.fixture(scope="module")
def keyed(settings):
    keys = (SecretStr(ADA), SecretStr(GRACE))
    with client_of(settings, api_keys=keys, cors_origins=(NOTEBOOK,)) as client:
        yield client


def bearer(key):
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::2]"])
def test_another_host_is_rejected(client, problem, host):
    problem(client.get("/api/v1/limits", headers={"host": host}), 400, "host-refused")


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000"])
def test_names_of_this_machine_are_answered(client, host):
    assert client.get("/api/v1/limits", headers={"host": host}).status_code == 200


def test_every_host_may_be_allowed(client_with):
    client = client_with(allowed_hosts=("*",))
    assert client.get("/api/v1/limits", headers={"host": "pod-7"}).status_code == 200


def test_probes_are_answered_under_any_name(client_with, problem):
    client = client_with(allowed_hosts=("headlight.example.org",))
    probe = {"host": "127.0.0.1:8000"}
    assert client.get("/healthz", headers=probe).status_code == 200
    assert client.get("/readyz", headers=probe).status_code in (200, 503)
    problem(client.get("/healthz/..", headers=probe), 400, "host-refused")


@pytest.mark.parametrize(
    "headers", [bearer(ADA), {"x-api-key": GRACE}, {"authorization": f"bearer  {ADA} "}]
)
@pytest.mark.parametrize("path", ["/api/v1/limits", "/metrics"])
def test_each_key_opens_the_api(keyed, headers, path):
    assert keyed.get(path, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/limits", "/api/v1/nothing", "/api/", "/metrics"])
def test_without_a_key_the_api_is_closed(keyed, problem, path):
    answer = keyed.get(path)
    problem(answer, 401, "key-missing")
    assert answer.headers["www-authenticate"] == 'Bearer realm="Headlight"'
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "shown", [ADA[:-1], ADA + "x", ADA.upper(), f"{ADA},{GRACE}", "x" * 5000, "é", ADA[::-1]]
)
def test_an_invalid_key_is_rejected_and_not_repeated(keyed, problem, shown):
    for headers in (bearer(shown), {"x-api-key": shown}):
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = keyed.post("/api/v1/trace", headers=encoded, json={"text": "a"})
        problem(answer, 401, "key-refused")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert shown not in answer.text


@pytest.mark.parametrize("authorization", ["Basic YTpi", "Bearer", "Bearer ", ADA, ""])
def test_only_a_bearer_token_is_a_key(keyed, problem, authorization):
    answer = keyed.get("/api/v1/limits", headers={"authorization": authorization})
    problem(answer, 401, "key-missing")


@pytest.mark.parametrize("path", ["/", "/healthz", "/docs", "/openapi.json"])
def test_the_page_and_the_probes_need_no_key(keyed, path):
    assert keyed.get(path).status_code == 200


def test_every_key_is_compared_in_constant_time(client_with, monkeypatch):
    client, compared = client_with(api_keys=(SecretStr(ADA), SecretStr(GRACE))), []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    for key in (ADA, GRACE, "nobody-0123456789abcdef"):
        compared.clear()
        client.get("/api/v1/limits", headers=bearer(key))
        assert [(len(a), len(b)) for a, b in compared] == [(32, 32)] * 2


def test_no_response_and_no_log_line_holds_a_key(keyed, caplog):
    caplog.set_level("DEBUG")
    for path in ("/", "/metrics", "/openapi.json", "/api/v1/limits", "/nowhere"):
        answer = keyed.get(path, headers=bearer(ADA))
        assert ADA not in answer.text + str(answer.headers)
    assert ADA not in caplog.text + repr(keyed.app.state.services.settings)


def test_the_documentation_demands_a_key_only_if_one_is_needed(keyed, client):
    document = keyed.get("/openapi.json").json()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "header"}
    assert document["security"] == [{"bearer": []}, {"header": []}]
    assert {} in client.get("/openapi.json").json()["security"]


def test_no_origin_is_allowed_by_default(client):
    for answer in (
        client.get("/api/v1/limits", headers={"origin": NOTEBOOK}),
        client.options("/api/v1/trace", headers=PREFLIGHT),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("headers", [bearer(ADA), {}], ids=["answer", "problem"])
def test_a_listed_origin_may_read_answers_and_problems(keyed, headers):
    answer = keyed.get("/api/v1/limits", headers={"origin": NOTEBOOK, **headers})
    assert answer.headers["access-control-allow-origin"] == NOTEBOOK
    assert "Origin" in answer.headers["vary"]
    exposed = set(answer.headers["access-control-expose-headers"].split(", "))
    assert {"ETag", "X-Request-ID", "Content-Location", "Retry-After"} <= exposed
    assert "access-control-allow-credentials" not in answer.headers


def test_a_preflight_needs_no_key(keyed):
    answer = keyed.options("/api/v1/trace", headers=PREFLIGHT)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == NOTEBOOK
    assert "POST" in answer.headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    "changed", [{"origin": "https://evil.example"}, {"access-control-request-method": "DELETE"}]
)
def test_a_rejected_preflight_is_a_problem(keyed, problem, changed):
    answer = keyed.options("/api/v1/trace", headers=PREFLIGHT | changed)
    problem(answer, 400, "preflight-refused")
    assert "Origin" in answer.headers["vary"].split(", ")
    assert answer.headers.get("access-control-allow-origin") in (None, NOTEBOOK)


def test_any_origin_may_be_allowed_but_never_with_cookies(client_with):
    client = client_with(cors_origins=("*",))
    answer = client.get("/api/v1/limits", headers={"origin": "null", "cookie": "a=b"})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


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
    scripts = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    hashes = [b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(hashes) == 1
    assert f"script-src 'self' 'sha256-{hashes[0]}';" in policy_of(response)


def test_the_page_may_use_the_clipboard_and_no_sensor(client):
    policy = client.get("/").headers["permissions-policy"]
    assert {"camera=()", "microphone=()", "geolocation=()"} <= set(policy.split(", "))
    assert "clipboard" not in policy


def test_no_header_names_the_software(server):
    answer = httpx.get(f"{server.url}/")
    assert {"server", "x-powered-by"} & set(answer.headers) == set()


def all_paths():
    """Return a path of every route and mount of the application."""
    routes = [route for router in ROUTERS for route in router.routes]
    paths = {re.sub(r"\{\w+\}", "tiny", route.path) for route in routes}
    return sorted({*paths, "/openapi.json", f"{STATIC_URL}/logo.svg", "/static/x", "/nothing"})


OPEN = {"/", "/experiments", "/docs", "/docs/start.js", "/healthz", "/readyz", "/openapi.json"}
OPEN_FOLDERS = "/static/", "/docs/files/", "/s/"


@pytest.mark.parametrize("path", all_paths())
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_every_route_needs_a_key_but_those_that_are_listed(keyed, method, path):
    is_open = path in OPEN or path.startswith(OPEN_FOLDERS)
    answer = keyed.request(method, path)
    assert (answer.status_code != 401) == is_open, answer.text
    if not is_open:
        assert "dense" not in answer.text, "a refusal names no model"


def test_every_route_that_needs_a_key_has_a_rate(client_with):
    client = client_with(requests_per_minute=1)
    for path in all_paths():
        is_unrated = path in OPEN or path.startswith(OPEN_FOLDERS[:2])
        assert ("ratelimit" in client.get(path).headers) != is_unrated, path


def test_a_browser_asks_for_the_key_of_a_card_and_calls_do_not_take_it(keyed):
    page = {"accept": "text/html"}
    asked = keyed.get("/models/tiny/card", headers=page)
    assert asked.headers["www-authenticate"].startswith("Basic ")
    assert keyed.get("/models/tiny/card", headers=page, auth=("", GRACE)).status_code == 200
    assert keyed.get("/models/tiny/card", headers=page, auth=("", "no")).status_code == 401
    broken = {"authorization": "Basic \xff=".encode("latin-1")}
    assert keyed.get("/models/tiny/card", headers=broken).status_code == 401
    call = keyed.get("/api/v1/limits", auth=("", GRACE), headers=page)
    assert (call.status_code, call.headers["www-authenticate"][:6]) == (401, "Bearer")


def test_an_answer_to_a_key_is_kept_by_no_proxy(keyed):
    for path in all_paths():
        answer = keyed.get(path, headers={"x-api-key": ADA})
        if path not in OPEN and not path.startswith(OPEN_FOLDERS) and answer.status_code < 400:
            told = answer.headers["cache-control"]
            assert "private" in told or "no-store" in told, path
            assert "public" not in told, path


def test_head_and_options_are_answered_on_every_route(client):
    for path in all_paths():
        options, get = client.options(path), client.get(path)
        if options.status_code == 404:
            assert get.status_code == 404, path
            continue
        assert options.status_code == 204, path
        assert "OPTIONS" in options.headers["allow"]
        if "GET" in options.headers["allow"]:
            assert client.head(path).status_code == get.status_code
            assert client.head(path).content == b""


def test_only_listed_origins_may_frame_a_view_and_only_at_its_address(client, client_with):
    framing = client_with(embed_origins=(NOTEBOOK,))
    assert f"frame-ancestors {NOTEBOOK}" in policy_of(framing.get("/?embed"))
    assert 'class="is-embedded"' in framing.get("/?embed").text
    for answer in (framing.get("/"), framing.get("/docs?embed"), client.get("/?embed")):
        assert policy_of(answer).endswith("frame-ancestors 'none'")
