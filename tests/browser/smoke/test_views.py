"""Each view draws, is reached by keyboard, and is restored from its link."""

import re


def test_it_draws_and_says_what_it_shows(reader, view):
    reader.open_view(view)
    assert reader.view.get_attribute("id") == f"view-{view}"
    assert reader.view.locator(".panel h2").count() >= 1
    assert reader.view.locator(".panel-notice.is-failure:visible").count() == 0
    assert len(reader.table()) > 1
    assert re.fullmatch(r"[A-Z“].{20,400}\.", reader.view.locator(".help").text_content())
    assert reader.view.locator(".terms dt").count() >= 1


def test_the_keyboard_reaches_its_tab_and_its_cells_and_reads_them_out(reader, view):
    reader.open_view(view)
    page = reader.page
    page.locator(f"#tab-{view}").focus()
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


def test_its_link_restores_it_on_a_page_that_is_loaded_anew(reader, view):
    reader.open_view(view, layer=1, head=1, query=2)
    sent = reader.fragment
    titles = reader.view.locator(".panel h2").all_text_contents()
    reader.page.reload()
    reader.wait_until_plotted()
    assert state_in(reader.fragment) == state_in(sent)
    assert reader.page.get_by_role("tab", selected=True).get_attribute("id") == f"tab-{view}"
    assert reader.view.locator(".panel h2").all_text_contents() == titles


def state_in(fragment):
    """The parts of a link, in no order; the first view is where a link without a view leads."""
    return {*fragment.split("&"), "view=attention"}


def test_the_arrow_keys_go_through_the_tabs_of_all_views(reader, views):
    reader.open_view(views[0])
    tabs = reader.page.get_by_role("tab")
    assert tabs.evaluate_all("(tabs) => tabs.map((tab) => tab.id)") == [
        f"tab-{view}" for view in views
    ]
    tabs.first.focus()
    for view in views[1:]:
        reader.page.keyboard.press("ArrowRight")
        assert reader.page.evaluate("document.activeElement.id") == f"tab-{view}"
