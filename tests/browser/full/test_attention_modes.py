"""The switches of the Attention view: what is shown, of which heads, and how."""

import re
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect

TEXT = "Doctor Mouse sat down by the river, and the grey goose flew away. Doctor"
LAYER, HEAD = 1, 4
PATH = f"decoder.layers.{LAYER}.self_attention"


@pytest.fixture
def shown(reader):
    reader.open(text=TEXT, layer=LAYER, head=HEAD)
    return reader


@pytest.fixture
def tensor(ask):
    def get(name):
        data = ask("trace", text=TEXT, capture=[f"{PATH}.{name}"])["tensors"][f"{PATH}.{name}"]
        return np.array(data["data"], dtype=float)

    return get


def choose(reader, title):
    """Set one of the switches; it may stand behind “More”."""
    control = reader.view.get_by_role("radio", name=title, exact=True)
    if not control.is_visible():
        reader.view.locator(".controls-more summary").click()
    control.check(force=True)
    reader.wait_until_drawn()


def numbers(reader):
    """The table behind the drawing, without its headers; empty cells are NaN."""
    lines = reader.table()[1:]
    read = [[cell.replace("−", "-").lstrip("<>") for cell in line[1:]] for line in lines]
    return np.array([[float(cell) if cell else np.nan for cell in line] for line in read])


def heading(reader):
    return reader.view.locator(".panel h2").text_content()


def test_at_first_all_is_calm(shown):
    assert shown.view.locator(".panel-help").is_hidden()
    assert shown.view.locator(".controls-more[open]").count() == 0
    assert "attention_" not in shown.fragment
    assert shown.view.locator(".controls").bounding_box()["height"] < 40, "one quiet line"


def test_scores_are_shown_as_the_api_gives_them(shown, tensor):
    with shown.page.expect_response(lambda answer: answer.url.endswith("/trace")):
        choose(shown, "Scores")
    assert heading(shown) == f"Layer {LAYER}, head {HEAD}: scores before the softmax"
    expect(shown.page.locator("#readout")).to_contain_text("highest score")
    seen, sent = numbers(shown), tensor("scores")[HEAD]
    assert np.array_equal(np.isnan(seen), np.isnan(sent))
    assert np.allclose(seen, sent, atol=1e-4, equal_nan=True)
    assert "attention_what=scores" in shown.fragment
    assert shown.view.get_by_role("radio", name="Rollout").count() == 0


def test_scores_are_asked_for_once_and_only_when_chosen(shown):
    asked = shown.asks()
    choose(shown, "Log")
    assert asked == []
    choose(shown, "Scores")
    choose(shown, "Weights")
    choose(shown, "Scores")
    shown.page.locator(".heads-cell[aria-label^='Layer 1, head 0']").click()
    shown.wait_until_drawn()
    assert [body["capture"] for body in asked] == [[f"{PATH}.scores"]]


def test_log_weights_show_what_weights_hide(shown):
    count = len(shown.chips)
    where = (count - 3, 5)
    shown.page.mouse.move(0, 0)
    paper = sum(shown.colour(*shown.cell(0, count - 1, count, count)))
    before = paper - sum(shown.colour(*shown.cell(*where, count, count)))
    choose(shown, "Log")
    shown.page.mouse.move(0, 0)
    after = paper - sum(shown.colour(*shown.cell(*where, count, count)))
    assert after > 3 * before
    ticks = shown.view.locator(".colorbar text").all_text_contents()
    assert {"≤0.0001", "0.01", "1"} <= set(ticks)


def test_value_weighted_cells_are_lengths(shown, ask):
    choose(shown, "Weight × value")
    assert "Rows do not sum to 1" in shown.view.locator(".panel-help").text_content()
    found = ask("trace", text=TEXT, capture=[], analyses=["value_weighted"], layers=[LAYER])
    sent = np.array(found["analyses"]["value_weighted"][PATH]["data"])[HEAD]
    seen = numbers(shown)
    assert np.allclose(np.nan_to_num(seen), np.tril(sent), atol=1e-4)


def test_any_set_of_heads_is_averaged(shown, tensor):
    choose(shown, "Several")
    group = shown.view.get_by_role("group", name="Heads", exact=True)
    assert group.locator("[aria-pressed=true]").all_text_contents() == [str(HEAD)]
    group.get_by_role("button", name="Head 1").click()
    shown.wait_until_drawn()
    assert heading(shown) == f"Layer {LAYER}, mean of heads 1 and {HEAD}"
    mean = tensor("weights")[[1, HEAD]].mean(axis=0)
    assert np.allclose(np.nan_to_num(numbers(shown)), mean, atol=1e-4)
    assert "attention_heads=1.4" in shown.fragment


def test_a_map_that_is_pressed_joins_the_set_and_all_of_the_set_are_marked(shown):
    choose(shown, "Several")
    shown.page.locator(f".heads-cell[aria-label^='Layer {LAYER}, head 2']").click()
    shown.wait_until_drawn()
    assert heading(shown) == f"Layer {LAYER}, mean of heads 2 and {HEAD}"
    marked = shown.page.locator(".heads-cell[aria-selected=true]")
    names = marked.evaluate_all("(cells) => cells.map((cell) => cell.ariaLabel.split(':')[0])")
    assert names == [f"Layer {LAYER}, head 2", f"Layer {LAYER}, head {HEAD}"]
    shown.page.get_by_role("button", name=re.compile("Previous token")).click()
    shown.wait_until_drawn()
    assert heading(shown).lower() == shown.chosen_head.lower(), "what is worth a look is one head"


@pytest.mark.parametrize(("title", "reduce"), [("Mean", np.mean), ("Largest", np.max)])
def test_a_layer_is_shown_as_a_whole(shown, tensor, title, reduce):
    choose(shown, title)
    assert np.allclose(np.nan_to_num(numbers(shown)), reduce(tensor("weights"), axis=0), atol=1e-4)


def test_rollout_is_the_analysis_of_that_name(shown, ask):
    choose(shown, "Rollout")
    assert heading(shown) == f"Rollout up to layer {LAYER}"
    found = ask("trace", text=TEXT, capture=[], analyses=["rollout"])["analyses"]["rollout"]
    sent = np.array(found["decoder"]["data"])[LAYER]
    assert np.allclose(np.nan_to_num(numbers(shown)), sent, atol=1e-4)


def test_pieces_merge_into_words_whose_rows_sum_to_1(shown):
    count = len(shown.chips)
    shown.view.locator(".controls-more summary").click()
    shown.view.get_by_label("Whole words").check()
    shown.wait_until_drawn()
    labels = shown.view.locator(".ytick text").all_text_contents()
    assert "Doctor" in labels
    assert len(labels) < count
    assert np.allclose(np.nansum(numbers(shown), axis=1), 1, atol=2e-3)
    assert "attention_words=1" in shown.fragment


def test_a_word_that_is_pointed_at_tints_the_sentence_by_its_row(shown):
    shown.open(text=TEXT, layer=LAYER, head=HEAD, attention_words=1)
    shown.page.locator(".chip").nth(20).hover()
    assert "“Doctor” at 19 attends most to" in shown.readout
    tints = shown.tints()
    in_words = [token.strip("·") for token in shown.chips]
    assert tints[in_words.index("Mouse")] > tints[in_words.index("sat")]
    assert tints[1] == tints[2], "both pieces of the first “Doctor” have its weight"
    shown.page.locator(".chip").nth(2).focus()
    assert "by word" in shown.readout
    marked = shown.page.locator(".chip.is-query").all_text_contents()
    assert marked == ["Do", "ctor"]


def test_the_first_token_is_hidden_and_rows_are_as_they_were_or_renormalised(shown, tensor):
    choose(shown, "First token")
    assert "rows are not renormalised" in shown.view.locator(".panel-help").text_content()
    assert np.allclose(np.nan_to_num(numbers(shown)), tensor("weights")[HEAD][1:, 1:], atol=1e-4)
    assert not shown.page.locator(".chip").first.get_attribute("data-tinted")
    shown.view.get_by_label("Renormalise rows").check()
    shown.wait_until_drawn()
    assert "sums to 1 again" in shown.view.locator(".panel-help").text_content()
    assert np.allclose(np.nansum(numbers(shown), axis=1), 1, atol=2e-3)


def test_cells_under_the_threshold_keep_the_lowest_colour_and_are_marked(shown, tensor):
    weights = tensor("weights")[HEAD]
    count = len(weights)
    under = next(key for key in range(1, count) if 0.004 < weights[11, key] < 0.05)
    where = (11, under)
    shown.page.mouse.move(0, 0)
    assert shown.colour(*shown.cell(*where, count, count)) != (255, 255, 255)
    shown.view.locator(".controls-more summary").click()
    slider = shown.view.get_by_label("Threshold")
    slider.focus()
    for _ in range(10):
        shown.page.keyboard.press("ArrowRight")
    shown.wait_until_drawn()
    assert slider.get_attribute("aria-valuetext") == "0.1"
    assert shown.page.evaluate("document.activeElement.type") == "range", "the focus stays"
    assert shown.colour(*shown.cell(3, 10, count, count)) == (255, 255, 255), "masked"
    lowest = shown.colour(*shown.cell(*where, count, count))
    assert lowest != (255, 255, 255)
    written = shown.table()[1 + where[0]][1 + where[1]]
    assert written == f"({weights[where]:.4f})"
    shown.page.mouse.move(*shown.cell(*where, count, count))
    assert "under the threshold" in shown.tip()
    assert "attention_threshold=0.1" in shown.fragment


def test_lines_join_the_words_with_the_number_on_each(shown, tensor):
    choose(shown, "Lines")
    plot = shown.view.locator(".plot")
    assert plot.get_attribute("aria-roledescription") == "diagram of lines"
    weights = tensor("weights")[HEAD][-1]
    texts = shown.view.locator(".textpoint").all_text_contents()
    strong = sorted(f"{weight:.2f}" for weight in weights if weight >= 0.1)
    assert strong
    assert set(strong) <= set(texts)
    assert shown.view.locator(".controls-more").is_visible()
    assert "attention_as=lines" in shown.fragment


def test_a_click_on_a_cell_chooses_query_and_key_and_offers_its_arithmetic(shown, tensor):
    weights = tensor("weights")[HEAD]
    count = len(weights)
    shown.page.mouse.move(*shown.cell(11, 8, count, count))
    shown.view.locator(".tip.is-shown").wait_for()
    shown.page.mouse.click(*shown.cell(11, 8, count, count))
    shown.page.wait_for_url("**query=11**")
    shown.wait_until_drawn()
    assert "key=8" in shown.fragment
    action = shown.view.locator(".panel-actions button", has_text="Why")
    assert action.text_content() == f"Why {weights[11, 8]:.3f}?"
    mark = shown.view.locator(".plot-mark.is-picked").bounding_box()
    x, y = shown.cell(11, 8, count, count)
    assert mark["x"] < x < mark["x"] + mark["width"]
    assert mark["y"] < y < mark["y"] + mark["height"]
    action.click()
    shown.wait_until_drawn()
    assert "view=why" in shown.fragment
    assert f"with weight {weights[11, 8]:.3f} (layer {LAYER}, head {HEAD})" in shown.readout


def test_enter_on_a_cell_does_the_same_and_the_link_restores_it(shown, tensor):
    shown.view.locator(".plot").focus()
    shown.page.keyboard.press("Control+Home")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("Enter")
    assert re.search("query=2(&|$)", shown.fragment)
    assert re.search("key=1(&|$)", shown.fragment)
    shown.page.reload()
    shown.wait_until_drawn()
    weight = tensor("weights")[HEAD][2, 1]
    assert (
        shown.view.locator(".panel-actions button", has_text="Why").text_content()
        == f"Why {weight:.3f}?"
    )


def test_a_link_restores_every_switch(reader):
    reader.open(
        text=TEXT,
        layer=2,
        attention_which="heads",
        attention_heads="0.2",
        attention_words=1,
        attention_hide="first",
        attention_renormalise=1,
        attention_threshold=0.05,
        attention_as="lines",
        attention_order="label",
    )
    assert heading(reader) == "Layer 2, mean of heads 0 and 2"
    said = reader.view.locator(".panel-help").text_content()
    for words in ("Pieces of a word", "renormalised", "under 0.05"):
        assert words in said
    assert reader.view.locator(".controls-more summary").text_content() == "More: 3 set"
    assert reader.page.locator(".heads-grid.is-grouped").count() == 1


def test_what_cannot_be_has_no_effect(visit):
    reader = visit()
    reader.open(text=TEXT, layer=1, head=4, attention_what="scores", attention_which="rollout")
    assert heading(reader) == "Layer 1, head 4: scores before the softmax"
    reader.open(text=TEXT, layer=1, head=4, attention_what="nonsense", attention_heads="99")
    assert heading(reader) == "Layer 1, head 4"


def test_a_refused_answer_is_told_in_its_place_and_the_rest_goes_on(visit):
    reader = visit(allow="Failed to load resource")
    reader.open(text=TEXT, layer=LAYER, head=HEAD)

    def refuse(route):
        if route.request.post_data_json["capture"] == [f"{PATH}.scores"]:
            problem = {"title": "Too much", "status": 422, "detail": "Ask for less."}
            route.fulfill(status=422, json=problem, content_type="application/problem+json")
        else:
            route.continue_()

    reader.page.route("**/api/v1/trace", refuse)
    choose(reader, "Scores")
    expect(reader.view.locator(".panel-notice")).to_have_text("Too much. Ask for less.")
    assert reader.page.locator(".heads-cell").first.is_visible()
    choose(reader, "Weights")
    assert reader.view.locator(".plot").is_visible()


def test_each_map_has_the_label_and_the_score_of_the_api(shown, ask):
    found = ask("trace", text=TEXT, capture=[], analyses=["head_labels"])["analyses"]["head_labels"]
    label = found["labels"][found[f"{PATH}.label"]["data"][HEAD]]
    score = found[f"{PATH}.label_scores"]["data"][HEAD][found["labels"].index(label)]
    cell = shown.page.locator(f".heads-cell[aria-label^='Layer {LAYER}, head {HEAD}']")
    name = f"Layer {LAYER}, head {HEAD}: {label} {score:.3f}"
    assert cell.get_attribute("aria-label") == name
    item = shown.page.locator(".heads-item", has=cell)
    assert item.locator(".heads-score").text_content() == f"{score:.2f}".removeprefix("0")
    cell.hover()
    assert f"{label} {score:.3f}" in shown.page.locator(".heads-caption").text_content()


def test_sorted_by_label_what_does_the_same_stands_together(shown):
    shown.page.get_by_role("radio", name="Label", exact=True).check(force=True)
    groups = shown.page.locator(".heads-row")
    titles = groups.locator("[role=rowheader]").all_text_contents()
    assert titles[-1] == "mixed"
    assert len(titles) == len(set(titles))
    sinks = groups.filter(has=shown.page.get_by_role("rowheader", name="sink"))
    scores = sinks.locator(".heads-score").all_text_contents()
    values = [float(score.lstrip("<>")) for score in scores]
    assert values == sorted(values, reverse=True)
    assert shown.page.locator(".heads-cell").count() == 24
    assert shown.chosen_head == f"Layer {LAYER}, head {HEAD}"


def test_sorted_maps_are_walked_by_keys_and_painted_where_they_stand(shown):
    shown.page.get_by_role("radio", name="Label", exact=True).check(force=True)
    first = shown.page.locator(".heads-cell").first
    first.focus()
    shown.page.keyboard.press("ArrowDown")
    assert "sink" in shown.page.evaluate("document.activeElement.getAttribute('aria-label')")
    shown.page.keyboard.press("Enter")
    shown.wait_until_drawn()
    shown.page.mouse.move(0, 0)
    box = shown.page.locator(".heads-cell[aria-selected=true]").bounding_box()
    sink = shown.colour(box["x"] + 2, box["y"] + box["height"] - 12)
    future = shown.colour(box["x"] + box["width"] - 3, box["y"] + 3)
    assert sum(sink) < 400, "a sink’s first column is dark"
    assert future == (255, 255, 255)


def test_labels_stay_clear_of_one_another(visit):
    for width in (1440, 820, 390):
        reader = visit(width=width, height=900)
        reader.open(text=TEXT)
        boxes = reader.page.locator(".heads-row").nth(1).locator(".heads-name > :first-child")
        edges = boxes.evaluate_all(
            "(nodes) => nodes.map((node) => node.parentElement).map((node) => {"
            " const range = document.createRange(); range.selectNodeContents(node);"
            " const boxes = [...node.querySelectorAll('[aria-hidden]')]"
            "  .map((part) => part.getBoundingClientRect());"
            " return [Math.min(...boxes.map((box) => box.left)),"
            "  Math.max(...boxes.map((box) => box.right))]; })"
        )
        assert all(left[1] <= right[0] + 0.5 for left, right in pairwise(edges)), width


def test_on_a_phone_the_switches_take_one_line_and_the_map_is_on_the_first_screen(visit):
    reader = visit(width=390, height=844, has_touch=True, is_mobile=True)
    reader.open(text="The cat sat.")
    assert reader.view.locator(".controls").bounding_box()["height"] < 44
    assert reader.view.locator(".panel").bounding_box()["y"] < 844
    heads = reader.page.locator(".heads-block").bounding_box()
    assert heads["y"] > reader.view.locator(".plot").bounding_box()["y"], "the map comes first"
    assert reader.page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_heading_of_all_heads_says_where_the_maps_are_of_something_else(reader):
    reader.open(text=TEXT, layer=LAYER, head=HEAD)
    title = reader.page.locator(".heads-title > h2")
    assert title.text_content() == "All heads"
    for name, said in [("Scores", "All weights"), ("Weights", "All heads"), ("Log", "All weights")]:
        choose(reader, name)
        assert title.text_content() == said


def test_the_switches_of_all_heads_stand_in_one_line(visit):
    reader = visit(width=1440, height=900)
    reader.open(text=TEXT, attention_what="scores")
    colours, sort = reader.page.locator(".heads-range").all()
    assert colours.bounding_box()["y"] == sort.bounding_box()["y"]


def test_hostile_and_strange_text_goes_through_every_way_to_look(reader):
    text = "<b>x</b> </s> 👩‍🚀 مرحبا naïve"
    for fragment in (
        {"attention_words": 1},
        {"attention_as": "lines", "attention_words": 1},
        {"attention_hide": "special", "attention_what": "log"},
        {"attention_what": "scores"},
    ):
        reader.open(text=text, layer=0, head=0, **fragment)
        assert reader.view.locator(".plot").is_visible()
        assert reader.view.locator(".plot b, .plot-drawing a").count() == 0


def test_the_sentence_of_a_translator_is_tinted_in_words_too(reader):
    reader.open(
        model="translate",
        text="The little black cat is sleeping.",
        where="cross",
        attention_words=1,
    )
    reader.page.locator("#target-chips .chip").nth(3).hover()
    assert "by word" in reader.readout
    assert reader.page.locator("#chips .chip[data-tinted]").count() == len(
        reader.page.locator("#chips .chip").all()
    )
    reader.page.locator("#chips .chip").nth(2).hover()
    assert "is attended to most by" in reader.readout
