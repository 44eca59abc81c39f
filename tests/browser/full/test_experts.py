"""The experts: what routers decide, the way of a token through the layers, what experts take."""

import re

TEXT = "Once upon a time there was a little girl, and the little girl had a cat."
SITES = [f"*.experts.{name}" for name in ("router_probs", "expert_indices", "expert_weights")]


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


def choices(ask, layer, **asked):
    """The experts of each token in a layer with their weights, the weightiest first."""
    tensors = ask("trace", **{"text": TEXT, **asked}, capture=SITES)["tensors"]
    stem = f"{asked.get('stack', 'decoder')}.layers.{layer}.experts."
    indices, weights = (tensors[stem + n]["data"] for n in ("expert_indices", "expert_weights"))
    return [
        sorted(zip(chosen, shares, strict=True), key=lambda choice: -choice[1])
        for chosen, shares in zip(indices, weights, strict=True)
    ]


def short(weight):
    """A weight as the readout has it, as a pattern."""
    digits = f"{weight:.2f}"[1:] if weight < 0.995 else ".99"
    return rf"[<>]?\{digits}"


def test_the_route_is_drawn_walked_and_leads_to_what_an_expert_takes(reader, ask):
    shown(reader, query=4, layer=0)
    show(reader, "Route")
    assert "experts_show=route" in reader.fragment
    found = [choices(ask, layer)[4] for layer in range(4)]
    for layer, ((first, weight), (second, _)) in enumerate(found):
        part = rf"\b{first} \({short(weight)}\) and {second} \(<?\.\d\d\) in layer {layer}"
        assert re.search(part, reader.readout)
    plot = reader.view.locator(".plot").first
    assert plot.get_attribute("aria-roledescription") == "flow diagram"
    plot.focus()
    reader.page.keyboard.press("ArrowRight")
    (expert, _), _ = found[0]
    assert reader.announced.startswith(f"Expert {expert} of layer 1 takes ")
    reader.page.keyboard.press("Enter")
    reader.page.get_by_role("heading", name=f"Expert {expert} of layer 1").wait_for()
    assert "experts_show=specialities" in reader.fragment
    reader.page.go_back()
    reader.page.get_by_role("heading", name="Through the layers").wait_for()


def test_layer_and_expert_can_be_chosen_and_the_link_keeps_them(reader):
    shown(reader, experts_show="specialities", layer=0, query=4)
    reader.view.get_by_role("radio", name="3", exact=True).check()
    reader.view.get_by_label("Expert", exact=True).select_option("Expert 4")
    reader.page.get_by_role("heading", name="Expert 4 of layer 3").wait_for()
    reader.page.mouse.click(*reader.cell(2, 0, 8, 8))
    reader.page.get_by_role("heading", name="Expert 2 of layer 3").wait_for()
    assert "layer=3" in reader.fragment
    assert "experts_expert=2" in reader.fragment
    reader.page.reload()
    reader.wait_until_drawn()
    reader.page.get_by_role("heading", name="Expert 2 of layer 3").wait_for()
