"""GET /, GET /experiments and the card of a model: the pages."""

import re
from urllib.parse import urljoin

import pytest

from headlight.joined_scripts import AWAITED, DYNAMIC, SCRIPTS, joined
from headlight.model.experiments.experiment_registry import EXPERIMENTS
from headlight.static_files import PLOTLY_URL, STATIC_URL, THEME_SCRIPT


@pytest.fixture(params=["/", "/experiments", "/models/tiny/card"])
def path(request):
    return request.param


def test_a_page_is_html_that_is_revalidated(client, path):
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["cache-control"] == "no-cache"
    assert "Headlight" in response.text


def test_everything_a_page_names_comes_from_this_server(client, path):
    found = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"', client.get(path).text)
    assert not any(file.startswith("/") for file in found), "a proxy may have it under a path"
    named = [urljoin(path, file) for file in found]
    assert (PLOTLY_URL in named) == (path != "/models/tiny/card")
    for file in named:
        if file.startswith("data:"):
            continue  # the logo is in the page
        response = client.get(file)
        assert response.status_code == 200, file
        if "/api/" in file:
            continue  # the answer that the page asks for first, asked for before its code is here
        assert "immutable" in response.headers["cache-control"], "a second load asks for none"


def test_the_one_inline_script_is_the_theme(client, path):
    text = client.get(path).text
    assert re.findall(r"<script[^>]*>([^<]+)</script>", text) == [THEME_SCRIPT]
    assert re.findall(r"\son[a-z]+=", text) == []


def test_a_page_has_one_script_and_what_is_opened_later_another(client):
    (named,) = re.findall(r'<script src="(.+?)" type="module">', client.get("/").text)
    first, later = (client.get(urljoin(named, each)) for each in ("main.js", "views/word/word.js"))
    assert first.headers["content-type"].startswith("text/javascript")
    registered = [
        set(re.findall(r"^\$parts\['(.+?)'\]", each.text, re.M)) for each in (first, later)
    ]
    assert {"main.js", "trace/trace.js", "views/attention/attention.js"} <= registered[0]
    assert "views/word/word.js" in registered[1] - registered[0]
    assert not registered[0] & registered[1], "sent once"


OF_OTHER_PAGES = {"experiments.js", "on_paper.js"}
"""Modules that a saved page never asks for."""


@pytest.mark.parametrize(("entry", "follow"), [("main.js", DYNAMIC), ("archived.js", AWAITED)])
def test_what_a_module_takes_is_returned_by_another(entry, follow):
    code = joined([entry], follow)
    parts = re.findall(r"^\$parts\['(.+?)'\].+?^return \{ (.*?) \};\n}\);$", code, re.M | re.S)
    exports = {name: set(re.split(r",\s*", text)) for name, text in parts}
    taken = re.findall(r"^const \{([^}]*)\} = \$need\('(.+?)'\);", code, re.M)
    assert len(taken) > 300
    for names, name in taken:
        assert set(re.findall(r"(?<!: )\b(?<!\$)(\w+)", names)) <= exports[name], name
    loaded = set(re.findall(r"\$load\('(.+?)'\)", code))
    assert loaded - set(exports) <= (set() if follow is DYNAMIC else OF_OTHER_PAGES)
    assert not re.findall(r"^(?:import|export) .*;$", code, re.M)  # not of copied Python


def test_the_page_of_experiments_has_a_tab_for_each_with_its_code(client):
    page = client.get("/experiments").text
    assert re.findall(r'id="tab-(\w+)"', page) == list(EXPERIMENTS)
    for address in re.findall(r'data-module="([^"]+)"', page):
        assert client.get(urljoin(f"{STATIC_URL}/js/", address)).status_code == 200, address
    drawn = {path.stem for path in (SCRIPTS / "views" / "experiments").glob("*.js")}
    assert drawn == set(EXPERIMENTS)


def test_pages_lead_to_each_other(client):
    assert 'href="./experiments"' in client.get("/").text
    assert 'href="./"' in client.get("/experiments").text


@pytest.mark.parametrize("address", ["/nope", "/models/nope/card"])
def test_a_browser_at_a_wrong_address_gets_a_page_and_a_program_a_problem(client, address):
    response = client.get(address, headers={"Accept": "text/html,*/*;q=0.8"})
    assert response.status_code == 404
    assert response.headers["content-type"].startswith("text/html")
    assert "nope" in response.text
    home = re.search(r'<a href="([./]+)">', response.text)[1]
    assert urljoin(address, home) == "/"
    assert client.get(address).json()["status"] == 404
    asked = client.get("/api/v1/models/nope", headers={"Accept": "text/html"})
    assert asked.json()["status"] == 404
