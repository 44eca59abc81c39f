"""Why a cell is what it is: a path by mouse and by keys, and numbers that are the API's."""

import re

import pytest
from playwright.sync_api import expect

TEXT = "the cat sat on the mat"
LAYER, HEAD = 1, 0
SELF = f"decoder.layers.{LAYER}.self_attention"


@pytest.fixture
def head(ask):
    """The API's tensors of one head, by the last part of the site's name, without the head axis."""

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
