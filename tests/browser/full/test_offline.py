"""The page that `headlight trace --html` writes, opened from a file without a network."""

import subprocess
import sys

import pytest
from playwright.sync_api import expect

TEXT = "The <b>cat</b> sat on the mat 🐈, and then the cat sat."


def written(folder, *words):
    path = folder / "trace.html"
    command = [sys.executable, "-m", "headlight.cli", "trace", *words, "--html", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return written(tmp_path_factory.mktemp("saved"), TEXT)


@pytest.fixture
def page(request, new_context, saved):
    """Yield the drawn page; fail if anything went wrong or was asked for."""
    page = new_context(getattr(request, "param", 1440), 900, offline=True).new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    asked: list[str] = []
    page.on("request", lambda asking: asked.append(asking.url.split(":")[0]))
    page.goto(saved.as_uri())
    page.wait_for_selector(".plot .heatmaplayer image", state="attached")
    yield page
    page.context.close()
    assert wrong == []
    assert set(asked) <= {"file", "data", "blob"}


def test_only_what_the_file_holds_is_offered(page):
    page.locator(".controls-more summary").first.click()
    offered = page.locator(".controls").first.inner_text()
    assert "Rollout" in offered
    assert "Scores" in offered
    assert page.locator(".exports:visible > button").count() == 0
    assert page.get_by_role("button", name="Compare", exact=True).count() == 0
    page.get_by_role("radio", name="Rollout", exact=True).check(force=True)
    assert "ollout" in page.locator("#view-attention .panel h2").first.inner_text()


def test_a_link_to_another_text_opens_the_one_of_the_file(page, saved):
    page.goto("about:blank")
    page.goto(f"{saved.as_uri()}#text=Another+text&view=next_token")
    page.locator("#view-next_token .plot .main-svg").first.wait_for(state="attached")
    assert page.locator("#text").input_value() == TEXT
    assert not page.locator("#notice").is_visible()


def test_keys_and_links_lead_as_on_the_page_of_a_server(page):
    before = page.evaluate("location.hash")
    page.locator("body").press("j")
    page.wait_for_function("(before) => location.hash !== before", arg=before)
    assert "layer=" in page.evaluate("location.hash")


def test_on_a_phone_all_switches_are_in_sight_and_a_finger_is_told_to_tap(new_context, saved):
    page = new_context(390, 844, offline=True, has_touch=True, is_mobile=True).new_page()
    page.goto(saved.as_uri())
    page.wait_for_selector(".plot .heatmaplayer image", state="attached")
    page.locator(".controls-more summary").first.click()
    rights = page.locator(".controls-menu .segmented label").evaluate_all(
        "(labels) => labels.map((label) => label.getBoundingClientRect().right)"
    )
    assert 0 < max(rights) <= 390
    row = page.locator(".controls-menu").first
    assert row.evaluate("(row) => row.scrollWidth <= row.clientWidth")
    caption = page.locator(".heads-block .heads-caption").inner_text()
    assert "Tap a map" in caption
    assert "Point" not in caption
    page.context.close()


@pytest.mark.parametrize("width", [390, 1440])
def test_a_long_sentence_opens_at_the_chosen_word(new_context, tmp_path, width):
    page = new_context(width, 844, offline=True).new_page()
    page.goto(written(tmp_path, "The cat and the dog sat on the mat. " * 20).as_uri())
    page.wait_for_selector(".plot .heatmaplayer image", state="attached")
    chips = page.locator("#chips")
    assert chips.evaluate("(chips) => chips.scrollHeight > chips.clientHeight"), "it is long"
    expect(page.locator("#chips .chip").nth(-2)).to_be_in_viewport()
    page.locator("#chips .chip").first.click()
    assert chips.evaluate("(chips) => chips.scrollTop") < 10, "what is chosen is in sight"
    page.context.close()
