"""Why a cell is what it is: a path by mouse and by keys, and numbers that are the API's."""

import math
import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

TEXT = "the cat sat on the mat"
LAYER, HEAD = 1, 0
SELF = f"decoder.layers.{LAYER}.self_attention"
CROSS = f"decoder.layers.{LAYER}.cross_attention"


@pytest.fixture
def head(ask):
    """What the API says of one head: by the end of a site's name, without the head axis."""

    def read(path=SELF, **options):
        asked = {"text": TEXT, "layers": [LAYER], "heads": [HEAD], "capture": [f"{path}.*"]}
        body = ask("trace", **asked, analyses=["head_outputs"], **options)
        tensors = {
            site.rpartition(".")[2]: found["data"][0] if "head" in found["axes"] else found["data"]
            for site, found in body["tensors"].items()
        }
        return tensors | {"head_output": body["analyses"]["head_outputs"][path]["data"][0]}

    return read


def steps(reader):
    return reader.view.locator(".panel h2").all_text_contents()


def step(reader, title):
    return reader.view.locator(".panel", has=reader.page.locator("h2", has_text=title))


def fact(reader, title, term):
    row = step(reader, title).locator(".panel-facts > div", has_text=term)
    return row.locator("dd").text_content()


def number(text):
    """A number as the page writes it: `−1.355`, `3.1·10⁻⁷`."""
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    return float(
        re.sub(r"·10(\S+)", lambda m: f"e{m[1].translate(raised)}", text).replace("−", "-")
    )


def rows(reader, title):
    """The table behind a step: what each of its rows of bars holds, by name."""
    place = next(at for at, heading in enumerate(steps(reader)) if title in heading)
    _, *body = reader.table(place)
    return {name: [number(cell) if cell else None for cell in cells] for name, *cells in body}


def open_cell(reader, model, query, key, **more):
    reader.open(
        view="why", model=model, text=TEXT, layer=LAYER, head=HEAD, query=query, key=key, **more
    )
    expect(step(reader, "output").locator(".plot .nsewdrag").first).to_be_attached()


@pytest.mark.parametrize("model", ["plain", "rotary", "alibi"])
def test_every_step_shows_the_numbers_of_the_api(reader, head, model):
    query, key = 5, 2
    open_cell(reader, model, query, key)
    told = head(model=model)
    names = ("rotated_queries", "rotated_keys") if model == "rotary" else ("queries", "keys")
    products = [a * b for a, b in zip(told[names[0]][query], told[names[1]][key], strict=True)]
    found = rows(reader, "Query times key")
    assert found["query × key"] == pytest.approx(products, abs=1e-3)
    scores = rows(reader, "The score")["score"]
    assert scores[: query + 1] == pytest.approx(told["scores"][query][: query + 1], abs=1e-3)
    assert all(score is None for score in scores[query + 1 :])
    weights = rows(reader, "softmax")["weight"]
    assert weights[: query + 1] == pytest.approx(told["weights"][query][: query + 1], abs=1e-4)
    value = rows(reader, "Weight times value")
    assert value["context: all keys together"] == pytest.approx(told["context"][query], abs=1e-3)
    output = rows(reader, "output")
    assert output[f"written by head {HEAD}"] == pytest.approx(told["head_output"][query], abs=1e-3)
    assert output["output of the attention"] == pytest.approx(told["output"][query], abs=1e-3)


@pytest.mark.parametrize("model", ["plain", "rotary", "alibi", "none"])
def test_what_is_worked_out_here_is_what_the_model_computed(reader, model):
    open_cell(reader, model, 5, 2)
    for title, term in (("The score", "score:"), ("softmax", "weight:"), ("value", "context,")):
        assert number(fact(reader, title, term)) < 1e-5
    help_text = reader.view.locator(".help").text_content()
    assert "from what the model computed" in help_text
    assert "more than" not in help_text


def test_rotary_positions_turn_before_they_meet_and_alibi_takes_off_by_distance(reader, head):
    open_cell(reader, "rotary", 5, 2)
    assert steps(reader)[0] == "1. Turned by their positions"
    assert number(fact(reader, "Turned", "farthest")) < 1e-5
    turned = rows(reader, "Turned")["key, turned"]
    assert turned == pytest.approx(head(model="rotary")["rotated_keys"][2], abs=1e-3)
    open_cell(reader, "alibi", 5, 2)
    found = rows(reader, "The score")
    taken = [
        part + bias
        for part, bias in zip(found["product ÷ √d"], found["bias by distance"], strict=True)
    ]
    assert taken[:6] == pytest.approx(found["score"][:6], abs=2e-3)


def test_cross_attention_goes_from_the_target_to_the_source(reader, head):
    target = "le chat dort"
    open_cell(reader, "pairs", 2, 4, target=target, where="cross")
    told = head(CROSS, model="pairs", target=target)
    weights = rows(reader, "softmax")["weight"]
    assert len(weights) == reader.page.locator("#chips .chip").count()
    assert weights == pytest.approx(told["weights"][2], abs=1e-4)
    assert "masked" not in " ".join(steps(reader))
    reader.view.get_by_role("radio", name="Encoder", exact=True).check()
    reader.wait_until_drawn()
    expect(step(reader, "The score").locator("h2")).to_have_text("2. The score: scaled")
    assert "encoder, layer" in reader.readout


def test_a_cell_that_comes_later_is_hidden_with_weight_0(reader):
    open_cell(reader, "plain", 2, 5)
    assert "cannot attend to" in reader.readout
    assert "its weight is 0" in reader.readout
    assert "its score is −∞" in step(reader, "The score").locator(".panel-help").text_content()
    formula = step(reader, "The score").locator("math").last
    assert "minus infinity" in formula.get_attribute("aria-label")
    assert set(rows(reader, "Weight times value")["weight × value"]) == {0.0}


def test_another_key_is_worked_out_by_a_click_on_its_bar(reader):
    open_cell(reader, "plain", 5, 2)
    place = next(at for at, title in enumerate(steps(reader)) if "softmax" in title)
    lanes, keys = 1, len(reader.chips)
    reader.page.mouse.click(*reader.cell(0, 1, lanes, keys, panel=place))
    reader.wait_until_drawn()
    assert "key=1" in reader.fragment
    reader.page.mouse.move(0, 0)
    assert "attends to “the” at 1 with weight" in reader.readout
    expect(reader.view.get_by_label("Key", exact=True)).to_have_value("1")


def test_a_path_by_keys_to_a_cell_and_to_its_why(reader):
    reader.open(text=TEXT, model="plain", layer=LAYER, head=HEAD)
    reader.page.get_by_role("tab", name="Attention").focus()
    reader.page.keyboard.press("ArrowRight")
    reader.page.keyboard.press("Enter")
    expect(reader.page.get_by_role("tab", name="Why this cell")).to_have_attribute(
        "aria-selected", "true"
    )
    reader.wait_until_drawn()
    query = reader.view.get_by_label("Query", exact=True)
    query.focus()
    reader.page.keyboard.press("ArrowUp")
    reader.page.keyboard.press("ArrowUp")
    reader.wait_until_drawn()
    assert "query=4" in reader.fragment
    plot = step(reader, "softmax").locator(".plot")
    plot.focus()
    reader.page.keyboard.press("Home")
    reader.page.keyboard.press("ArrowRight")
    assert reader.announced.startswith("weight, ")
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert "key=1" in reader.fragment
    expect(plot).to_be_focused()
    reader.page.go_back()
    reader.wait_until_drawn()
    assert "key=" not in reader.fragment


def test_without_scaling_and_at_another_temperature_the_model_reads_again(reader, head):
    query, key = 5, 2
    open_cell(reader, "plain", query, key)
    plain = head(model="plain")["weights"][query]
    with reader.reading_anew():
        reader.view.get_by_label("Leave out 1/√d").check()
    with reader.reading_anew():
        reader.view.get_by_label("Softmax temperature").fill("0.5")
    expect(step(reader, "softmax").locator(".panel-facts")).not_to_contain_text("being asked")
    edits = [
        {"kind": "no_scaling", "layer": LAYER, "where": "decoder"},
        {"kind": "temperature", "value": 0.5, "layer": LAYER, "where": "decoder"},
    ]
    changed = head(model="plain", edits=edits)["weights"][query]
    found = rows(reader, "softmax")
    assert found["weight"] == pytest.approx(
        [w if at <= query else None for at, w in enumerate(changed)], abs=1e-4
    )
    assert found["weight as trained"][: query + 1] == pytest.approx(plain[: query + 1], abs=1e-4)
    assert number(fact(reader, "softmax", "weight: difference")) < 1e-5
    entropies = [
        number(fact(reader, "softmax", term).split()[0]) for term in ("entropy of", "entropy as")
    ]
    assert entropies == pytest.approx([entropy(changed), entropy(plain)], abs=1e-3)
    assert "why_unscaled=1&why_temperature=0.5" in reader.fragment
    reader.view.get_by_role("button", name="As trained").click()
    reader.wait_until_drawn()
    assert "why_" not in reader.fragment
    assert list(rows(reader, "softmax")) == ["weight"]


def entropy(row):
    return -sum(weight * math.log2(weight) for weight in row if weight > 0)


def test_while_another_head_is_on_its_way_the_page_keeps_its_length(reader):
    open_cell(reader, "plain", 5, 2)
    page, held = reader.page, []
    page.route("**/api/v1/trace", lambda route: held.append(route))
    height = page.evaluate("document.documentElement.scrollHeight")
    before = fact(reader, "Query times key", "length of the key")
    reader.view.get_by_role("radio", name="1", exact=True).last.check()
    expect(page.locator("#main")).to_have_attribute("aria-busy", "true")
    expect(step(reader, "softmax")).to_have_class(re.compile("is-stale"))
    assert page.evaluate("document.documentElement.scrollHeight") == pytest.approx(height, abs=100)
    held[0].continue_()
    reader.wait_until_drawn()
    expect(step(reader, "softmax")).not_to_have_class(re.compile("is-stale"))
    assert fact(reader, "Query times key", "length of the key") != before
    assert f"layer {LAYER}, head 1" in reader.readout


def test_a_refusal_is_said_once_and_the_way_back_is_open(visit):
    reader = visit(allow="422")
    open_cell(reader, "plain", 5, 2)
    refusal = {"title": "Too many cells", "detail": "Send a shorter text.", "status": 422}
    reader.page.route("**/api/v1/trace", lambda route: route.fulfill(status=422, json=refusal))
    reader.view.get_by_label("Leave out 1/√d").check()
    expect(reader.view.locator(".panel-notice:visible")).to_have_text(
        "Too many cells. Send a shorter text."
    )
    reader.page.unroute("**/api/v1/trace")
    reader.view.get_by_role("button", name="As trained").click()
    reader.wait_until_drawn()
    expect(reader.view.locator(".panel")).to_have_count(5)


def test_a_link_restores_the_cell_and_its_switches(visit):
    first, second = visit(), visit()
    open_cell(first, "plain", 4, 1, why_unscaled=1)
    second.page.goto(first.page.url)
    second.wait_until_drawn()
    expect(second.view.get_by_label("Leave out 1/√d")).to_be_checked()
    expect(second.view.get_by_label("Key", exact=True)).to_have_value("1")
    assert steps(second) == steps(first)


@pytest.mark.parametrize(
    "text", ["a", "<b>&amp;</s>", "\U0001f600 \u0633\u0644\u0627\u0645", "x " * 30]
)
def test_any_text_has_its_why(reader, text):
    reader.open(view="why", model="plain", text=text)
    expect(step(reader, "output").locator(".plot .nsewdrag").first).to_be_attached()
    assert "with weight" in reader.readout
    assert reader.page.locator(".view:not([hidden]) :is(b, i, s)").count() == 0


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_is_wider_than_the_page_or_lies_over_another(visit, width):
    reader = visit(width=width)
    open_cell(reader, "alibi", 5, 2, why_temperature=2)
    page = reader.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    boxes = [part.bounding_box() for part in reader.view.locator(".panel").all()]
    for above, below in pairwise(boxes):
        assert above["y"] + above["height"] <= below["y"] + 1
    words = step(reader, "softmax").locator(".panel-words").bounding_box()
    plot = step(reader, "softmax").locator(".plot").bounding_box()
    beside, under = (
        words["x"] + words["width"] <= plot["x"],
        words["y"] + words["height"] <= plot["y"],
    )
    assert beside if width == 1440 else under
