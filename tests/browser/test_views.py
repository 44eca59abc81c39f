"""Positions, experts and next tokens, and the model that has no experts."""

import math
import re

import pytest

TEXT = "Once upon a time there was a little"


def test_the_encoding_that_was_added_can_be_read_cell_by_cell(reader, ask):
    reader.open(text=TEXT, view="positions")
    site = "decoder.embedding.positional"
    encoding = ask("trace", text=TEXT, capture=[site])["tensors"][site]["data"]
    rows, columns = len(encoding), len(encoding[0])
    reader.page.mouse.move(*reader.cell(3, 0, rows, columns))
    assert reader.tip() == f"position 3, dimension 0\n{encoding[3][0]:.4f}"
    assert float(reader.tip().split()[-1]) == pytest.approx(math.sin(3), abs=1e-3)
    assert reader.readout.startswith("Position 3, “a”: 0.141 is added to dimension 0")


def test_positions_are_compared_by_the_cosine_of_their_encodings(reader, ask):
    reader.open(text=TEXT, view="positions")
    encoding = ask("trace", text=TEXT, capture=["decoder.embedding.positional"])["tensors"]
    encoding = encoding["decoder.embedding.positional"]["data"]
    count = len(encoding)
    cosine = sum(a * b for a, b in zip(encoding[1], encoding[4], strict=True)) / math.prod(
        math.sqrt(sum(a * a for a in encoding[position])) for position in (1, 4)
    )
    reader.page.mouse.move(*reader.cell(1, 4, count, count, panel=1))
    assert reader.tip(panel=1) == f"positions 1 and 4\n{cosine:.4f}"
    assert "cosine similarity" in reader.view.text_content()


def test_experts_show_probabilities_choices_and_loads_of_each_layer(reader, ask):
    reader.open(text=TEXT, view="experts")
    answer = ask(
        "trace",
        text=TEXT,
        capture=["*.experts.router_probs", "*.experts.expert_indices", "*.experts.expert_weights"],
    )
    layers = sorted(
        int(site.split(".")[2]) for site in answer["tensors"] if site.endswith("router_probs")
    )
    assert reader.view.locator("h2").all_text_contents() == [f"Layer {layer}" for layer in layers]
    for panel, layer in enumerate(layers):
        check_layer(reader, answer["tensors"], layer, panel)


def check_layer(reader, tensors, layer, panel):
    stem = f"decoder.layers.{layer}.experts."
    probabilities = tensors[stem + "router_probs"]["data"]
    indices = tensors[stem + "expert_indices"]["data"]
    weights = tensors[stem + "expert_weights"]["data"]
    token, expert, weight = 4, indices[4][0], weights[4][0]
    reader.page.mouse.move(
        *reader.cell(expert, token, len(probabilities[0]), len(probabilities), panel)
    )
    assert (
        reader.tip(panel)
        == f"“time” → expert {expert}\n{probabilities[4][expert]:.4f}, chosen: weight {weight:.3f}"
    )
    assert f"chosen, with weight {weight:.3f}" in reader.readout
    chosen = [number for row in indices for number in row]
    table = reader.table(panel)
    for number, row in enumerate(table[1:]):
        load = chosen.count(number) / len(chosen)
        percent = f"{100 * load:.1f}" if load else "0"
        assert row[0] == f"{number} (load {percent} %)"
        for token, cell in enumerate(row[1:]):
            if number not in indices[token]:
                assert "✓" not in cell
                continue
            weight = weights[token][indices[token].index(number)]
            assert re.search(rf" ✓ (<0\.0001|>0\.9999|{weight:.4f})$", cell), cell


def test_a_dense_model_is_called_dense_and_nothing_is_drawn(reader):
    reader.open(text="the cat sat on the mat", model="plain", view="experts")
    assert "dense: no routing" in reader.view.locator(".panel-notice").text_content()
    assert (
        reader.view.locator(".plot").count() == 0 or not reader.view.locator(".plot").is_visible()
    )
    reader.choose_view("Attention")
    assert reader.page.locator(".heads-cell").count() == 4


def test_the_menu_changes_the_model(reader):
    reader.open(text="the cat sat on the mat", view="experts")
    with reader.page.expect_response("**/api/v1/trace"):
        reader.page.select_option("#model", "plain")
    reader.page.get_by_text("dense: no routing").wait_for()
    assert "model=plain" in reader.fragment
    assert "none: the model is dense" in reader.page.locator("#card").text_content()


def test_next_tokens_are_the_likeliest_with_their_probabilities(reader, ask):
    reader.open(text=TEXT, view="next_token")
    guesses = ask("trace", text=TEXT, capture=[], analyses=["next_token"])["analyses"]["next_token"]
    texts, probabilities = guesses["texts"][-1], guesses["probabilities"]["data"][-1]
    bars = reader.view.locator(".bars .bartext").all_text_contents()
    assert bars == [f"{100 * p:.1f} %" if p >= 0.0005 else "<0.1 %" for p in probabilities[:12]]
    labels = reader.view.locator(".ytick text").all_text_contents()
    assert labels[0] == texts[0].replace(" ", "·").replace("\n", "↵")
    assert "After “little”" in reader.view.locator("h2").text_content().replace(
        "\u2068", ""
    ).replace("\u2069", "")


def test_the_next_token_is_that_of_the_chosen_position(reader, ask):
    reader.open(text=TEXT, view="next_token")
    reader.page.locator(".chip").nth(2).click()
    reader.wait_until_drawn()
    assert reader.readout.startswith("After “upon”, ")
    guesses = ask("trace", text=TEXT, capture=[], analyses=["next_token"])["analyses"]["next_token"]
    first = guesses["probabilities"]["data"][2][0]
    assert (
        reader.view.locator(".bars .bartext")
        .first.text_content()
        .startswith(f"{100 * first:.1f} %")
    )


def test_a_likely_continuation_can_be_added_by_keyboard(reader, ask):
    reader.open(text=TEXT, view="next_token")
    guesses = ask("trace", text=TEXT, capture=[], analyses=["next_token"])["analyses"]["next_token"]
    piece = next(text for text in guesses["texts"][-1] if re.fullmatch(r" [a-z]+", text))
    reader.view.locator(".plot").focus()
    for _ in range(guesses["texts"][-1].index(piece)):
        reader.page.keyboard.press("ArrowDown")
    assert f"“{piece.replace(' ', '·')}” has probability" in reader.announced
    with reader.page.expect_response("**/api/v1/trace"):
        reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert reader.page.input_value("#text") == TEXT + piece
    assert reader.chips[-1] == piece.replace(" ", "·")


@pytest.mark.parametrize("title", ["Attention", "Positions", "Experts", "Next token"])
def test_each_view_says_in_a_sentence_what_it_shows_and_has_a_table(reader, title):
    reader.open(text=TEXT)
    reader.choose_view(title)
    assert reader.view.locator(".help").text_content().endswith(".")
    assert reader.view.locator(".terms dt").count() >= 1
    for panel in range(reader.view.locator(".plot").count()):
        assert len(reader.table(panel)) > 2
