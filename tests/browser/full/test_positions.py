"""Positions as maps, as lines, as a rotation, scheme beside scheme, and by the twins' attention."""

import math
import re

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe

TEXT = "Once upon a time there was a little girl"
LONG = " ".join(["a little girl saw a big dog"] * 20)
PARTS = ["waves", "rotation", "schemes", "twins"]
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


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


def fact(reader, term):
    """What stands beside a term, as a number."""
    said = reader.view.locator(".panel-facts > div", has_text=term).locator("dd").text_content()
    found = re.fullmatch(r"(\d\.\d)·10⁻(\S+)", said)
    if not found:
        return float(said)
    return float(found[1]) * 10 ** -int(found[2].translate(SUPERSCRIPTS))


@pytest.fixture
def positional(url):
    """Asks for an encoding as a client would."""

    def get(**asked):
        answer = httpx.get(f"{url}/api/v1/positional", params=asked).raise_for_status()
        return {name: found["data"] for name, found in answer.json()["tensors"].items()}

    return get


def captured(ask, site="decoder.embedding.positional", **asked):
    return ask("trace", text=TEXT, capture=[site], **asked)["tensors"][site]["data"]


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


def test_dots_are_what_was_captured_and_the_followed_dimension_changes_by_arrow_keys(
    at_positions, ask
):
    reader = at_positions("waves", positions_dimensions="0.16")
    encoding = captured(ask)
    reader.page.mouse.move(*reader.cell(1, 3, 3, len(encoding)))
    assert reader.tip() == f"dimension 4, position 3\n{encoding[3][4]:.4f}"
    assert reader.readout.startswith("Dimension 4 is ")
    assert fact(reader, "Dots lie off") < 1e-6
    slider = reader.view.get_by_role("slider", name="and dimension")
    slider.focus()
    reader.page.keyboard.press("ArrowRight")
    settle(reader)
    assert "positions_dimension=5" in reader.fragment
    assert reader.page.evaluate("document.activeElement.type") == "range", "the focus stays"
    assert [row[0] for row in reader.table()[1:]] == ["0", "5", "16"]


def test_dimensions_are_chosen_by_their_buttons(at_positions):
    reader = at_positions("waves", positions_dimensions="0.16")
    chosen = reader.view.get_by_role("button", name="dimension 16", exact=True)
    assert chosen.get_attribute("aria-pressed") == "true"
    chosen.click()
    reader.view.get_by_role("button", name="dimension 64", exact=True).click()
    settle(reader)
    assert "positions_dimensions=0.64" in reader.fragment
    assert [row[0] for row in reader.table()[1:]] == ["0", "4", "64"]


def test_similarity_by_distance_is_walked_by_keyboard_and_read_out(at_positions, ask):
    reader = at_positions("waves")
    encoding = captured(ask)
    norms = [math.hypot(*row) for row in encoding]
    pairs = [
        sum(a * b for a, b in zip(encoding[i], encoding[i + 2], strict=True))
        / (norms[i] * norms[i + 2])
        for i in range(len(encoding) - 2)
    ]
    mean = sum(pairs) / len(pairs)
    reader.view.locator(".plot").nth(1).focus()
    reader.page.keyboard.press("ArrowRight")
    reader.page.keyboard.press("ArrowRight")
    expected = f"Two positions 2 apart: the mean of their cosine similarities is {mean:.3f}"
    assert reader.announced == f"{expected}, over {len(pairs)} pairs"
    assert reader.tip(panel=1) == f"mean, 2 apart\n{mean:.4f}"


def test_the_rotation_carries_one_position_to_another_as_exactly_as_the_page_says(
    at_positions, ask
):
    reader = at_positions("rotation", query=2, positions_shift=5, positions_pairs="0.8")
    assert titles(reader)[0] == "R(5) carries position 2 to 7"
    assert fact(reader, "Greatest difference") < 1e-5
    encoding = captured(ask)
    header, *rows = reader.table()
    assert header[-1] == "difference"
    for row in rows:
        pair = int(row[0])
        numbers = [float(cell.replace("−", "-")) for cell in row[1:7]]
        speed = 10_000 ** (-2 * pair / len(encoding[0]))
        expected = [f(p * speed) for p in (2, 7, 7) for f in (math.sin, math.cos)]
        assert numbers == pytest.approx(expected, abs=1e-4)
        assert numbers[4:] == pytest.approx(encoding[7][2 * pair : 2 * pair + 2], abs=1e-4)


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


def test_the_point_under_the_cursor_says_what_it_is(at_positions, ask):
    reader = at_positions("rotation", query=2, positions_shift=5, positions_pairs="0")
    encoding = captured(ask)
    plot = reader.view.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.locator(".nsewdrag").bounding_box()
    # A circle of radius 0.36 around the middle of a square, a little below its centre.
    x = box["x"] + (0.5 + 0.36 * math.cos(2)) * box["width"]
    y = box["y"] + (0.56 - 0.36 * math.sin(2)) * box["height"]
    reader.page.mouse.move(x, y)
    sine, cosine = encoding[2][:2]
    assert reader.tip() == f"pair 0: PE(2), sin\n({sine:.3f}, −{-cosine:.3f})"


def test_queries_of_a_rotary_model_are_turned_here_as_they_were_there(at_positions):
    reader = at_positions("rotation", model="positions-rotary", query=6, head=1)
    assert titles(reader)[0] == "The query at position 6 is turned"
    assert fact(reader, "Greatest difference") < 1e-5
    assert "head 1" in reader.view.locator(".panel-help").first.text_content()
    reader.view.get_by_role("radio", name="2", exact=True).check()
    settle(reader)
    assert "head=2" in reader.fragment
    assert "head 2" in reader.view.locator(".panel-help").first.text_content()
    assert fact(reader, "Greatest difference") < 1e-5


@pytest.mark.parametrize(
    ("model", "words"),
    [("positions-learned", "free vector"), ("alibi", "turns nothing"), ("none", "told nothing")],
)
def test_where_nothing_turns_a_button_leads_to_where_something_does(at_positions, model, words):
    reader = at_positions("rotation", model=model)
    assert words in notice(reader)
    with reader.reading_anew():
        reader.view.get_by_role("button", name="Look at a model whose positions turn").click()
    settle(reader)
    assert "model=positions-sinusoidal" in reader.fragment
    assert "carries position" in titles(reader)[0]


def test_a_model_without_positions_says_so_in_every_part(at_positions):
    reader = at_positions(model="none")
    assert "adds no positional encoding" in notice(reader)
    show(reader, "Lines")
    assert "Nothing is added" in notice(reader)
    show(reader, "Schemes")
    assert reader.view.locator(".plot .nsewdrag").count() == 4


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


def test_the_code_of_a_scheme_asks_for_the_scheme(visit):
    reader = visit(permissions=("clipboard-read", "clipboard-write"))
    reader.open(text=TEXT, view="positions", positions_show="schemes")
    settle(reader)
    assert "/api/v1/positional?scheme=rotary&length=10&width=32" in reader.copy("curl", panel=2)


def test_the_twins_read_the_same_sentence_and_are_drawn_alike(at_positions, ask):
    reader = at_positions("twins", positions_layer=1)
    for panel, scheme in enumerate(["sinusoidal", "learned", "rotary", "alibi"]):
        asked = {"model": f"positions-{scheme}", "text": TEXT, "capture": []}
        found = ask("trace", **asked, analyses=["attention_by_distance"])["analyses"]
        curves = found["attention_by_distance"]["decoder.layers.1.self_attention"]["data"]
        header, *rows = reader.table(panel)
        assert header[1:] == [str(distance) for distance in range(len(curves[0]))]
        for row, curve in zip(rows, curves, strict=True):
            assert [float(cell.strip("<>")) for cell in row[1:]] == pytest.approx(curve, abs=2e-4)
    ends = reader.view.locator(".panel").evaluate_all(
        "(panels) => panels.map((panel) => panel.querySelector('.annotation-text').textContent)"
    )
    assert len(set(ends)) == 1, "one scale for all"
    show(reader, "logarithmic")
    assert "positions_scale=log" in reader.fragment


def test_a_twin_that_cannot_read_so_much_says_so_and_the_others_go_on(visit):
    reader = visit(allow="status of 422")
    reader.open(text=LONG, view="positions", positions_show="twins")
    settle(reader)
    assert "“Positions: Learned” reads at most 128." in notice(reader, 1)
    drawn = [reader.view.locator(".panel").nth(i).locator(".nsewdrag").count() for i in (0, 2, 3)]
    assert drawn == [1, 1, 1]
    show(reader, "Schemes")
    assert "ends at position 127" in reader.view.locator(".panel-help").nth(1).text_content()


@pytest.mark.parametrize("text", ["<b>x</b> </s> 😀", "مرحبا بالعالم", "a"])
def test_any_text_can_be_looked_at_in_every_part(at_positions, text):
    reader = at_positions(text=text)
    for title in ("Lines", "Rotation", "Schemes", "Twins"):
        show(reader, title)
        assert reader.view.locator(".plot .nsewdrag").count() >= 2
        assert reader.view.locator(".is-failure").count() == 0


def test_both_stacks_of_a_translator_can_be_looked_at(at_positions):
    reader = at_positions("rotation", model="pairs", text="the cat sat on the mat")
    reader.view.locator(".where").get_by_role("radio", name="Encoder").check()
    settle(reader)
    assert fact(reader, "Greatest difference") < 1e-5
    assert f"to {reader.page.locator('#chips .chip').count() - 1}" in titles(reader)[0]


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_wider_than_a_phone_and_axe_finds_nothing(visit, part):
    reader = visit(width=390, height=844)
    reader.open(text=TEXT, view="positions", positions_show=part)
    settle(reader)
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(reader.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found] == []
