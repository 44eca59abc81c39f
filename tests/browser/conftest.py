"""A server, a Chromium, and a reader at the page whose errors fail the test."""

import json
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import save
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer
from tests.server_process import serving

SECONDS = 60
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def pytest_collection_modifyitems(items):
    """Give a page time on a busy machine."""
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(5 * SECONDS))


TEXTS = ["the cat sat on the mat", "a little light", "le chat dort sur le tapis"]
VIEWS = (
    "attention",
    "why",
    "there",
    "head",
    "long",
    "positions",
    "experts",
    "stream",
    "next_token",
    "word",
    "generate",
    "translate",
    "compare",
)
TEXT = "The old fox saw the hen, and the old"
# The default model and TEXT give these views nothing to draw.
DRAWN_ELSEWHERE: dict[str, dict[str, str]] = {
    "translate": {"model": "translate", "text": "The black cat is sleeping."},
    "generate": {"generate_path": "448.307.260"},
}
EXAMPLES = {
    "blanks": {"A blank": "The cat [MASK] on the mat.", "A light": "a little light"},
    "pairs": {"A cat": "the cat sat on the mat", "A light": "a little light"},
}
TINY: dict[str, dict[str, Any]] = {
    "plain": {},
    "blanks": {"kind": "encoder", "positional": "learned"},
    "pairs": {"kind": "encoder-decoder", "moe": ExpertsConfig(n_experts=4, top_k=2, layers=(1,))},
    "rotary": {"positional": "rotary"},
    "alibi": {"positional": "alibi"},
    "none": {"positional": "none"},
}


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory):
    """Return a directory of tiny models of random weights, one of each kind, and a damaged one."""
    path = tmp_path_factory.mktemp("models")
    for name, choices in TINY.items():
        save_tiny(path / name, choices)
    shutil.copytree(path / "plain", path / "damaged")
    (path / "damaged" / "config.json").write_text("{")
    return path


def save_tiny(folder, choices):
    """Make a dense decoder, but for what is chosen."""
    is_encoder = choices.get("kind") == "encoder"
    tokenizer = train_tokenizer(TEXTS * 20, vocab_size=300, has_mask=is_encoder)
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_ff": 24, "max_tokens": 64}
    torch.manual_seed(5)
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes, **choices)
    examples = EXAMPLES.get(folder.name, {"A cat": "The cat sat."})
    card = ModelCard(title=folder.name.title(), licence="MIT", examples=examples)
    save(folder, Transformer(config), tokenizer, card, dtype=torch.float32)


@pytest.fixture(scope="session")
def url(models_dir):
    """Yield the address of the server that the tests share."""
    with serving("--models-dir", models_dir, environment=ONE_THREAD) as server:
        yield server.url


@pytest.fixture(scope="session")
def start_server(models_dir):
    """Return a function that starts a server with other settings, for a `with` block."""
    return partial(serving, "--models-dir", models_dir, environment=ONE_THREAD)


@pytest.fixture(scope="session")
def ask(url):
    """Return a function that posts JSON to the API, with which the page must agree."""

    def post(path, **body):
        answer = httpx.post(f"{url}/api/v1/{path}", json=body, timeout=SECONDS)
        answer.raise_for_status()
        return answer.json()

    return post


@pytest.fixture(scope="session")
def chromium():
    """Yield one Chromium a worker. Its event loop runs on: run no other tests with these."""
    path = os.environ.get("HEADLIGHT_CHROMIUM") or None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=FLAGS, timeout=SECONDS * 1000
        )
        yield browser
        browser.close()


@dataclass
class Reader:
    """A person at the page."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def open(self, **fragment):
        """Follow a link and wait until it is drawn."""
        self.page.goto(f"{self.url}/#{urlencode(fragment)}")
        self.wait_until_drawn()

    def open_view(self, view, **fragment):
        """Open a view on a model and a text for which it has something to draw."""
        self.open(**{"text": TEXT, "view": view, **DRAWN_ELSEWHERE.get(view, {}), **fragment})
        self.wait_until_plotted()

    def wait_until_plotted(self):
        """Wait for the first drawing of the view."""
        self.wait_until_drawn()
        self.view.locator(".panel .plot-drawing .main-svg").first.wait_for(state="attached")
        self.page.wait_for_selector("#main[aria-busy=false]")

    def write(self, text):
        """Replace the text in the box and wait until it is drawn."""

        def is_answer(answer):
            return is_trace(answer.request) and answer.request.post_data_json["text"] == text

        with self.page.expect_response(is_answer):
            self.page.fill("#text", text)
        self.wait_until_drawn()

    def wait_until_drawn(self):
        """Wait for the answer and its drawing; first for the page to notice that it has to ask."""
        self.page.evaluate(NEXT_TASK)
        self.page.wait_for_selector("#main[aria-busy=false]")
        self.page.wait_for_selector(
            ".view:not([hidden]) :is(.plot .nsewdrag, .plot .sankey, .panel-notice:not([hidden])),"
            "#notice:not([hidden]), #empty:not([hidden])",
            state="attached",
        )
        self.page.wait_for_selector("#main[aria-busy=false]")  # a notice may say that it waits
        self.page.evaluate(NEXT_TASK)

    def choose_view(self, view):
        """Open a view, by its id, as its reader does: a part of the map, then its list of views."""
        part = self.page.locator(f'#map button[data-views~="{view}"]')
        if part.count():
            part.first.click()
        elif (more := self.page.locator("#view-list").get_by_role("button", name="More")).count():
            more.click()
        listed = self.page.locator(f'#view-list:not([hidden]) [data-view="{view}"]')
        if listed.count():
            listed.click()
        self.wait_until_drawn()

    @property
    def open_view_id(self):
        """The id of the view that is open."""
        return self.view.get_attribute("id").removeprefix("view-")

    @property
    def lit(self):
        """The parts of the map that are marked as shown."""
        return self.page.locator('#map [aria-current="true"]').evaluate_all(
            "(parts) => parts.map((part) => part.dataset.part)"
        )

    @property
    def view(self):
        """The view that is open."""
        return self.page.locator(".view:not([hidden])")

    @property
    def chips(self):
        return self.page.locator(".chip").all_text_contents()

    @property
    def target(self):
        """The tokens of the target."""
        return self.page.locator("#target-chips .chip").all_text_contents()

    @property
    def readout(self):
        return plain(self.page.locator("#readout").text_content())

    @property
    def announced(self):
        return plain(self.page.locator("#announcer").text_content())

    @property
    def chosen_head(self):
        name = self.page.locator(".heads-cell[aria-selected=true]").get_attribute("aria-label")
        return name.split(":")[0]

    @property
    def fragment(self):
        return urlsplit(self.page.url).fragment

    def tints(self, chips="#chips"):
        """Return the darkness of each token of a sentence."""
        seen = self.page.locator(f"{chips} .chip").evaluate_all(
            "(chips) => chips.map((chip) => getComputedStyle(chip).backgroundColor)"
        )
        return [765 - sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in seen]

    def strongest(self, chips="#chips"):
        """Return the token of a sentence that is tinted most."""
        tints = self.tints(chips)
        return tints.index(max(tints))

    @contextmanager
    def reading_again(self):
        """Wait until the trace that the block causes is drawn."""
        with self.page.expect_response(lambda answer: is_trace(answer.request)):
            yield
        self.wait_until_drawn()

    def asks(self):
        """Return the bodies of the trace requests that the page sends from now on."""
        asked: list[dict[str, Any]] = []
        self.page.on("request", lambda r: is_trace(r) and asked.append(r.post_data_json))
        return asked

    def tip(self, panel=0):
        """Return the text of the tooltip; empty if there is none."""
        tip = self.view.locator(".tip").nth(panel)
        return plain(tip.inner_text()) if tip.is_visible() else ""

    def cell(self, row, column, rows, columns, panel=0):
        """Return the middle of a cell of a drawing on the screen."""
        plot = self.view.locator(".plot").nth(panel)
        plot.scroll_into_view_if_needed()
        box = plot.locator('.nsewdrag[data-subplot="xy"]').bounding_box()
        return (
            box["x"] + (column + 0.5) / columns * box["width"],
            box["y"] + (row + 0.5) / rows * box["height"],
        )

    def take(self, label, panel=0):
        """Choose an export of a drawing."""
        exports = self.view.locator(".exports").nth(panel)
        name = self.page.get_by_text(label, exact=True)
        item = exports.locator(".menu-list button", has=name)
        if not item.is_visible():
            exports.locator(".menu", has=name).locator(".menu-button").click()
        item.click()

    def press_in_menu(self, name):
        """Press a button of the page's menu."""
        self.page.get_by_role("button", name="Menu", exact=True).click()
        self.page.locator("#site-more").get_by_role("button", name=name, exact=True).click()

    def choose_theme(self, name):
        """Choose a theme in the page's menu."""
        self.page.get_by_role("button", name="Menu", exact=True).click()
        self.page.locator("#theme").get_by_role("radio", name=name).check(force=True)
        self.page.keyboard.press("Escape")

    def save(self, label, folder, panel=0):
        """Save a drawing as a file."""
        with self.page.expect_download() as download:
            self.take(label, panel)
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return path

    def save_page(self, folder):
        """Save the page as one file, from the dialog that shares it."""
        self.page.get_by_role("button", name="Share", exact=True).click()
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save page").click()
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return path

    def copy(self, label, panel=0):
        """Copy code; the window must be allowed to read the clipboard."""
        self.page.evaluate("navigator.clipboard.writeText('')")
        self.take(f"Copy {label}", panel)
        while not (text := self.page.evaluate("navigator.clipboard.readText()")):
            self.page.wait_for_timeout(20)  # the code for exports loads with the first of them
        return text

    def colour(self, x, y):
        """Return the colour at a point of the screen."""
        clip = {"x": round(x), "y": round(y), "width": 1, "height": 1}
        image = self.page.screenshot(clip=clip)
        seen = self.page.evaluate(READ_PIXEL, list(image))
        return tuple(seen)

    def table(self, panel=0):
        """Open the table behind a drawing and read all of its page."""
        details = self.view.locator(".table-block").nth(panel)
        if details.get_attribute("open") is None:
            details.locator("summary").click()
        details.locator("table").wait_for()
        return details.locator("tr").evaluate_all(
            "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
        )


NEXT_TASK = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
READ_PIXEL = """async (bytes) => {
  const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: 'image/png' }));
  const context = new OffscreenCanvas(1, 1).getContext('2d');
  context.drawImage(image, 0, 0);
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


def plain(text):
    """Return the text without the invisible marks that keep a token's direction to itself."""
    return text.replace("\u2068", "").replace("\u2069", "")


def is_trace(request):
    return request.url.endswith("/api/v1/trace")


@pytest.fixture(scope="session")
def new_context(chromium):
    """Return a function that opens a fresh browser context."""

    def make(width=1440, height=900, **options):
        viewport = {"width": width, "height": height}
        made = chromium.new_context(viewport=viewport, reduced_motion="reduce", **options)
        made.set_default_timeout(SECONDS * 1000)
        return made

    return make


@pytest.fixture(scope="session")
def new_reader(new_context, url):
    """Return a function that opens the page in a fresh context."""

    def make(**options):
        reader = Reader(new_context(**options).new_page(), url)
        watch(reader)
        return reader

    return make


@pytest.fixture
def visit(new_reader):
    """Yield a function that opens the page in a fresh context; errors and foreign hosts fail."""
    readers: list[tuple[Reader, str | None]] = []

    def make(allow=None, **options):
        readers.append((new_reader(**options), allow))
        return readers[-1][0]

    yield make
    for reader, allow in readers:
        reader.page.context.close()
        assert [e for e in reader.errors if not (allow and re.search(allow, e))] == []
        assert reader.hosts <= {urlsplit(reader.url).netloc}


def watch(reader):
    """Note every error, every breach of the content policy, and every host that is asked."""
    page = reader.page
    page.on("console", lambda m: m.type == "error" and reader.errors.append(m.text))
    page.on("pageerror", lambda error: reader.errors.append(str(error)))
    page.on("request", lambda request: note_host(reader, request))


def note_host(reader, request):
    address = urlsplit(request.url)
    if address.scheme not in ("data", "blob"):
        reader.hosts.add(address.netloc)


@pytest.fixture
def reader(visit):
    """Return a person at a desk."""
    return visit()


@pytest.fixture(params=VIEWS)
def view(request):
    """Each view of the page in turn, by its id."""
    return request.param


@pytest.fixture(scope="session")
def views():
    """Return the ids of the views, in the order of their tabs."""
    return VIEWS


@pytest.fixture
def violations_of():
    """Return the rules of axe that a page breaks in each of these views."""

    def find(reader, views):
        by_view = {}
        for view in views:
            reader.open_view(view)
            part = f"#view-{view}" if view != views[0] else None  # None: the whole page
            violations = Axe().run(reader.page, context=part).response["violations"]
            if violations:
                by_view[view] = [
                    (rule["id"], rule["nodes"][0]["html"][:200]) for rule in violations
                ]
        return by_view

    return find


@pytest.fixture
def hold():
    """Return a function that holds the answers for texts with a word until they are let go."""

    def keep(page, word):
        held: list[Any] = []

        def handle(route):
            if word in json.loads(route.request.post_data)["text"]:
                held.append(route)
            else:
                route.continue_()

        page.route("**/api/v1/trace", handle)
        return held

    return keep
