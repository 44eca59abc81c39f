"""Files for the browser come from installed packages, under a hash, compressed and for good."""

import pytest

from headlight.static_files import DOCS_URL, PLOTLY_URL, STATIC, STATIC_URL, package_dir
from tests.app.reading import DECODERS, raw_get

FILES = {
    PLOTLY_URL: STATIC / "vendor" / "plotly" / "plotly.min.js",
    f"{STATIC_URL}/js/main.js": STATIC / "js" / "main.js",
    f"{DOCS_URL}/swagger-ui.css": package_dir("fastapi_swagger") / "resources" / "swagger-ui.css",
}


@pytest.mark.parametrize("url", FILES)
def test_a_file_comes_in_each_coding_and_is_cached_for_good(client, url):
    expected = FILES[url].read_bytes()
    plain, raw = raw_get(client, url, accept_encoding="identity")
    assert raw == expected
    assert plain.headers["content-type"].startswith("text/")
    for coding in ("zstd", "br", "gzip"):
        response, raw = raw_get(client, url, accept_encoding=coding)
        assert response.headers["content-encoding"] == coding
        assert response.headers["vary"] == "Accept-Encoding"
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert len(raw) < len(expected)
        assert DECODERS[coding](raw) == expected


def test_plotly_is_small_on_the_wire(client):
    assert len(raw_get(client, PLOTLY_URL, accept_encoding="br")[1]) < 450_000


def test_a_picture_is_sent_as_it_is(client):
    response = client.get(f"{DOCS_URL}/favicon-32x32.png", headers={"accept-encoding": "gzip"})
    assert response.headers["content-type"] == "image/png"
    assert "content-encoding" not in response.headers


def test_a_browser_that_refuses_every_coding_is_told_so(client, problem):
    headers = {"accept-encoding": "deflate, identity;q=0"}
    response = client.get(f"{STATIC_URL}/js/main.js", headers=headers)
    assert problem(response, 406, "not-acceptable")["offered"] == ["br", "zstd", "gzip", "identity"]


def test_a_package_that_is_missing_is_named():
    with pytest.raises(ModuleNotFoundError, match="'no_such_package' is not installed"):
        package_dir("no_such_package")
