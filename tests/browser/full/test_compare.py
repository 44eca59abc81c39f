"""The view Compare: a pass next to another one, and the difference of the two."""

import pytest

TEXT = "the cat sat on the mat"
OTHER = "the cat sat on a mat"
SITE = "decoder.layers.1.self_attention.weights"
LINK = {"model": "plain", "text": TEXT, "view": "compare", "layer": 1, "head": 0}


@pytest.fixture
def weights(ask):
    """Return the API's attention of one head, for any pass."""

    def trace(**body):
        tensors = ask("trace", model="plain", text=TEXT, capture=[SITE], **body)["tensors"]
        return tensors[SITE]["data"][0]

    return trace


def drawn(reader, panels=5):
    reader.view.locator(".plot .nsewdrag").nth(panels - 1).wait_for(state="attached")
    reader.wait_until_drawn()


def titles(reader):
    return reader.view.locator(".panel h2").all_text_contents()


def test_a_head_that_is_switched_off_is_one_more_pass_beside_the_first(reader):
    reader.open(**LINK | {"layer": 0})
    drawn(reader)
    asked = reader.asks()
    off = reader.view.get_by_role("group", name="Heads off").get_by_role("button", name="head 1")
    with reader.reading_again():
        off.click()
    drawn(reader)
    assert asked[-1]["edits"] == [{"kind": "heads_off", "heads": [0, 1], "layer": 0}]
    assert titles(reader)[:3] == ["A: as it is", "B: heads 0, 1 off in layer 0", "B − A"]


def test_a_head_of_the_last_layer_changes_the_bars_and_no_map(reader):
    reader.open(**LINK)
    reader.view.locator(".plot svg").first.wait_for()
    reader.wait_until_drawn()
    assert reader.view.locator(".plot").count() == 1
    assert titles(reader)[0].startswith("After")
    assert "No attention map changed" in reader.view.text_content()


def test_by_keyboard_a_cell_of_the_difference_says_both_weights(reader, weights):
    reader.open(**LINK, compare_edit="no_scaling")
    drawn(reader)
    before = weights()
    after = weights(edits=[{"kind": "no_scaling"}])
    reader.view.locator(".plot").nth(2).focus()
    reader.page.keyboard.press("Control+End")
    reader.page.keyboard.press("ArrowLeft")
    was, now = before[-1][-2], after[-1][-2]
    assert f"the weight is {was:.3f} in A and {now:.3f} in B" in reader.announced
    reader.page.keyboard.press("Enter")
    assert f"query={len(before) - 1}" in reader.fragment


def test_a_second_sentence_is_typed_and_what_both_read_is_compared(reader, ask):
    reader.open(**LINK, compare_layer="all")
    drawn(reader)
    reader.view.get_by_role("radio", name="Another sentence").check(force=True)
    assert "Type a second sentence" in reader.view.locator(".panel-notice:visible").text_content()
    box = reader.view.get_by_role("textbox", name="Second sentence")
    with reader.page.expect_response("**/api/v1/trace"):
        box.fill(OTHER)
    drawn(reader)
    b = ask("trace", model="plain", text=OTHER, capture=[])["tokens"]
    words = [token["text"].strip() or "‹space›" for token in b]
    assert [line[0] for line in reader.table(1)[1:]] == words
    tokens = [chip.strip("·") for chip in reader.chips]
    at = tokens.index("on") + 1
    rows = [line[0] for line in reader.table(2)[1:]]
    assert rows == [*tokens[:at], f"{tokens[at]}/{words[at]}", *tokens[-1:]]
    assert "or with the one that replaced it" in reader.view.text_content()
    reader.page.reload()
    drawn(reader)
    assert box.input_value() == OTHER
    assert reader.page.input_value("#text") == TEXT
