"""The page behind a proxy that has the server under a path: no request leaves the path."""

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress

import httpx
import pytest
from playwright.sync_api import expect

PATH = "/a/b"
TEXT = "the cat sat on the mat"
pytestmark = pytest.mark.skipif(not shutil.which("caddy"), reason="`make test-all` installs Caddy")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def proxied(server, folder, told=""):
    """Yield the address of a Caddy that leaves the path out of what it passes on."""
    port = free_port()
    to = f"reverse_proxy {server.address[0]}:{server.address[1]} {{\n{told}\n}}"
    text = f"{{\nadmin off\n}}\nhttp://127.0.0.1:{port} {{\nhandle_path {PATH}/* {{\n{to}\n}}\n}}\n"
    (folder / "Caddyfile").write_text(text)
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}{PATH}"
            wait_for(f"{url}/healthz")
            yield url
        finally:
            process.terminate()


def wait_for(url):
    for _ in range(600):
        with suppress(httpx.TransportError):
            if httpx.get(url).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing answers at {url}")


@pytest.fixture(scope="module")
def server(start_server):
    with start_server(TRUSTED_PROXIES="127.0.0.1") as server:
        yield server


@pytest.fixture(scope="module", params=["untold", "told"])
def lens(request, server, tmp_path_factory):
    told = f"header_up X-Forwarded-Prefix {PATH}" if request.param == "told" else ""
    with proxied(server, tmp_path_factory.mktemp("caddy"), told) as url:
        yield url


@pytest.fixture
def reader(visit, lens):
    reader = visit(bypass_csp=False)
    reader.url, asked = lens, []
    reader.page.on("request", lambda request: asked.append(request.url))
    yield reader
    reader.hosts.clear()  # it is the proxy that was asked
    outside = [each for each in asked if not each.startswith((f"{lens}/", "data:", "blob:"))]
    assert outside == []
    assert asked


def test_a_sentence_is_read_a_head_is_opened_and_the_card_leads_back(reader, lens):
    reader.open(text=TEXT, model="plain")
    reader.open_view("head", model="plain")
    reader.page.goto(f"{lens}/models/plain/card")
    reader.page.get_by_role("link", name="Use this model").click()
    reader.wait_until_drawn()
    assert reader.page.url == f"{lens}/#{reader.fragment}"
    assert "model=plain" in reader.fragment


def test_a_short_link_opens_below_the_path(reader, lens):
    made = httpx.post(f"{lens}/api/v1/links", json={"state": "text=a+light&model=plain"}).json()
    reader.page.goto(lens + made["path"])
    reader.wait_until_drawn()
    assert reader.page.url == f"{lens}/#" + reader.fragment
    assert "text=a+light" in reader.fragment
    there = reader.page.locator('a[href$="experiments"]').first
    assert there.evaluate("(link) => link.href") == f"{lens}/experiments"


def test_the_dialog_makes_a_link_and_a_code_below_the_path(reader, lens):
    reader.open(text=TEXT, model="plain")
    reader.page.get_by_role("button", name="Share", exact=True).click()
    with reader.page.expect_response(lambda answer: answer.url.endswith("/api/v1/links")) as made:
        reader.page.get_by_role("button", name="Copy link").click()
    address = reader.page.get_by_label("Link to this view")
    expect(address).to_have_value(lens + made.value.json()["path"])


def test_an_experiment_runs_and_the_documentation_of_the_api_is_read(reader, lens):
    reader.page.goto(f"{lens}/experiments#experiment=scaling")
    expect(reader.page.locator("#main[aria-busy=false]")).to_be_attached(timeout=60_000)
    expect(reader.page.locator(".plot .main-svg").first).to_be_attached(timeout=60_000)
    reader.page.goto(f"{lens}/docs")
    expect(reader.page.locator(".opblock").first).to_be_visible(timeout=60_000)
    shown = reader.page.locator(".servers option").first
    expect(shown).to_have_attribute("value", f"{PATH}/")


def test_a_saved_page_needs_no_server(reader, tmp_path):
    reader.open(text=TEXT, model="plain")
    saved = reader.save_page(tmp_path)
    assert PATH not in saved.read_text().partition("<body")[0]
