"""Files for the browser come from installed packages, compressed and asked about once."""

import gzip

import pytest

from app.assets import HOME, PLOTLY_URL, package_dir


def test_plotly_is_the_file_of_the_installed_package(client):
    expected = (package_dir("plotly") / "package_data" / "plotly.min.js").read_bytes()
    response = client.get(PLOTLY_URL, headers={"accept-encoding": "identity"})
    assert response.headers["content-type"].startswith("text/javascript")
    assert "content-encoding" not in response.headers
    assert response.content == expected


def test_plotly_is_compressed_for_browsers_that_take_it(client):
    with client.stream("GET", PLOTLY_URL, headers={"accept-encoding": "gzip, br"}) as response:
        raw = b"".join(response.iter_raw())
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["vary"] == "Accept-Encoding"
    assert len(raw) < 2_000_000
    assert gzip.decompress(raw) == client.get(PLOTLY_URL).content


def test_plotly_is_not_sent_twice_to_one_browser(client):
    first = client.get(PLOTLY_URL)
    assert "max-age" in first.headers["cache-control"]
    again = client.get(PLOTLY_URL, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_our_own_files_are_asked_about_each_time(client):
    path = next((HOME / "static").rglob("*.js")).relative_to(HOME).as_posix()
    response = client.get(f"/{path}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "no-cache"
    again = client.get(f"/{path}", headers={"if-none-match": response.headers["etag"]})
    assert again.status_code == 304


def test_a_package_that_is_missing_is_named():
    with pytest.raises(ModuleNotFoundError, match="'no_such_package' is not installed"):
        package_dir("no_such_package")
