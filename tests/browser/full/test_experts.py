"""The experts: what routers decide, the way of a token through the layers, what experts take."""

import re

TEXT = "Once upon a time there was a little girl, and the little girl had a cat."


def shown(reader, **more):
    """Open the view and wait until everything in it is drawn."""
    reader.open(**{"text": TEXT, "view": "experts", **more})
    reader.view.locator(":is(.main-svg, .panel-notice:not([hidden]))").first.wait_for(
        state="attached"
    )


def show(reader, title):
    """Choose what is shown, as a person does."""
    reader.view.get_by_role("radio", name=title).check()
    reader.wait_until_drawn()


def test_the_route_of_every_token_is_read_and_walked(reader):
    shown(reader, query=4, layer=0)
    show(reader, "Route")
    assert "experts_show=route" in reader.fragment
    assert len(re.findall(r"\d \([<>]?\.\d\d\) in layer \d", reader.readout)) == 4
    reader.view.locator(".plot").first.focus()
    reader.page.keyboard.press("ArrowDown")
    assert re.search(r"choice 2 is expert \d$", reader.announced)
    reader.page.go_back()
    reader.view.get_by_role("heading", name="Layer 0").wait_for()


def test_a_layer_can_be_chosen_and_the_link_keeps_it(reader):
    shown(reader, experts_show="specialities", layer=0, query=4)
    reader.view.get_by_role("radio", name="3", exact=True).check()
    reader.page.get_by_role("heading", name="Routing of layer 3 by kind of token").wait_for()
    assert "layer=3" in reader.fragment
    reader.page.reload()
    reader.wait_until_drawn()
    reader.page.get_by_role("heading", name="Routing of layer 3 by kind of token").wait_for()
