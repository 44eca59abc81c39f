"""Files for the browser come from installed packages, compressed and asked about once."""

import gzip

import brotli
import pytest
import zstandard

from headlight.static_files import PLOTLY_URL, package_dir

PLOTLY = package_dir("plotly") / "package_data" / "plotly.min.js"
OWN_URL = "/static/js/main.js"
DECODERS = {
    "zstd": lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
    "br": brotli.decompress,
    "gzip": gzip.decompress,
}
CODINGS = ("identity", *DECODERS)


def raw_get(client, path, coding):
    """The answer and its bytes as they were sent."""
    with client.stream("GET", path, headers={"accept-encoding": coding}) as response:
        return response, b"".join(response.iter_raw())


def test_plotly_is_the_file_of_the_installed_package(client):
    response = client.get(PLOTLY_URL, headers={"accept-encoding": "identity"})
    assert response.headers["content-type"].startswith("text/javascript")
    assert "content-encoding" not in response.headers
    assert response.content == PLOTLY.read_bytes()


@pytest.mark.parametrize("coding", DECODERS)
def test_plotly_is_compressed_for_browsers_that_take_it(client, coding):
    response, raw = raw_get(client, PLOTLY_URL, coding)
    assert response.headers["content-encoding"] == coding
    assert response.headers["vary"] == "Accept-Encoding"
    assert len(raw) < 1_600_000
    assert DECODERS[coding](raw) == PLOTLY.read_bytes()


def test_plotly_is_not_sent_twice_to_one_browser(client):
    first = client.get(PLOTLY_URL)
    assert "max-age" in first.headers["cache-control"]
    again = client.get(PLOTLY_URL, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("path", [PLOTLY_URL, OWN_URL])
def test_a_tag_names_one_coding_of_a_file(client, path):
    """A cache that mixed them up would hand bytes to a browser that cannot read them."""
    tags = {coding: raw_get(client, path, coding)[0].headers["etag"] for coding in CODINGS}
    assert len(set(tags.values())) == len(CODINGS)
    for coding, other in (("gzip", "br"), ("identity", "gzip")):
        known = {"if-none-match": tags[other], "accept-encoding": coding}
        assert client.get(path, headers=known).status_code == 200
        known["if-none-match"] = f'"x", W/{tags[coding]}'
        assert client.get(path, headers=known).status_code == 304


def test_our_own_files_are_asked_about_each_time(client):
    response = client.get(OWN_URL)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "no-cache"
    again = client.get(OWN_URL, headers={"if-none-match": response.headers["etag"]})
    assert again.status_code == 304


def test_a_file_that_is_compressed_already_is_sent_as_it_is(client):
    response = client.get("/docs/files/favicon-32x32.png", headers={"accept-encoding": "gzip"})
    assert response.headers["content-type"] == "image/png"
    assert "content-encoding" not in response.headers


@pytest.mark.parametrize("path", ["no.js", "js", "../app/main.py", "js/..%2f..%2fapp%2fmain.py"])
def test_what_is_no_file_of_ours_is_not_found(client, problem, path):
    problem(client.get(f"/static/{path}"), 404, "not-found")


def test_the_head_of_a_file_has_its_headers_and_no_content(client):
    response = client.head(OWN_URL, headers={"accept-encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["etag"] == raw_get(client, OWN_URL, "gzip")[0].headers["etag"]


def test_a_browser_that_takes_a_file_in_no_way_at_all_is_told_so(client, problem):
    response = client.get(OWN_URL, headers={"accept-encoding": "deflate, identity;q=0"})
    assert problem(response, 406, "not-acceptable")["offered"] == ["br", "zstd", "gzip", "identity"]


def test_a_package_that_is_missing_is_named():
    with pytest.raises(ModuleNotFoundError, match="'no_such_package' is not installed"):
        package_dir("no_such_package")
