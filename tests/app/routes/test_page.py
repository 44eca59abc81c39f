"""GET /: the page."""

import re

from headlight.static_files import PLOTLY_URL, STATIC_URL


def test_the_page_is_html_that_is_revalidated(client):
    response = client.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["cache-control"] == "no-cache"
    assert "Headlight" in response.text


def test_everything_the_page_names_comes_from_this_server(client):
    named = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"', client.get("/").text)
    assert PLOTLY_URL in named
    for path in named:
        assert path.startswith("/")
        response = client.get(path)
        assert response.status_code == 200, path
        assert "immutable" in response.headers["cache-control"], "a second load asks for none"


def test_the_page_has_no_inline_script_or_handler(client):
    text = client.get("/").text
    assert re.findall(r"<script[^>]*>([^<]+)</script>", text) == []
    assert re.findall(r"\son[a-z]+=", text) == []


def test_the_modules_of_the_first_drawing_are_named_beforehand(client):
    named = re.findall(rf'rel="modulepreload" href="{STATIC_URL}/js/([^"]+)"', client.get("/").text)
    assert {"main.js", "data/trace.js", "views/attention/attention.js"} <= set(named)
    assert "views/compare/compare.js" not in named, "loaded when the view is opened"
    assert len(named) == len(set(named))
