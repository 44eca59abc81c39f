"""The site that `headlight site` writes, opened from a disk and from a static server."""

import contextlib
import functools
import http.server
import json
import subprocess
import sys
import threading
import time

import pytest

from headlight.site.folder import MARK
from tests.browser.conftest import SECONDS

LOUD = ("error", "warning")
DRAWN = ".plot .main-svg"
HELD = """async () => {
    const [name] = await caches.keys();
    return (await (await caches.open(name)).keys()).length;
}"""
OTHER = "A sentence that nobody ever wrote."


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the whole site, whose answers take some minutes."""
    out = tmp_path_factory.mktemp("sites") / "site"
    command = [sys.executable, "-m", "headlight.cli", "site", str(out)]
    subprocess.run([*command, "--server", "https://example.org"], check=True, capture_output=True)
    return out


@contextlib.contextmanager
def hosting(folder):
    """Serve the folder above a site, for a `with` block, and yield the site's address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder.parent)
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{folder.name}/"
        server.shutdown()


@pytest.fixture(params=["disk", "host"])
def address(request, site):
    """Yield the address of the site, from a disk and from a host."""
    if request.param == "disk":
        yield f"{site.as_uri()}/"
    else:
        with hosting(site) as url:
            yield url


@pytest.fixture
def page(request, new_context, address):
    """Yield a page; fail if anything went wrong, or another host was asked."""
    page = new_context(getattr(request, "param", 1440), 900).new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type in LOUD else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda asking: asked.append(asking.url))
    yield page
    page.context.close()
    assert wrong == []
    assert all(url.startswith((address, "blob:", "data:")) for url in asked)


def test_a_site_that_ships_is_small(site):
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert size < 30e6


@pytest.mark.parametrize("page", [1440, 390], indirect=True)
def test_every_model_and_example_is_read(page, address):
    page.goto(f"{address}index.html")
    page.wait_for_selector(DRAWN, state="attached")
    models = page.locator("#model option:enabled").evaluate_all(
        "all => all.map(each => each.value)"
    )
    for model in models:
        page.locator("#model").select_option(model)
        page.wait_for_function(
            "model => location.hash.includes(model) || model === 'stories'", arg=model
        )
        examples = page.locator("#examples button")
        for number in range(examples.count()):
            examples.nth(number).click()
            text = examples.nth(number).get_attribute("data-text")
            page.wait_for_function(
                "text => document.querySelector('#text').value === text", arg=text
            )
            page.wait_for_selector(f"#results:not([hidden]) {DRAWN}", state="attached")
            assert not page.locator("#notice").is_visible(), (model, text)


def test_views_and_heads_are_drawn(page, address):
    page.goto(f"{address}index.html")
    page.wait_for_selector(DRAWN, state="attached")
    for view in ("why", "word", "next_token", "stream", "experts", "positions", "attention"):
        page.evaluate("view => { location.hash = `view=${view}`; }", view)
        page.locator(f"#view-{view} {DRAWN}").first.wait_for(state="attached")
        assert not page.locator("#notice").is_visible()
    page.locator("#map [data-head]").first.click() if page.locator(
        "#map [data-head]"
    ).count() else None


def test_another_sentence_is_told_with_the_command_and_the_server(page, address):
    page.goto(f"{address}index.html")
    page.wait_for_selector(DRAWN, state="attached")
    page.fill("#text", OTHER)
    page.keyboard.press("Enter")
    notice = page.locator("#notice")
    notice.wait_for()
    assert "headlight serve" in notice.inner_text()
    link = notice.get_by_role("link").get_attribute("href")
    assert link.startswith("https://example.org/#")
    assert "nobody" in link
    page.locator("#examples button").first.click()
    page.locator("#examples button[data-text]").first.click()
    page.wait_for_selector(f"#results:not([hidden]) {DRAWN}", state="attached")
    assert not notice.is_visible()


@pytest.mark.parametrize("page", [1440, 390], indirect=True)
def test_a_chapter_is_read_with_right_and_wrong_answers(page, address):
    page.goto(f"{address}index.html#chapter=copying")
    aside = page.locator("aside.chapter")
    aside.get_by_role("radio").first.wait_for()
    aside.get_by_role("radio").first.check()
    aside.get_by_role("button", name="Answer", exact=True).click()
    aside.get_by_text("it is", exact=False).first.wait_for()
    steps = aside.get_by_label("Step", exact=True).locator("option").count()
    for _ in range(steps - 1):
        aside.get_by_role("button", name="Next step").click()
        page.wait_for_selector(f"#results:not([hidden]) {DRAWN}", state="attached")
        assert not page.locator("#notice").is_visible()


def test_a_chapter_leads_to_experiments_and_back(page, address):
    page.goto(f"{address}index.html#chapter=lookup")
    aside = page.locator("aside.chapter")
    aside.get_by_role("button", name="Next step").click()
    page.wait_for_url("**/experiments.html#**")
    page.locator(DRAWN).first.wait_for(state="attached")
    aside.get_by_label("Step", exact=True).select_option("0")
    page.wait_for_url("**/index.html#**")
    page.wait_for_selector(DRAWN, state="attached")


def test_every_experiment_runs_and_another_setting_is_told(page, address):
    page.goto(f"{address}experiments.html")
    tabs = page.get_by_role("tab")
    tabs.first.wait_for()
    for number in range(tabs.count()):
        tabs.nth(number).click()
        name = tabs.nth(number).get_attribute("aria-controls")
        if name == "view-cost":  # it measures the reader's machine
            page.locator("#view-cost .notice:visible").first.wait_for()
        else:
            page.locator(f"#{name} {DRAWN}").first.wait_for(state="attached")
    page.goto(f"{address}experiments.html#experiment=scaling&width=512")
    page.locator(f"#view-scaling {DRAWN}").first.wait_for(state="attached")
    page.goto(f"{address}experiments.html#experiment=scaling&width=77")
    page.get_by_text("This setting is not on this site").first.wait_for()


def test_documents_have_a_heading_and_lead_back(page, address):
    for name in ("docs.html", "docs-api.html", "docs-ideas.html", "docs-add.html"):
        page.goto(f"{address}{name}")
        assert page.get_by_role("heading").count() > 2
        page.get_by_role("link", name="Headlight, type a sentence").wait_for()


def test_after_the_first_visit_no_network_is_needed(new_context, site):
    context = new_context(1440, 900, service_workers="allow")
    page = context.new_page()
    with hosting(site) as url:
        page.goto(f"{url}index.html")
        page.wait_for_selector(DRAWN, state="attached")
        page.evaluate("navigator.serviceWorker.ready.then(({active}) => active.postMessage(''))")
        names = json.loads((site / MARK).read_text())["files"]
        until = time.monotonic() + SECONDS
        while page.evaluate(HELD) < len(names) + 2:  # the folder itself, and the list
            assert time.monotonic() < until, "not everything is kept"
            time.sleep(0.2)
    page.goto(f"{url}index.html")
    page.wait_for_selector(DRAWN, state="attached")
    page.locator("#examples button").nth(3).click()
    page.wait_for_selector(f"#results:not([hidden]) {DRAWN}", state="attached")
    assert not page.locator("#notice").is_visible(), page.locator("#notice").inner_text()
    page.goto(f"{url}experiments.html")
    page.locator(DRAWN).first.wait_for(state="attached")
    context.close()
