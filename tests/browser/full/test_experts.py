"""The experts: what routers decide, the way of a token through the layers, what experts take."""

import math
import re
import statistics

import httpx
import pytest
from playwright.sync_api import expect

TEXT = "Once upon a time there was a little girl, and the little girl had a cat."
SITES = [f"*.experts.{name}" for name in ("router_probs", "expert_indices", "expert_weights")]
SHOWS = ("routing", "route", "specialities")


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


def nodes(reader):
    """The experts of the flow on the screen: by layer's column and number, their boxes."""
    reader.page.wait_for_function(
        "getComputedStyle(document.querySelector('.sankey-node') ?? document.body).opacity === '1'"
    )
    return reader.view.locator(".sankey .node-rect").evaluate_all(
        "(rects) => rects.map((rect) => {"
        " const { x, y, width, height } = rect.getBoundingClientRect();"
        " return { x, y, width, height, fill: rect.style.fill }; })"
    )


def test_router_entropy_and_balance_loss_are_those_of_the_analysis(reader, ask):
    shown(reader)
    found = ask("trace", text=TEXT, capture=[], analyses=["routing"])["analyses"]["routing"]
    facts = reader.view.locator(".panel-facts").all_text_contents()
    assert len(facts) == len(found["decoder.layers"]["data"])
    for layer, said in enumerate(facts):
        entropy = found["decoder.router_entropy"]["data"][layer] * math.log(8)
        balance = found["decoder.balance_loss"]["data"][layer]
        numbers = [float(number) for number in re.findall(r"\d+\.\d+", said)]
        assert numbers == pytest.approx([entropy, math.log(8), balance], abs=6e-3)


def test_every_token_has_a_bar_as_high_as_its_entropy(reader, ask):
    shown(reader)
    probs = ask("trace", text=TEXT, capture=SITES)["tensors"][
        "decoder.layers.0.experts.router_probs"
    ]["data"]
    entropies = [-sum(p * math.log(p) for p in row if p > 0) for row in probs]
    bars = reader.view.locator(".plot").first.locator(".xy3 .bars .point path, .xy3 .point path")
    heights = [bar["height"] for bar in (bars.nth(n).bounding_box() for n in range(len(probs)))]
    unit = max(heights) / max(entropies)
    assert heights == pytest.approx([entropy * unit for entropy in entropies], abs=1.5)
    names = reader.table()[0][1:]
    assert names[3].endswith(f"(entropy {entropies[3]:.2f})")


def test_the_readout_speaks_of_the_layer_that_is_looked_at(reader, ask):
    shown(reader, layer=2, query=4)
    (expert, weight), _ = choices(ask, 2)[4]
    assert reader.readout.startswith(
        f"“time” goes through expert {expert} with weight {weight:.3f}"
    )
    assert "(layer 2)" in reader.readout
    n_tokens = len(reader.chips)
    reader.page.mouse.click(*reader.cell(0, 4, 8, n_tokens, panel=0))
    reader.page.mouse.move(5, 5)
    expect(reader.page.locator("#readout")).to_contain_text("(layer 0)")
    assert "layer=0" in reader.fragment
    reader.page.go_back()
    expect(reader.page.locator("#readout")).to_contain_text("(layer 2)")


def test_pointing_at_an_expert_tints_the_tokens_that_go_to_it(reader, ask):
    shown(reader)
    found = choices(ask, 0)
    expert = found[5][0][0]
    reader.page.mouse.move(*reader.cell(expert, 5, 8, len(found)))
    takes = [dict(choice).get(expert, 0) for choice in found]
    tints = reader.tints()
    assert tints.index(max(tints)) == takes.index(max(takes))
    none = min(tints)
    assert [tint > none for tint in tints] == [weight > 0.01 for weight in takes]


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


def test_nodes_stand_where_the_cursor_finds_them(reader):
    shown(reader, experts_show="route", query=4)
    reader.view.locator(".plot").first.scroll_into_view_if_needed()
    for number in range(2, len(nodes(reader)), 5):
        node = nodes(reader)[number]
        reader.page.mouse.move(node["x"] + node["width"] / 2, node["y"] + node["height"] / 2)
        mark = reader.view.locator(".plot-mark.is-cell").first
        expect(mark).to_have_class(re.compile("is-shown"))
        box = mark.bounding_box()
        for side in ("x", "y", "width", "height"):
            assert box[side] == pytest.approx(node[side], abs=1.5), side
        assert re.fullmatch(r"expert \d, layer \d\n[<>]?\d+(\.\d)? %", reader.tip())


def test_choosing_a_token_lights_its_own_route(reader, ask):
    shown(reader, experts_show="route", query=4)
    blue = "rgb(11, 95, 208)"
    ribbons = reader.view.locator(".sankey-link")
    fills = "(links) => links.map((link) => getComputedStyle(link).fill)"
    assert ribbons.evaluate_all(fills).count(blue) == 2 + 3 * 4
    reader.page.locator(".chip").nth(9).click()
    reader.wait_until_drawn()
    name = reader.chips[9].replace("·", "")
    expect(reader.view.locator(".annotation-text").filter(has_text=name).first).to_be_attached()
    assert ribbons.evaluate_all(fills).count(blue) == 2 + 3 * 4
    (expert, weight), _ = choices(ask, 3)[9]
    assert re.search(rf"\b{expert} \({short(weight)}\)", reader.readout)
    first, *_ = nodes(reader)
    assert reader.colour(first["x"] + 5, first["y"] + first["height"] / 2) == (11, 95, 208)


def test_token_by_token_the_keyboard_reads_out_the_experts(reader, ask):
    shown(reader, experts_show="route", query=4, layer=1)
    found = choices(ask, 1)[5]
    row = reader.table(1)[3]
    assert row[0] == "layer 1, choice 1"
    assert row[6] == f"{found[0][0]} ✓ {found[0][1]:.4f}"
    plot = reader.view.locator(".plot").nth(1)
    plot.focus()
    reader.page.keyboard.press("ArrowRight")
    experts = " and ".join(rf"{expert} \({short(weight)}\)" for expert, weight in found)
    name = reader.chips[5].replace("·", "")
    spoken = rf"“{name}” goes through experts {experts} in layer 1"
    assert re.match(spoken, reader.announced)
    reader.page.keyboard.press("ArrowDown")
    assert reader.announced.endswith(f"choice 2 is expert {found[1][0]}")
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert "query=5" in reader.fragment
    assert re.search(rf"{experts} in layer 1", reader.readout)


def test_specialities_are_those_of_the_card(reader, url):
    shown(reader, experts_show="specialities", layer=2, experts_expert=6)
    card = httpx.get(f"{url}/api/v1/models/stories").json()["expert_tokens"]
    expert = card["layers"]["decoder.layers.2"][6]
    labels = reader.view.locator(".plot").nth(1).locator(".ytick text").all_text_contents()
    assert labels == [
        token["text"].replace(" ", "·").replace("\n", "↵") for token in expert["tokens"]
    ]
    assert (
        f"{100 * expert['share']:.1f} %"
        in reader.view.locator(".panel-facts").nth(1).text_content()
    )
    assert f"{card['tokens']:,} tokens of" in reader.view.locator(".panel-help").nth(1).inner_text()
    kinds = reader.table(0)
    assert kinds[0][1:] == ["all tokens"] + [
        kind.replace("_", " ") for kind in card["kinds"] if kind != "other"
    ]
    punctuation = kinds[0].index("punctuation")
    assert kinds[7][punctuation] == f"{100 * expert['kinds']['punctuation']:.1f} %"


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


def test_a_token_that_an_expert_takes_is_found_in_the_sentence(reader, url):
    card = httpx.get(f"{url}/api/v1/models/stories").json()["expert_tokens"]
    experts = card["layers"]["decoder.layers.3"]
    number, rank = next(
        (number, rank)
        for number, expert in enumerate(experts)
        for rank, token in enumerate(expert["tokens"])
        if token["text"] == " the"
    )
    shown(reader, experts_show="specialities", layer=3, experts_expert=number, query=0)
    places = [index for index, chip in enumerate(reader.chips) if chip == "·the"]
    rows = len(experts[number]["tokens"])
    reader.page.mouse.move(*reader.cell(rank, 0, rows, 1, panel=1))
    assert f"in this sentence {len(places)} of {len(places)} " in reader.readout
    tints = reader.tints()
    assert {index for index, tint in enumerate(tints) if tint > min(tints)} == set(places)
    assert "is-key" in reader.page.locator(".chip").nth(places[0]).get_attribute("class")
    reader.view.locator(".plot").nth(1).focus()
    for _ in range(rank):
        reader.page.keyboard.press("ArrowDown")
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert f"query={places[0]}" in reader.fragment


@pytest.mark.parametrize("what", SHOWS)
def test_a_dense_model_says_so_whatever_is_asked_for(reader, what):
    reader.open(text="the cat sat", model="plain", view="experts", experts_show=what)
    notice = reader.view.locator(".panel-notice").text_content()
    assert notice.startswith("Plain is dense: no routing.")
    assert not reader.view.locator(".controls").is_visible()
    assert not reader.view.locator(".plot").is_visible()


@pytest.mark.parametrize(("where", "chips"), [("encoder", "#chips"), ("decoder", "#target-chips")])
def test_each_stack_of_an_encoder_decoder_has_routes_of_its_own(reader, where, chips):
    text = "the cat sat on the mat"
    reader.open(text=text, model="pairs", view="experts", where=where, experts_show="route")
    reader.page.get_by_role("heading", name=f"Through the layers of the {where}").wait_for()
    count = reader.page.locator(f"{chips} .chip").count()
    assert f"{count} tokens" in reader.view.locator(".plot").first.get_attribute("aria-label")
    assert "in layer 1" in reader.readout
    assert len(nodes(reader)) >= 3
    show(reader, "Specialities")
    told = reader.view.locator(".panel-notice").first.text_content()
    assert told == f"The card of pairs does not say what the experts of {where}, layer 1 take."
    show(reader, "Routing")
    heading = f"{where.capitalize()}, layer 1"
    assert reader.view.locator(".panel h2").all_text_contents() == [heading]


HOVER = """async (plot) => {
  const pane = plot.querySelector('.nsewdrag[data-subplot="xy"]').getBoundingClientRect();
  const took = [];
  for (let step = 0; step < 30; step += 1) {
    const at = { clientX: pane.x + ((step + 0.5) / 30) * pane.width,
                 clientY: pane.y + (((step * 7) % 30 + 0.5) / 30) * pane.height };
    const began = performance.now();
    plot.dispatchEvent(new PointerEvent('pointermove', { ...at, bubbles: true }));
    document.body.getBoundingClientRect();
    took.push(performance.now() - began);
    await new Promise(requestAnimationFrame);
  }
  return took;
}"""


@pytest.mark.parametrize("what", ["routing", "route"])
def test_a_long_text_is_drawn_and_pointing_stays_quick(reader, what):
    long = "The little girl went to the barn with her mother and fed the goose and the cat. "
    shown(reader, text=(long * 20)[:960], experts_show=what)
    assert len(reader.chips) > 200
    for panel in range(reader.view.locator(".plot").count()):
        plot = reader.view.locator(".plot").nth(panel)
        plot.scroll_into_view_if_needed()
        took = plot.evaluate(HOVER)
        assert statistics.median(took) < 50, (panel, took)


@pytest.mark.parametrize("what", SHOWS)
@pytest.mark.parametrize("text", ["<b>bold</b> </s>", "👩‍🚀 naïve", "مرحبا بالعالم", "x"])
def test_any_text_has_its_experts(reader, what, text):
    shown(reader, text=text, experts_show=what)
    assert reader.view.locator(".panel-notice:not([hidden])").count() == 0
    assert reader.view.locator("svg :is(a, b, s)").count() == 0
    reader.view.locator(".plot").first.focus()
    reader.page.keyboard.press("ArrowRight")
    assert len(reader.announced) > 10


@pytest.mark.parametrize("what", SHOWS)
def test_on_a_phone_everything_fits(visit, what):
    reader = visit(width=390, height=844, has_touch=True, is_mobile=True)
    shown(reader, experts_show=what)
    for svg in reader.view.locator(".main-svg").evaluate_all(
        "(svgs) => svgs.map((svg) => svg.getBoundingClientRect().right)"
    ):
        assert svg <= 390
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 390
