"""Steps on the page of experiments that its tests share."""

from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import expect

from headlight.model.experiments.experiment_registry import EXPERIMENTS as REGISTERED

EXPERIMENTS = tuple(REGISTERED)
SHORT = {
    "learn_task": {"steps": 3, "length": 3},
    "balance": {"steps": 3},
    "thinking": {"n_problems": 5, "n_chains": 2},
}


def open_experiment(reader, name, **parameters):
    """Follow a link to an experiment and wait until its pictures are drawn."""
    fragment = urlencode({"experiment": name, **parameters})
    reader.page.goto("about:blank")
    reader.page.goto(f"{reader.url}/experiments#{fragment}")
    wait_until_drawn(reader, name)


def wait_until_drawn(reader, name):
    panels = reader.page.locator(f"#view-{name} .panel")
    panels.first.locator(".main-svg").first.wait_for(state="attached")
    expect(reader.page.locator(f"#view-{name} .finding")).not_to_be_empty()
    expect(panels.locator(".is-failure:not([hidden])")).to_have_count(0)


def fragment_of(reader):
    return parse_qs(urlsplit(reader.page.url).fragment)


def finding(reader):
    return reader.page.locator(".experiment:not([hidden]) .finding")
