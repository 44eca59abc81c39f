"""Positions and experts, and the model that has no experts."""

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
