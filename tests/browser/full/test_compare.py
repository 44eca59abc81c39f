"""The view Compare: a pass beside another one, and the difference of the two."""

import math
import re

import pytest

TEXT = "the cat sat on the mat"
OTHER = "the cat sat on a mat"
SITE = "decoder.layers.1.self_attention.weights"
LINK = {"model": "plain", "text": TEXT, "view": "compare", "layer": 1, "head": 0}


@pytest.fixture
def passes(ask):
    """The API's attention of one head and its next-token probabilities, for any pass."""

    def trace(**body):
        asked = {"model": "plain", "text": TEXT, "capture": [SITE, "logits"], **body}
        found = ask("trace", **asked)["tensors"]
        return found[SITE]["data"][0], softmax(found["logits"]["data"][-1])

    return trace


def softmax(logits):
    powers = [math.exp(logit - max(logits)) for logit in logits]
    return [power / sum(powers) for power in powers]


def drawn(reader, panels=5):
    reader.view.locator(".plot .nsewdrag").nth(panels - 1).wait_for(state="attached")
    reader.wait_until_drawn()


def number(cell):
    """A number as a table writes it."""
    return float(re.sub(r"[<>≈±]|( %)$", "", cell.replace("−", "-")))


def cells(table):
    return [[cell for cell in line[1:] if cell] for line in table[1:]]


def check_difference(reader, before, after, panel=2):
    """Each cell of the map of differences is B − A, to what is written."""
    for row, line in enumerate(cells(reader.table(panel))):
        assert len(line) == row + 1
        for column, cell in enumerate(line):
            change = after[row][column] - before[row][column]
            assert number(cell) == pytest.approx(change, abs=1.1e-4)


def titles(reader):
    return reader.view.locator(".panel h2").all_text_contents()


def test_a_head_that_is_switched_off_changes_the_pass_as_the_api_says(reader, passes):
    reader.open(**LINK)
    drawn(reader)
    asked = reader.asks()
    off = reader.view.get_by_role("group", name="Heads off").get_by_role("button", name="head 1")
    with reader.reading_anew():
        off.click()
    drawn(reader)
    edits = [{"kind": "heads_off", "heads": [0, 1]}]
    assert asked[-1]["edits"] == edits
    before, expected = passes()
    after, expected_then = passes(edits=edits)
    assert max(map(abs, (b - a for a, b in zip(before[-1], after[-1], strict=True)))) > 1e-3
    for panel, weights in ((0, before), (1, after)):
        for row, line in enumerate(cells(reader.table(panel))):
            assert [number(cell) for cell in line] == pytest.approx(
                weights[row][: row + 1], abs=1e-4
            )
    check_difference(reader, before, after)
    moved = sum(abs(q - p) for p, q in zip(expected, expected_then, strict=True)) / 2
    assert f"{100 * moved:.1f} % (total variation)" in reader.view.text_content()
    assert titles(reader)[:3] == ["A: as it is", "B: heads 0, 1 off in all layers", "B − A"]


def test_by_keyboard_a_cell_of_the_difference_says_both_weights(reader, passes):
    reader.open(**LINK, compare_edit="no_scaling")
    drawn(reader)
    before, _ = passes()
    after, _ = passes(edits=[{"kind": "no_scaling"}])
    reader.view.locator(".plot").nth(2).focus()
    reader.page.keyboard.press("Control+End")
    reader.page.keyboard.press("ArrowLeft")
    was, now = before[-1][-2], after[-1][-2]
    assert f"the weight is {was:.3f} in A and {now:.3f} in B" in reader.announced
    reader.page.keyboard.press("Enter")
    assert f"query={len(before) - 1}" in reader.fragment


def test_the_head_that_changed_most_is_found_and_shown(reader):
    reader.open(**{**LINK, "layer": 0})
    drawn(reader)
    assert "No difference here" in reader.view.text_content()
    table = reader.table(4)
    assert [number(cell) for cell in table[1][1:]] == [0, 0], "what comes before is as it was"
    moved = [number(cell) for cell in table[2][1:]]
    best = moved.index(max(moved))
    reader.view.get_by_role("button", name="Show the head that changed most").click()
    reader.wait_until_drawn()
    assert f"layer=1&head={best}" in reader.fragment
    assert f"Layer 1, head {best}." in reader.view.text_content()
    assert "No difference here" not in reader.view.text_content()


def test_a_second_sentence_is_typed_and_what_both_read_is_compared(reader, ask):
    reader.open(**LINK)
    drawn(reader)
    reader.view.get_by_role("radio", name="Another sentence").check(force=True)
    assert "Type a second sentence" in reader.view.locator(".panel-notice:visible").text_content()
    box = reader.view.get_by_role("textbox", name="Second sentence")
    with reader.page.expect_response("**/api/v1/trace"):
        box.fill(OTHER)
    drawn(reader)
    b = ask("trace", model="plain", text=OTHER, capture=[])["tokens"]
    words = [token["text"].strip() or "·" for token in b]
    assert [line[0] for line in reader.table(1)[1:]] == words
    tokens = [chip.strip("·") for chip in reader.chips]
    rows = [line[0] for line in reader.table(2)[1:]]
    assert rows == [*tokens[: tokens.index("on") + 1], *tokens[-1:]] or len(rows) < len(tokens)
    assert "Only tokens that A and B share" in reader.view.text_content()
    reader.page.reload()
    drawn(reader)
    assert box.input_value() == OTHER
    assert reader.page.input_value("#text") == TEXT


def test_an_edit_that_cannot_be_says_why_and_loses_nothing(visit):
    reader = visit(allow="status of 422")
    experts = "0.1.2.3"
    reader.open(
        model="pairs", text=TEXT, target="le chat dort", view="compare",
        compare_edit="experts", compare_experts=experts,
    )  # fmt: skip
    notice = reader.view.locator(".panel-notice:visible")
    notice.wait_for()
    assert "switch at most 2 off" in notice.text_content()
    assert titles(reader)[0] == "A: as it is"
    group = reader.view.get_by_role("group", name="Experts off")
    for expert in (0, 1):
        group.get_by_role("button", name=f"expert {expert}").click()
    drawn(reader)
    assert "compare_experts=2.3" in reader.fragment
