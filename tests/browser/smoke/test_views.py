"""Each view draws, is reached by keyboard, and is restored from its link."""

import re

import pytest


def test_it_draws_is_restored_from_its_link_and_read_out_by_keyboard(reader, view):
    reader.open_view(view, layer=1, head=1, query=2)
    check_drawing(reader, view)
    sent = reader.fragment
    titles = reader.view.locator(".panel h2").all_text_contents()
    reader.page.reload()
    reader.wait_until_plotted()
    assert state_in(reader.fragment) == state_in(sent)
    assert reader.open_view_id == view
    assert reader.lit
    assert reader.view.locator(".panel h2").all_text_contents() == titles
    check_keyboard(reader)


def check_drawing(reader, view):
    """Check that the view is drawn, has a table, and explains itself."""
    assert reader.view.get_attribute("id") == f"view-{view}"
    assert reader.view.locator(".panel h2").count() >= 1
    assert reader.view.locator(".panel-notice.is-failure:visible").count() == 0
    assert len(reader.table()) > 1
    assert re.fullmatch(r"[A-Z“].{20,400}\.", reader.view.locator(".help").text_content())
    assert reader.view.locator(".terms dt").count() >= 1


def check_keyboard(reader):
    """Tab goes from the map to the first drawing, and arrows read out its cells."""
    page = reader.page
    page.locator('#map [tabindex="0"]').focus()
    plot = reader.view.locator(".panel:has(.exports:visible) .plot").first
    for _ in range(90):
        page.keyboard.press("Tab")
        if plot.evaluate("(node) => node === document.activeElement"):
            break
    assert plot.evaluate("(node) => node === document.activeElement"), "Tab never comes to it"
    assert plot.get_attribute("aria-label")
    heard = {reader.announced}
    for key in ("Control+Home", "ArrowRight", "ArrowDown", "Control+End"):
        page.keyboard.press(key)
        heard.add(reader.announced)
    assert len(heard) >= 2
    assert all(heard)


def state_in(fragment):
    """Return the parts of a link, in no order; a link without a view leads to the first."""
    return {*fragment.split("&"), "view=attention"}


@pytest.fixture
def offered(views):
    """Return the views that a dense decoder has something for; one needs a long text."""
    return [view for view in views if view not in ("experts", "translate", "long")]


def test_a_part_of_the_map_opens_each_view_that_the_model_has(reader, views, offered):
    reader.open(text="the cat sat on the mat", model="plain")
    known = reader.page.locator("#map button[data-views]").evaluate_all(
        "(parts) => [...new Set(parts.flatMap((part) => part.dataset.views.split(' ')))]"
    )
    behind = {"generate", "compare"}  # which are of no part
    assert set(known) & set(views) == {*offered, "long"} - behind
    for view in offered:
        reader.choose_view(view)
        assert reader.open_view_id == view
        assert reader.lit
        assert reader.page.locator('#view-list [data-view="long"]').count() == 0


def test_the_map_is_one_tab_stop_and_reads_out_every_part(reader):
    reader.open(text="the cat sat on the mat", model="plain", layer=0, head=0)
    page = reader.page
    page.wait_for_function("document.querySelector('#map .is-head').ariaLabel.includes('writes')")
    assert page.locator('#map [tabindex="0"]').count() == 1
    page.locator('#map [tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    heard = page.evaluate("document.activeElement.ariaLabel")
    assert re.fullmatch(r"layer 0, head 1: .*writes \d+ %", heard)
    page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert reader.lit == ["head decoder 0 1"]
    assert reader.chosen_head == "Layer 0, head 1"
    assert "head=1" in reader.fragment
    assert page.evaluate("document.activeElement.dataset.part") == "head decoder 0 1"
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert reader.open_view_id == "next_token"
    assert page.evaluate("document.activeElement.id") == "title-next_token"


def test_the_map_of_a_translator_has_both_stacks(reader):
    reader.open(text="the cat sat", model="pairs")
    parts = reader.page.locator("#map button").evaluate_all(
        "(parts) => parts.map((part) => part.dataset.part.split(' ').slice(0, 2).join(' '))"
    )
    for part in ("head encoder", "head decoder", "head cross", "expert decoder", "bridge"):
        assert part in parts
