"""Positions as maps, as lines, as a rotation, scheme beside scheme, and by the twins' attention."""

import re

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe

TEXT = "Once upon a time there was a little girl"
LONG = " ".join(["a little girl saw a big dog"] * 20)
PARTS = ["waves", "rotation", "schemes", "twins"]


@pytest.fixture
def at_positions(reader):
    """Opens a part of the view and waits until all of its figures are drawn."""

    def go(part="encoding", text=TEXT, **fragment):
        reader.open(text=text, view="positions", positions_show=part, **fragment)
        return settle(reader)

    return go


def settle(reader):
    reader.page.wait_for_selector("#main[aria-busy=false]")
    reader.page.wait_for_function(
        "[...document.querySelectorAll('.view:not([hidden]) .panel')].every((panel) =>"
        " panel.querySelector('.panel-notice:not([hidden])') || panel.querySelector('.nsewdrag'))"
    )
    reader.wait_until_drawn()
    return reader


def show(reader, title):
    reader.view.get_by_role("radio", name=title).check()
    settle(reader)


def titles(reader):
    return reader.view.locator(".panel h2").all_text_contents()


def notice(reader, panel=0):
    return reader.view.locator(".panel").nth(panel).locator(".panel-notice").text_content()


@pytest.fixture
def positional(url):
    """Asks for an encoding as a client would."""

    def get(**asked):
        answer = httpx.get(f"{url}/api/v1/positional", params=asked).raise_for_status()
        return {name: found["data"] for name, found in answer.json()["tensors"].items()}

    return get


def test_every_part_is_a_click_away_and_a_step_back(at_positions):
    reader = at_positions()
    assert titles(reader) == ["The encoding that was added", "Similarity of positions"]
    show(reader, "Lines")
    assert titles(reader) == ["Single dimensions", "Similarity by distance"]
    show(reader, "Rotation")
    assert "positions_show=rotation" in reader.fragment
    show(reader, "Schemes")
    assert titles(reader) == ["Sinusoidal", "Learned", "Rotary", "ALiBi"]
    show(reader, "Twins")
    assert titles(reader) == ["Sinusoidal", "Learned", "Rotary", "ALiBi"]
    reader.page.go_back()
    reader.page.go_back()
    settle(reader)
    assert titles(reader)[0] == "R(3) carries position 6 to 9"
    reader.page.reload()
    settle(reader)
    assert titles(reader)[0] == "R(3) carries position 6 to 9"


def test_dimensions_are_chosen_by_their_buttons(at_positions):
    reader = at_positions("waves", positions_dimensions="0.16")
    chosen = reader.view.get_by_role("button", name="dimension 16", exact=True)
    assert chosen.get_attribute("aria-pressed") == "true"
    chosen.click()
    reader.view.get_by_role("button", name="dimension 64", exact=True).click()
    settle(reader)
    assert "positions_dimensions=0.64" in reader.fragment
    assert [row[0] for row in reader.table()[1:]] == ["0", "4", "64"]


def test_k_is_set_by_arrow_keys_and_the_start_by_choosing_a_token(at_positions):
    reader = at_positions("rotation", query=2)
    reader.view.get_by_role("slider", name="k").focus()
    reader.page.keyboard.press("ArrowRight")
    settle(reader)
    assert titles(reader) == ["R(4) carries position 2 to 6", "R(4), block by block"]
    reader.page.locator("#chips .chip").nth(1).click()
    settle(reader)
    assert titles(reader)[0] == "R(4) carries position 1 to 5"
    reader.view.locator(".plot").first.focus()
    reader.page.keyboard.press("ArrowDown")
    assert re.match(r"Pair 4: PE\(1\) \(.*\), turned by [\d.]+ rad, is ", reader.announced)
    marks = reader.page.locator("#chips .chip.is-key")
    assert marks.count() == 1


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("positions-learned", "independent vector"),
        ("alibi", "rotates nothing"),
        ("none", "no positional encoding"),
    ],
)
def test_where_nothing_turns_a_button_leads_to_where_something_does(at_positions, model, words):
    reader = at_positions("rotation", model=model)
    assert words in notice(reader)
    with reader.reading_anew():
        reader.view.get_by_role("button", name="Open a model with rotary positions").click()
    settle(reader)
    assert "model=positions-sinusoidal" in reader.fragment
    assert "carries position" in titles(reader)[0]


def test_schemes_come_without_a_text_and_only_when_they_are_looked_at(reader, positional):
    asked = []
    reader.page.on("request", lambda r: "/positional" in r.url and asked.append(r.url))
    reader.open(text=TEXT, view="positions")
    assert asked == []
    show(reader, "Schemes")
    assert len(asked) == 4
    rows = len(reader.chips)
    cosines = positional(scheme="rotary", length=rows, width=32)["cos"]
    reader.page.mouse.move(*reader.cell(3, 1, rows, len(cosines[0]), panel=2))
    assert reader.tip(panel=2) == f"position 3, pair 1\n{cosines[3][1]:.4f}".replace("-", "−")
    learned = positional(model="positions-learned", length=rows)["encoding"]
    assert [float(c.replace("−", "-")) for c in reader.table(1)[2][1:]] == pytest.approx(
        learned[1], abs=1e-4
    )
    reader.view.get_by_label("Head", exact=True).select_option("5")
    settle(reader)
    bias = positional(scheme="alibi", length=rows, heads=6)["bias"][5]
    assert float(reader.table(3)[4][1].replace("−", "-")) == pytest.approx(bias[3][0], abs=1e-4)
    assert len(asked) == 4, "another head needs no other answer"


def test_a_twin_that_cannot_read_so_much_says_so_and_the_others_go_on(visit):
    reader = visit(allow="status of 422")
    reader.open(text=LONG, view="positions", positions_show="twins")
    settle(reader)
    assert "“Positions: Learned” reads at most 128." in notice(reader, 1)
    drawn = [reader.view.locator(".panel").nth(i).locator(".nsewdrag").count() for i in (0, 2, 3)]
    assert drawn == [1, 1, 1]
    show(reader, "Schemes")
    assert "ends at position 127" in reader.view.locator(".panel-help").nth(1).text_content()


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_wider_than_a_phone_and_axe_finds_nothing(visit, part):
    reader = visit(width=390, height=844)
    reader.open(text=TEXT, view="positions", positions_show=part)
    settle(reader)
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(reader.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []
