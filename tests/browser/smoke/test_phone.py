"""The page on a phone."""

import pytest


@pytest.fixture
def phone(visit):
    return visit(width=390, height=844, has_touch=True, is_mobile=True)


def test_no_view_needs_scrolling_sideways(phone, views):
    wider = {}
    for view in views:
        phone.open_view(view)
        wider[view] = phone.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert wider == dict.fromkeys(views, False)


def test_a_touch_reads_a_cell(phone):
    phone.open(text="The animal did not cross the street.", layer=1, head=2)
    count = len(phone.chips)
    phone.page.touchscreen.tap(*phone.cell(6, 2, count, count))
    tokens = [chip.strip("·") for chip in phone.chips]
    assert f"“{tokens[6]}” → “{tokens[2]}”" in phone.tip()
    assert phone.readout.startswith(f"“{tokens[6]}” attends to “{tokens[2]}”")
