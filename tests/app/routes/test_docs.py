"""GET /docs: Swagger UI from this server alone."""

import re


def test_the_page_loads_nothing_from_another_host_and_has_no_inline_script(client):
    page = client.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.text
    assert re.findall(r"<script[^>]*>([^<]+)</script>", page.text) == []


def test_everything_the_page_names_is_there(client):
    named = re.findall(r'(?:src|href)="([^"]+)"', client.get("/docs").text)
    assert len(named) == 4
    for path in named:
        assert client.get(path).status_code == 200, path


def test_the_start_script_opens_our_own_description(client):
    script = client.get("/docs/start.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "'/openapi.json'" in script.text
    assert client.get("/openapi.json").json()["info"]["title"] == "Headlight"


def test_only_the_files_of_swagger_ui_are_served(client, problem):
    problem(client.get("/docs/files/../__init__.py"), 404, "not-found")
    problem(client.get("/docs/files/%2e%2e/__init__.py"), 404, "not-found")
