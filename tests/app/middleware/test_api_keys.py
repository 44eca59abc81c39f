"""Who shows no key is not answered, where keys were given; nobody learns of one from a refusal."""

import hmac

import pytest
from pydantic import SecretStr

ADA, GRACE = "ada-0123456789abcdef", "grace-0123456789abcdef"


@pytest.fixture
def keyed(client_with):
    return client_with(api_keys=(SecretStr(ADA), SecretStr(GRACE)))


def bearer(key):
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "headers", [bearer(ADA), {"x-api-key": GRACE}, {"authorization": f"bearer  {ADA} "}]
)
@pytest.mark.parametrize("path", ["/api/v1/limits", "/metrics"])
def test_any_of_the_keys_opens_the_api(keyed, headers, path):
    assert keyed.get(path, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/limits", "/api/v1/nothing", "/api/", "/metrics"])
def test_without_a_key_nothing_is_told(keyed, problem, path):
    answer = keyed.get(path)
    body = problem(answer, 401, "key-missing")
    assert "Authorization: Bearer" in body["detail"]
    assert answer.headers["www-authenticate"] == 'Bearer realm="Headlight"'
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "shown",
    [ADA[:-1], ADA + "x", ADA.upper(), f"{ADA},{GRACE}", "x" * 5000, "é", "' OR 1=1", ADA[::-1]],
)
def test_a_key_that_is_none_of_them_is_refused(keyed, problem, shown):
    for headers in (bearer(shown), {"x-api-key": shown}):
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = keyed.post("/api/v1/trace", headers=encoded, json={"text": "a"})
        problem(answer, 401, "key-refused")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert shown not in answer.text


@pytest.mark.parametrize("authorization", ["Basic YTpi", "Bearer", "Bearer ", ADA, ""])
def test_what_is_no_bearer_token_is_no_key(keyed, problem, authorization):
    answer = keyed.get("/api/v1/limits", headers={"authorization": authorization})
    problem(answer, 401, "key-missing")


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/docs", "/openapi.json", "/static/css/page.css", "/models/tiny/card"]
)
def test_the_page_its_files_and_the_probes_are_open(keyed, path):
    assert keyed.get(path).status_code == 200


def test_every_key_is_compared_however_soon_one_fits(keyed, monkeypatch):
    compared = []
    real = hmac.compare_digest

    def compare(a, b):
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for key in (ADA, GRACE, "nobody-0123456789abcdef"):
        keyed.get("/api/v1/limits", headers=bearer(key))
        assert len(compared) == 2
        assert all(len(a) == len(b) == 32 for a, b in compared)
        compared.clear()


def test_no_answer_and_no_line_of_the_log_holds_a_key(keyed, caplog):
    caplog.set_level("DEBUG")
    for path in ("/", "/metrics", "/openapi.json", "/api/v1/limits", "/nowhere"):
        answer = keyed.get(path, headers=bearer(ADA))
        assert ADA not in answer.text + str(answer.headers)
    assert ADA not in caplog.text
    assert ADA not in repr(keyed.app.state.services.settings)


def test_the_documentation_asks_for_a_key_only_where_one_is_needed(keyed, client):
    document = keyed.get("/openapi.json").json()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "header"}
    assert document["security"] == [{"bearer": []}, {"header": []}]
    assert "security" not in client.get("/openapi.json").json()


def test_who_is_refused_is_counted_by_the_route_that_was_asked_for(keyed):
    assert keyed.get("/api/v1/models/tiny").status_code == 401
    registry = keyed.app.state.services.metrics.registry
    labels = {"route": "/api/v1/models/{model}", "method": "GET", "status": "401"}
    assert registry.get_sample_value("headlight_requests_total", labels) == 1
